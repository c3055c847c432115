/* turn: what a run is made of: a record, a conversation, and the parts of its turn.
 *
 * Each part is a struct with a header and a file of its own. Here are struct run, which holds
 * them, and the services of run.c that the parts share.
 *
 * Memory   the run owns its parts; texts that are kept live in its arena.
 * Threads  the loop of its host.
 * Source   run.h; docs/internals/turn.md. Private to run/.
 */
#ifndef WEIR_TURN_TURN_H
#define WEIR_TURN_TURN_H

#include "base/arena.h"
#include "conversation/conversation.h"
#include "record/record.h"
#include "turn/admission.h"
#include "turn/approval.h"
#include "turn/await_tools.h"
#include "turn/calls.h"
#include "turn/compaction.h"
#include "turn/detached.h"
#include "turn/guarded.h"
#include "turn/long_reply.h"
#include "turn/model_round.h"
#include "turn/request.h"
#include "turn/spending.h"
#include "turn/structured_output.h"
#include "turn/tool_round.h"

struct run {
    unsigned refs;
    enum run_state state;
    struct list link; /* in host->runs */
    struct record record;

    /* As the model sees it: history, then this turn. */
    struct conversation conversation;
    struct history *seen; /* the snapshot that `conversation` borrows from */
    struct arena *arena;

    /* The turn: who has it, and how it ends. */
    const struct agent *agent;
    struct timer limit;    /* turn_max_ms */
    bool ending_begun;     /* its last events are being written */
    struct buf turns;      /* for EVENT_DONE */
    struct str end_reason; /* of a failure; kept */

    /* Its parts. */
    struct turn_request request;
    struct admission admission;
    struct guarded guarded;
    struct await_tools await_tools;
    struct model_round model_round;
    struct long_reply long_reply;
    struct spending spending;
    struct compaction compaction;
    struct calls calls;
    struct approval approval;
    struct detached detached;
};

/* --- run.c -------------------------------------------------------------------------------- */

/* Where a run begins: a new one with all zero, another one where an earlier process left it. */
struct run_left {
    uint64_t id, last_seq;
    enum run_state state;
};

/* It holds itself. */
struct run *run_new(struct run_host *host, struct engine *engine, const struct agent *agent,
                    struct run_left left);

/* One that never was, as far as anybody has seen. */
void run_discard(struct run *run);

void run_enter_directory(struct run *run);

/* One that waits for a human and that nobody can find any more: the store has it. */
void run_let_go(struct run *run);

/* The session is ours: its first event, and its first question. */
void run_begin(struct run *run);

/* The only function that writes run->state, once run_new() has said where it begins. */
void run_move(struct run *run, enum run_state next);

/* Append `event` with its time and, unless it names one, its agent, and fold it into the
 * conversation. 0, and nothing appended: the run's memory is full, and it fails. */
uint64_t run_append(struct run *run, struct event *event);

/* The same, of texts that live as long as the run. */
uint64_t run_append_kept(struct run *run, struct event *event);

/* What the turn's answer must follow, or NULL. */
static inline const struct schema *run_schema(const struct run *run) {
    return run->request.schema ? run->request.schema : run->agent->schema;
}

/* Keep a copy in the run's arena; false, and the run fails, at its limit. */
bool run_keep(struct run *run, struct str text, struct str *ret);

/* Fail it, because what it holds has reached its limit. */
void run_fail_memory(struct run *run);

/* End it. Harmless when it is ending already. */
void run_done(struct run *run);
void run_fail(struct run *run, enum err_code code, struct str reason, struct str message);

/* As run_cancel(), because its caller left: he may ask again with the same key. */
void run_cancel_left(struct run *run, struct str why);

#endif
