/* approval: what a turn asks a human, and waits for.
 *
 * Either the model asks him something, or a call that the model asks for needs his word. All
 * calls of a reply are recorded when it comes. Those that need nobody are made at once; then
 * the others are asked about, one after the other, each with a deadline:
 *
 *     working ─▶ waiting ─▶ working (the call is made, or refused) ─▶ waiting ... ─▶ asking
 *
 * Memory   a plain value inside its run; the texts are in the run's arena. What is parked holds
 *          a reference to the run.
 * Threads  the loop of its run.
 * Source   docs/internals/turn.md; parking.h; decision.h.
 */
#ifndef WEIR_RUN_APPROVAL_H
#define WEIR_RUN_APPROVAL_H

#include "run/calls.h"
#include "run/claims.h"
#include "run/decision.h"
#include "run/parking.h"

struct approval {
    struct str question;
    struct str id;             /* when it guards a call: the question's own */
    struct turn_call *guarded; /* the call that waits for it; NULL: the model asks */
    bool by_model;             /* the model asks */
    size_t index;              /* of its call */
    uint64_t asked_ms;         /* when it was asked, by the loop's clock */
    uint64_t stays_until_ms;   /* from then on it may leave memory */
    struct parked parked;
    struct str answer;  /* the human's words, once the session is ours again */
    struct claim *keys; /* that answers came with */
    size_t aside_bytes; /* said beside its questions */
};

/* Ask about it: once that is on disk, the run waits. */
void run_ask_human(struct run *run, struct turn_call *call);

/* He has answered (run->approval.answer): record it. When that is on disk the call may be made.
 * False: the run has failed. */
bool run_take_decision(struct run *run, struct decision *ret);

/* The question is on disk: wait for him, outside the session. */
void run_park(struct run *run);

/* Leave the run where the session's next message finds it, until its deadline. It needs no
 * session for that, and none stays in memory for it. */
void run_wait_for_human(struct run *run);

/* Nobody answered in time. */
void run_work_expired(struct run *run);

/* The session is ours again and the human has answered. */
void run_work_answered(struct run *run);

/* --- answers.c: what comes beside a decision ---------------------------------------------- */

/* A live run's `say`. */
void run_hear(struct str words, void *ctx);

/* A parked run's `keyed`; and the run is over: nobody alive has them any more. */
void run_take_key(struct claim *claim, void *ctx);
void run_drop_keys(struct run *run);

#endif
