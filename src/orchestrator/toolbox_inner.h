/* toolbox_inner: one call of a tool that asks the database. Private to toolbox.c, questions.c and
 * blueprint.c.
 *
 * Threads  the orchestrator's loop.
 */
#ifndef WEIR_ORCHESTRATOR_TOOLBOX_INNER_H
#define WEIR_ORCHESTRATOR_TOOLBOX_INNER_H

#include "base/arena.h"
#include "orchestrator/toolbox.h"

struct tool_use {
    struct orchestrator *orchestrator;
    struct orchestrator_call *call; /* NULL: no answer is wanted */
    struct orchestrator_call_view view;
    struct arena *arena;         /* of its answer's parts */
    struct workspace *workspace; /* NULL: not found yet */
    void (*found)(struct tool_use *use);
    struct str id; /* of what it makes */
};

/* Look the caller's workspace up, with this conversation or none, then call `found`, which ends
 * it. */
void tool_use_start(struct orchestrator_call *call, const struct orchestrator_call_view *view,
                    struct orchestrator *orchestrator, struct str conversation,
                    void (*found)(struct tool_use *use));
/* Ask; `done` has the use as its ctx and ends it. */
void tool_use_ask(struct tool_use *use, struct query *query, query_done_fn *done);
/* Answer, if that is wanted, and end it. */
void tool_use_answer(struct tool_use *use, struct str json);
void tool_use_fail(struct tool_use *use, struct str text);
/* Whether there is something to answer with; otherwise it has ended. */
bool tool_use_answered(struct tool_use *use, const struct err *failed);

/* A text among the arguments, or empty. */
struct str tool_use_text(const struct tool_use *use, const char *key);
bool tool_use_flag(const struct tool_use *use, const char *key);

/* --- questions.c, blueprint.c ------------------------------------------------------------------ */

orchestrator_tool_fn questions_ask;
void blueprint_serve(struct orchestrator_blueprint *blueprint, struct str workspace,
                     struct str user, void *ctx);

#endif
