/* body: helpers for the request bodies of all dialects.
 *
 * Memory   appends to the caller's buffer or writer; borrows the rest.
 * Threads  none.
 */
#ifndef WEIR_PROVIDER_BODY_H
#define WEIR_PROVIDER_BODY_H

#include "provider/dialect.h"

/* The longest call ids that Chat Completions and Responses accept. */
#define CALL_ID_MAX_BYTES 40
#define CALL_ID_LONG_MAX_BYTES 64

/* Read a JSON Schema; `what` names it in the error.
 * errors  ERR_INVALID_ARGUMENT not a JSON object */
MUST_CHECK bool body_read_schema(struct str schema, struct str what, struct json *ret,
                                 struct err *e);

/* Write the key and a JSON Schema without whitespace between its tokens. An empty schema is
 * written as an object without members. `what` names it in the error.
 * errors  ERR_INVALID_ARGUMENT not a JSON object */
MUST_CHECK bool body_schema(struct json_writer *writer, const char *key, struct str schema,
                            struct str what, struct err *e);

/* Write a tool's name, description and, under `schema_key`, its parameters. */
MUST_CHECK bool body_tool(struct json_writer *writer, const struct tool_offer *tool,
                          const char *schema_key, struct err *e);

/* Write the name, the strictness and the schema that the reply must fit; reply_form_of() has
 * read it. */
void body_reply_schema(struct json_writer *writer, struct str schema, bool strict);

/* Write the key and the number, unless it is below 0, which means not set. */
void body_double(struct json_writer *writer, const char *key, double number);

/* Write the key and the sequences that end a reply, at most `max` of them. */
void body_stops(struct json_writer *writer, const char *key,
                const struct model_options *options, size_t max);

/* Whether this is one of OpenAI's models that reason, which choose how they sample themselves. */
bool body_reasons(struct str model);

/* Whether an opaque message is an array that is not empty, to send back item by item; *ret is that
 * array, or of kind JSON_NONE. */
bool body_read_opaque(struct str opaque, struct json *ret);
void body_write_items(struct json_writer *writer, struct json items);

/* Write the key and a call id of at most max_bytes. A longer id becomes "tc_" and 37 digits of
 * its SHA-256, the same for a call and its result. */
void body_call_id(struct json_writer *writer, const char *key, struct str call_id,
                  size_t max_bytes);

/* Append base_url, the path, and the query, if any. */
void body_url(const struct dialect_settings *settings, const char *path, struct buf *out);

/* The model to ask: the request's, or else the configured one. */
struct str body_model(const struct dialect_settings *settings,
                      const struct provider_request *request);

/* Whether base_url names this host; ".example.com" matches any host in that domain. */
bool body_host_is(const struct dialect_settings *settings, const char *host);

/* Whether the body is complete.
 * errors  ERR_TOO_LARGE the buffer's limit was reached */
MUST_CHECK bool body_complete(const struct buf *out, struct err *e);

#endif
