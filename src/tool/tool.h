/* tool: something an agent can have done.
 *
 * A kind is one file that fills struct tool_kind. A call gets one JSON object and answers
 * once with one JSON object, or with an error that the model reads.
 *
 * Memory   what tool_call_start() is given is borrowed until the answer or the cancel.
 * Threads  a call belongs to one loop; the tool itself is read-only and shared.
 */
#ifndef WEIR_TOOL_TOOL_H
#define WEIR_TOOL_TOOL_H

#include "base/err.h"
#include "loop/loop.h"
#include "wire/schema.h"

struct tool;
struct tool_call; /* each kind's own */

/* What is asked, and for whom. */
struct tool_request {
    struct str call_id, args; /* args: one JSON object */
    struct str agent, workspace, user, session;
};

/* Once, on the loop of the call, never before tool_call_start() has returned. failed is NULL
 * on success; result is borrowed, one JSON object. ERR_EFFECT_UNKNOWN says that the call left
 * and its answer is lost. */
typedef void tool_done_fn(struct str result, const struct err *failed, void *ctx);

struct tool_kind {
    const char *name;
    struct tool_call *(*start)(struct tool *tool, struct loop *loop,
                               const struct tool_request *request, tool_done_fn *done,
                               void *ctx);
    void (*cancel)(struct tool_call *call); /* done will not be called */
    void (*free)(struct tool *tool);
};

/* What every kind's own struct begins with. */
struct tool {
    const struct tool_kind *kind;
    struct str name, description;
    struct str parameters;       /* JSON Schema of the arguments */
    const struct schema *schema; /* the same, read: arguments are checked before a call; NULL:
                                    anything goes */
    bool idempotent;             /* making a call twice does no harm */
    uint64_t timeout_ms;         /* how long a call may take, where no setting says it; the turn
                                    cancels what takes longer. 0: as the settings limit all */
};

static inline void tool_free(struct tool *tool) {
    if (tool) tool->kind->free(tool);
}

#endif
