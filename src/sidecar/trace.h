/* trace: the trace id of one request through the sidecar.
 *
 *     X-Trace-Id, if it is a trace id  ─▶  traceparent  ─▶  a new one
 *
 * The agent gets it as X-Trace-Id and as traceparent with a span id of ours, so that usage which
 * it reports can be assigned to the request.
 *
 * Memory   a plain value.
 * Threads  any.
 * Source   contracts/agentbreeder.md 4.6; wire/trace_context.h.
 */
#ifndef WEIR_SIDECAR_TRACE_H
#define WEIR_SIDECAR_TRACE_H

#include "server/exchange.h"
#include "wire/trace_context.h"

struct trace {
    char id[TRACE_ID_DIGITS + 1];
    char span[TRACE_SPAN_DIGITS + 1];   /* of this request */
    char call[TRACE_SPAN_DIGITS + 1];   /* of what it asks: the same, unless spans are sent */
    char parent[TRACE_SPAN_DIGITS + 1]; /* the caller's span; empty: none */
    bool sampled;
};

/* `trace_id` and `traceparent` are the request's headers, or empty. What is not valid is treated
 * as absent. */
void trace_begin(struct trace *trace, struct str trace_id, struct str traceparent);

/* The same of a request. */
void trace_begin_request(struct trace *trace, const struct exchange *exchange);

static inline struct str trace_id(const struct trace *trace) {
    return str_of(trace->id, TRACE_ID_DIGITS);
}

/* The traceparent for what this request asks. */
void trace_write_parent(const struct trace *trace, char ret[static TRACE_PARENT_BYTES + 1]);

/* 32 lower-case hexadecimal digits, not all zero. */
bool trace_id_ok(struct str text);

#endif
