/* turn: the parts of a run: a record, a conversation, and the parts of its turn.
 *
 * Each part is a struct with its own header and source file. This header has struct run, which
 * holds them, and the functions of run.c that the parts share.
 *
 * Memory   the run owns its parts; texts that are kept live in its arena.
 * Threads  the loop of its host.
 * Source   run.h; docs/internals/turn.md. Private to turn/. */
#ifndef WEIR_TURN_TURN_H
#define WEIR_TURN_TURN_H

#include "base/arena.h"
#include "conversation/conversation.h"
#include "record/record.h"
#include "turn/admission.h"
#include "turn/approval.h"
#include "turn/await_tools.h"
#include "turn/caller_tools.h"
#include "turn/calls.h"
#include "turn/compaction.h"
#include "turn/detached.h"
#include "turn/guarded.h"
#include "turn/long_reply.h"
#include "turn/measure.h"
#include "turn/model_round.h"
#include "turn/own_calls.h"
#include "turn/request.h"
#include "turn/spending.h"
#include "turn/structured_output.h"
#include "turn/tool_round.h"

struct run {
    unsigned refs;
    enum run_state state;
    struct list link; /* in host->runs */

    /* What each piece of a reply touches stands together: with hundreds of turns none of it stays in a
     * cache until the next piece. */
    const struct agent *agent; /* the current one */
    bool ending_begun;         /* its last events are being written */
    struct long_reply long_reply;
    struct measure measure;
    struct guarded guarded;
    struct model_round model_round;
    struct spending spending;
    struct record record;

    /* As the model sees it: history, then this turn. */
    struct conversation conversation;
    struct history *seen; /* the snapshot that `conversation` borrows from */
    bool seen_hidden;     /* it belongs before `conversation`, and nothing has read it yet */
    struct arena *arena;

    /* The turn, and how it ends. */
    struct timer limit;    /* turn_max_ms */
    struct buf turns;      /* for EVENT_DONE */
    struct str end_reason; /* of a failure; in the arena */

    /* Its parts. */
    struct turn_request request;
    struct caller_tools caller_tools;
    struct admission admission;
    struct await_tools await_tools;
    struct compaction compaction;
    struct calls calls;
    struct own_calls own_calls;
    struct approval approval;
    struct detached detached;
};

/* Bytes of the reply's text so far, in memory or in the store. */
static inline size_t run_reply_bytes(const struct run *run) {
    return run->long_reply.stored_bytes + conversation_reply_len(&run->conversation);
}

/* Count `bytes` more of the reply. False: the run has reached a limit of its agent and has
 * failed. A budget never ends a call. */
static inline bool run_use(struct run *run, size_t bytes) {
    struct spending *spending = &run->spending;
    spending->output_bytes += bytes;
    return spending->output_bytes - spending->output_checked < SPENDING_STEP_BYTES ||
           run_use_step(run);
}

/* The same for what the model thinks, and may count apart. */
static inline bool run_use_thinking(struct run *run, size_t bytes) {
    run->spending.thinking_bytes += bytes;
    return run_use(run, bytes);
}

/* --- run.c -------------------------------------------------------------------------------- */

/* The state in which a run begins: all zero for a new one; for a restored one, what an earlier
 * process left. */
struct run_left {
    uint64_t id, last_seq;
    enum run_state state;
};

/* The run holds a reference to itself. */
struct run *run_new(struct run_host *host, struct engine *engine, const struct agent *agent,
                    struct run_left left);

/* Drop a run that was never visible to anyone. */
void run_discard(struct run *run);

void run_enter_directory(struct run *run);

/* Drop a run that waits for a human and can no longer be found; the store has it. */
void run_leave_to_store(struct run *run);

/* The run has its session: append the first event and ask the model. */
void run_begin(struct run *run);

/* The only function that writes run->state after run_new(). */
void run_move(struct run *run, enum run_state next);

/* Append `event` with its time and, unless it names one, its agent, and apply it to the
 * conversation. Returns 0 and appends nothing if the run's memory is full; the run then
 * fails. */
uint64_t run_append(struct run *run, struct event *event);

/* The same for several texts, whose agent is set. The run's memory holds all of them or none. */
uint64_t run_append_texts(struct run *run, struct event_texts *texts);

/* The same as run_append() for texts that live as long as the run. */
uint64_t run_append_kept(struct run *run, struct event *event);

/* The schema of the turn's answer, or NULL. */
static inline const struct schema *run_schema(const struct run *run) {
    return run->request.schema ? run->request.schema : run->agent->schema;
}

/* Keep a copy in the run's arena. False: its limit is reached, and the run fails. */
bool run_keep(struct run *run, struct str text, struct str *ret);

/* Fail the run because its memory limit is reached. */
void run_fail_memory(struct run *run);

/* End the run. Harmless if it is ending already. */
void run_done(struct run *run);
void run_fail(struct run *run, enum err_code code, struct str reason, struct str message);

/* Like run_cancel(), because the caller left: a repeat with the same key may begin a new
 * run. */
void run_cancel_left(struct run *run, struct str why);

#endif
