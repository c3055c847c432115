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
 * The spans of a turn share the state of their trace, so a span takes less than a hundred bytes.
 *
 * Memory   a plain value, whose state is borrowed.
 * Threads  none.
 * Source   W3C Trace Context Level 2, "traceparent", "tracestate", "Processing Model".
 */
#ifndef WEIR_WIRE_TRACE_CONTEXT_H
#define WEIR_WIRE_TRACE_CONTEXT_H

#include "base/arena.h"
#include "base/buf.h"

#define TRACE_ID_BYTES 16
#define TRACE_SPAN_BYTES 8
#define TRACE_ID_DIGITS (2 * TRACE_ID_BYTES) /* hexadecimal */
#define TRACE_SPAN_DIGITS (2 * TRACE_SPAN_BYTES)
#define TRACE_PARENT_BYTES 55 /* 00-<trace>-<span>-<flags> */
#define TRACE_STATE_MAX_BYTES 512
#define TRACE_STATE_MEMBERS_MAX 32

#define TRACE_SAMPLED 1u
#define TRACE_RANDOM 2u /* the trace id is random */

struct trace_context {
    unsigned char id[TRACE_ID_BYTES]; /* all zero: there is no trace */
    unsigned char span[TRACE_SPAN_BYTES];
    unsigned flags;
    struct str state; /* or empty */
};

/* A tracestate while its fields are read. All zero: none was read. */
struct trace_state {
    char text[TRACE_STATE_MAX_BYTES];
    size_t len;
    unsigned members; /* with those that did not fit */
    bool spoiled;     /* a field was not valid */
};

static inline bool trace_context_known(const struct trace_context *trace) {
    static const unsigned char none[TRACE_ID_BYTES];
    return memcmp(trace->id, none, sizeof(none)) != 0;
}

static inline struct str trace_state_str(const struct trace_state *state) {
    return str_of(state->text, state->len);
}

/* Set *ret from a traceparent, without a state. False: it is not valid, and there is no trace. */
bool trace_context_read(struct str traceparent, struct trace_context *ret);

/* Add a tracestate field, in the order in which they came. One that is not valid drops all. */
void trace_state_add(struct trace_state *state, struct str tracestate);

/* A copy with its state. NULL: the arena is full. */
struct trace_context *trace_context_copy(const struct trace_context *from, struct arena *arena);

/* A new span in the trace of `of`, whose state it shares; `of` NULL: in a new trace, which is
 * sampled. */
void trace_context_fork(const struct trace_context *of, struct trace_context *ret);

/* The same in an arena. NULL: it is full. */
struct trace_context *trace_context_child(const struct trace_context *of, struct arena *arena);

/* The traceparent of what is asked for this trace; ends with NUL. */
void trace_context_write(const struct trace_context *trace,
                         char ret[static TRACE_PARENT_BYTES + 1]);

/* Both as one text, "<traceparent> <tracestate>", or nothing; and back: the state is in `text`. */
void trace_context_put(const struct trace_context *trace, struct buf *out);
bool trace_context_take(struct str text, struct trace_context *ret);

/* --- ids as text: lower-case hexadecimal digits, not all zero --- */

/* Write a random one, and NUL. */
void trace_id_random(char *ret, size_t digits);

bool trace_id_is(struct str text, size_t digits);

/* From and to its `digits / 2` bytes. False, and ret untouched: the text is not one. Written
 * text ends with NUL. */
bool trace_id_read(struct str text, size_t digits, unsigned char *ret);
void trace_id_write(const unsigned char *id, size_t digits, char *ret);

#endif
