/* tool: a function that an agent can call.
 *
 * A kind is one file that fills struct tool_kind. A call takes one JSON object and answers once
 * with one JSON object, or with an error that the model reads.
 *
 * Memory   the arguments of start() are borrowed until the answer or the cancel.
 * Threads  a call belongs to one loop; the tool itself is read-only and shared.
 */
#ifndef WEIR_TOOL_TOOL_H
#define WEIR_TOOL_TOOL_H

#include "base/err.h"
#include "loop/loop.h"
#include "schema/schema.h"

struct tool;
struct trace_context;
struct tool_call; /* defined by each kind */

/* How far a call got, in words; as often as the tool says it. With the ctx of the call, on its
 * loop, between its start and its answer. */
typedef void tool_progress_fn(struct str text, void *ctx);

/* The arguments of a call, and for whom it is made. */
struct tool_request {
    struct str call_id; /* the model's name of the call; it may recur in a session */
    struct str id;      /* our own, which no other call has; what leaves for others */
    struct str args;    /* one JSON object */
    struct str agent, workspace, user, session;
    uint64_t run;                      /* that makes the call; 0: unknown */
    const struct trace_context *trace; /* to pass on; NULL: there is none; borrowed as args */
    tool_progress_fn *progress;        /* NULL: not wanted */
};

/* Called once, on the call's loop, never before start() has returned. `result` is
 * borrowed, one JSON object. `failed` is NULL on success; ERR_EFFECT_UNKNOWN means that the
 * call was sent and its answer was lost. */
typedef void tool_done_fn(struct str result, const struct err *failed, void *ctx);

struct tool_kind {
    const char *name;
    struct tool_call *(*start)(struct tool *tool, struct loop *loop,
                               const struct tool_request *request, tool_done_fn *done,
                               void *ctx);
    void (*cancel)(struct tool_call *call); /* done will not be called */
    void (*free)(struct tool *tool);
};

/* The first member of every kind's own struct. */
struct tool {
    const struct tool_kind *kind;
    struct str name, description;
    struct str parameters;       /* JSON Schema of the arguments */
    const struct schema *schema; /* the same, parsed: arguments are checked before a call; NULL:
                                    no check */
    bool idempotent;             /* repeating a call does no harm */
    bool asks; /* a human decides about each call, unless the settings say otherwise */
    uint64_t timeout_ms; /* time limit of a call, unless a setting gives one; the turn
                                    cancels longer calls. 0: only the general limits */
};

static inline void tool_free(struct tool *tool) {
    if (tool) tool->kind->free(tool);
}

#endif
