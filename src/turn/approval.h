/* approval: the question a turn asks a human, and the wait for the answer.
 *
 * Either the model asks the human a question, or a call it requests needs approval. All calls
 * of a reply are recorded when the reply comes. Calls that need no approval are made at once.
 * The turn then asks about the others one at a time, each with a deadline:
 *
 *     working ─▶ waiting ─▶ working (the call is made, or refused) ─▶ waiting ... ─▶ asking
 *
 * Memory   inside its run, which ends it with approval_done(); the texts are in the run's arena. A
 *          parked entry holds a reference to the run.
 * Threads  the loop of its run.
 * Source   docs/internals/turn.md; pending_approvals.h; decision.h.
 */
#ifndef WEIR_TURN_APPROVAL_H
#define WEIR_TURN_APPROVAL_H

#include "session/decision.h"
#include "session/idempotency_claims.h"
#include "session/pending_approvals.h"
#include "turn/calls.h"

#define ASIDE_PRINTS_MAX 8

struct approval {
    struct str question;
    struct str id;                   /* the question's own, when it guards a call */
    struct turn_call *guarded;       /* the call that needs approval; NULL: the model asks */
    bool by_model;                   /* the model asks */
    size_t index;                    /* of its call */
    uint64_t asked_ms;               /* when it was asked, by the loop's clock */
    uint64_t stays_until_ms;         /* from then on it may leave memory */
    struct pending_approval *parked; /* owned; NULL: it has not waited yet */
    bool forgoes;                    /* it waits no longer, and ends without its session */
    struct str answer;               /* the human's words, once the run has its session again */
    struct claim *keys;              /* claims of the keys that answers came with */
    size_t aside_bytes;              /* of words that decided nothing */
    /* Of the requests that brought them; the oldest goes. Of ASIDE_PRINTS_MAX, in the run's
     * arena; NULL before the first. */
    struct str *prints;
    size_t print_count; /* so far */
};

void approval_done(struct approval *approval);

/* Ask about `call`. The run waits once the question is on disk. */
void run_ask_human(struct run *run, struct turn_call *call);

/* Record the human's answer (run->approval.answer). The call may be made once that is on disk.
 * False: the run has failed. */
bool run_take_decision(struct run *run, struct decision *ret);

/* The question is on disk: wait for the answer outside the session. */
void run_park(struct run *run);

/* Leave the run where the session's next message finds it, until its deadline. It holds no
 * session meanwhile and keeps none in memory. */
void run_wait_for_human(struct run *run);

/* The deadline passed without an answer. */
void run_work_expired(struct run *run);

/* The turn ends, perhaps while it waits. Until it is over no new turn has its session. */
void run_stop_waiting_for_human(struct run *run);

/* The run is over: new turns of its session do not wait for it any more. */
void run_forgo_session(struct run *run);

/* The human has answered and the run has its session again. */
void run_work_answered(struct run *run);

/* --- answers.c: what comes beside a decision ---------------------------------------------- */

/* A live run's `say`. */
void run_hear(struct str words, struct str print, void *ctx);

/* Words came with a request of this print. False: the run's memory is full, and it fails. */
bool run_note_print(struct run *run, struct str print);

/* A parked run's `lookup`; and, once the run is over, remove those claims. */
void run_take_key(struct claim *claim, void *ctx);
void run_drop_keys(struct run *run);

#endif
