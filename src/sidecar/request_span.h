/* request_span: the spans of what passes the sidecar (spans/spans.h).
 *
 *     request /invoke ┬ guardrails request      what is read whole; in a stream they are part of it
 *                     ├ ask agent               the agent's own spans are children of this one
 *                     └ guardrails answer
 *     mcp NAME, a2a NAME                        calls of the agent, by the helpers
 *
 * A request that was refused at the door (no token, a rate) has none, so that strangers do not fill the
 * queue. No text of a request or an answer is in a span.
 *
 * Memory   plain values.
 * Threads  one loop's.
 */
#ifndef WEIR_SIDECAR_REQUEST_SPAN_H
#define WEIR_SIDECAR_REQUEST_SPAN_H

#include "sidecar/trace.h"
#include "spans/spans.h"

/* Whether the spans of this trace are wanted: a caller may have said that it does not sample. */
static inline bool request_span_wanted(const struct trace *trace) {
    return spans_wanted() && trace->sampled;
}

/* Give what the request asks a span of its own, which trace_write_parent() passes on. */
void request_span_fork(struct trace *trace);

/* A span that is part of the request, or of what the agent does when it asks a helper. `self`: its
 * id, or NULL for a new one. */
struct part_span {
    struct str operation; /* SPAN_NAME() */
    struct str what;
    enum span_kind kind;
    const char *self;
    bool by_agent;
    uint64_t took_us;
    int status;       /* of an HTTP answer; 0: none */
    struct str error; /* empty: none */
};
void request_span_part(const struct trace *trace, const struct part_span *part);

/* The span of the request itself. */
struct whole_span {
    struct str method, path, agent, model;
    int status;            /* 0: the client left before an answer */
    int64_t input, output; /* tokens; below 0: unknown */
    uint64_t took_us;
    struct str error; /* why it failed, where the status does not say it; or empty */
};
void request_span_whole(const struct trace *trace, const struct whole_span *whole);

#endif
