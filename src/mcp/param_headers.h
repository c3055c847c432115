/* param_headers: arguments of a tool that a stateless server also wants as headers.
 *
 * A property of the tool's schema has `"x-mcp-header": "Region"`; its value in the arguments is
 * then also sent as `Mcp-Param-Region`. A value that a header cannot carry is sent as
 * =?base64?...?=. If the schema does this wrongly, the tool cannot be used over HTTP.
 *
 * Private to mcp/.
 *
 * Memory   values are appended to the caller's buffer.
 * Threads  none; values only.
 * Source   Model Context Protocol 2026-07-28, "Streamable HTTP", Custom Headers from Tool
 *          Parameters. */
#ifndef WEIR_MCP_PARAM_HEADERS_H
#define WEIR_MCP_PARAM_HEADERS_H

#include "client/http.h"
#include "wire/json.h"

#define PARAM_HEADERS_MAX 16

/* A quick check whether a schema mentions such headers at all. */
bool param_headers_wanted(struct str schema);

/* errors  ERR_INVALID_ARGUMENT what is wrong with them */
MUST_CHECK bool param_headers_check(struct json schema, struct err *e);

/* The headers for these arguments. The schema must have been checked. `room` is initialised by
 * the caller and holds the names and values as long as the headers are used. Returns their
 * number. */
size_t param_headers_write(struct json schema, struct json args, struct buf *room,
                           struct http_header ret[PARAM_HEADERS_MAX]);

/* Append a header's value in the encoding of this protocol. */
void param_headers_encode(struct str value, struct buf *out);

#endif
