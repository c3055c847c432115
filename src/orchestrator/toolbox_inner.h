/* toolbox_inner: one call of a tool that asks the database. Private to toolbox.c, questions.c and
 * blueprint.c.
 *
 * Threads  the orchestrator's loop.
 */
#ifndef WEIR_ORCHESTRATOR_TOOLBOX_INNER_H
#define WEIR_ORCHESTRATOR_TOOLBOX_INNER_H

#include "base/arena.h"
#include "orchestrator/toolbox.h"

/* After the name of a text. */
#define NO_NUL "has a NUL (U+0000), which the database cannot hold; leave it out"

struct tool_use {
    struct orchestrator *orchestrator;
    struct orchestrator_call *call;
    bool left; /* no caller gets the answer, but the audit log has it */
    struct orchestrator_call_view view; /* its texts are in the arena */
    struct arena *arena;
    struct workspace *workspace; /* NULL: not found yet */
    void (*found)(struct tool_use *use);
    struct str id; /* of what it makes */
};

/* Look the caller's workspace up, with this conversation or none, then call `found`, which ends
 * it. */
void tool_use_start(struct orchestrator_call *call, const struct orchestrator_call_view *view,
                    struct orchestrator *orchestrator, struct str conversation,
                    void (*found)(struct tool_use *use));
/* Ask, or ask what only reads (readers.h); `done` has the use as its ctx and ends it. */
void tool_use_read(struct tool_use *use, struct query *query, query_done_fn *done);
void tool_use_ask(struct tool_use *use, struct query *query, query_done_fn *done);
/* Answer, and end it. */
void tool_use_answer(struct tool_use *use, struct str json);
void tool_use_fail(struct tool_use *use, struct str text);
/* Whether it goes on: nothing failed, and a caller waits for it. Otherwise it has ended. */
bool tool_use_answered(struct tool_use *use, const struct err *failed);

/* A text among the arguments, or empty. */
struct str tool_use_text(const struct tool_use *use, const char *key);

/* --- questions.c, blueprint.c ------------------------------------------------------------------ */

orchestrator_tool_fn questions_ask;
void blueprint_serve(struct orchestrator_blueprint *blueprint, struct str workspace,
                     struct str user, void *ctx);

#endif
