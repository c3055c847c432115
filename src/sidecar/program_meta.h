/* program_meta: the trace of a request to an MCP server that is a program, which has no headers.
 *
 *     {"name":"say","_meta":{"progressToken":7,"traceparent":"00-...","tracestate":"a=1"}}
 *
 * An agent that traces its MCP calls has written it there already. The request belongs to that trace
 * then, whatever the headers say: they may be those of another layer. The program gets the span of
 * this call in its place; without spans, what the agent said.
 *
 * Memory   the caller's.
 * Threads  none.
 * Source   MCP 2026-07-28, "_meta": traceparent, tracestate; OpenTelemetry semantic conventions,
 *          "MCP", "Context propagation".
 */
#ifndef WEIR_SIDECAR_PROGRAM_META_H
#define WEIR_SIDECAR_PROGRAM_META_H

#include "wire/json.h"
#include "wire/trace_context.h"

/* Read what the params of a request say. False, and both untouched: no trace that is valid. */
bool program_meta_read(struct json params, char parent[static TRACE_PARENT_BYTES + 1],
                       struct trace_state *state);

/* Append params that say this trace and otherwise what `params` says. Params that are neither an
 * object nor absent are appended as they are. */
void program_meta_write(struct json params, struct str parent, struct str state,
                        struct buf *out);

#endif
