/* trace_context: which trace a request belongs to, as W3C headers say it.
 *
 *     traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
 *     tracestate:  rojo=00f067aa0ba902b7,congo=t61rcWkgMzE
 *
 * A trace comes in at a door, is kept with the run, and goes on to whatever the run asks: model
 * APIs, MCP servers, other agents. What is not valid is treated as absent, as the standard wants:
 * a caller's tracing must not make its request fail. Unknown flags are dropped. A tracestate
 * that is longer than TRACE_STATE_MAX_BYTES loses members at its end.
 *
 * Memory   a plain value; it points nowhere.
 * Threads  none.
 * Source   W3C Trace Context Level 2, "traceparent", "tracestate", "Processing Model".
 */
#ifndef WEIR_WIRE_TRACE_CONTEXT_H
#define WEIR_WIRE_TRACE_CONTEXT_H

#include "base/buf.h"

#define TRACE_ID_BYTES 32
#define TRACE_SPAN_BYTES 16
#define TRACE_PARENT_BYTES 55 /* 00-<trace>-<span>-<flags> */
#define TRACE_STATE_MAX_BYTES 512
#define TRACE_STATE_MEMBERS_MAX 32

#define TRACE_SAMPLED 1u
#define TRACE_RANDOM 2u /* the trace id is random */

struct trace_context {
    char id[TRACE_ID_BYTES + 1]; /* empty: there is no trace */
    char span[TRACE_SPAN_BYTES + 1];
    unsigned flags;
    char state[TRACE_STATE_MAX_BYTES + 1];
    size_t state_len;
    unsigned members; /* of the state, with those that did not fit */
    bool spoiled;     /* the state: a field of it was not valid */
};

static inline bool trace_context_known(const struct trace_context *trace) {
    return trace->id[0] != 0;
}

static inline struct str trace_context_state(const struct trace_context *trace) {
    return str_of(trace->state, trace->state_len);
}

/* Set *ret from a traceparent, without a state. False: it is not valid, and there is no trace. */
bool trace_context_read(struct str traceparent, struct trace_context *ret);

/* Add a tracestate field, in the order in which they came. One that is not valid drops all. */
void trace_context_add_state(struct trace_context *trace, struct str tracestate);

/* The traceparent of what is asked for this trace; ends with NUL. */
void trace_context_write(const struct trace_context *trace,
                         char ret[static TRACE_PARENT_BYTES + 1]);

/* Both as one text, "<traceparent> <tracestate>", or nothing; and back. */
void trace_context_put(const struct trace_context *trace, struct buf *out);
bool trace_context_take(struct str text, struct trace_context *ret);

/* Write `digits` random hexadecimal digits, not all zero, and NUL: a trace or a span. */
void trace_context_random(char *ret, size_t digits);

/* Whether it is so many lower-case hexadecimal digits, not all zero. */
bool trace_context_is_id(struct str text, size_t digits);

#endif
