/* spending: the cost of a turn's model calls, before, during and after each call.
 *
 *     reserve ─▶ (waits for its budget) ─▶ made: use, use ... ─▶ one usage event, and settled
 *
 * The cost of each call is reserved on the budgets before the call is made, and settled once,
 * with what the provider counted or with an estimate. The agent's limits are checked in
 * between.
 *
 * Memory   inside its run, with what few calls need on the heap. Nothing may be reserved or
 *          waited for when the run goes.
 * Threads  the loop of its run.
 * Source   ledger.h; docs/accounting.md.
 */
#ifndef WEIR_TURN_SPENDING_H
#define WEIR_TURN_SPENDING_H

#include "budget/ledger.h"
#include "loop/loop.h"
#include "record/turn_line.h"

struct run;
struct budgeted; /* in spending.c */

struct spending {
    struct budgeted *budgeted; /* what its calls hold of budgets; NULL: none was needed */
    size_t prompt_bytes;       /* of the call in flight, for estimates */
    size_t output_bytes;       /* its reply and thinking so far */
    size_t thinking_bytes;     /* the part of them that is thinking */
    size_t output_checked;     /* the part of them that the ledger was asked about */
    struct amount spent;       /* by the turn's earlier calls */
    struct turn_sums sums;     /* the known usage of all calls */
    bool usage_due;            /* the call was made and has no usage event yet */
    bool usage_noted;          /* its provider has counted: */
    struct event_usage *usage; /* in the run's arena */
};

void spending_done(struct run *run);

/* Whether the agent's limits would allow calls of so many bytes besides what was spent. */
bool run_limits_allow(const struct run *run, uint64_t prompt_len, uint64_t output_len);

/* Reserve what the call may cost. False: a budget is used up, and the run has failed or asks without
 * the summary that this call was for; or it waits for other calls to end and run_make_call()
 * follows. */
bool run_reserve(struct run *run);

/* Stop waiting for a budget. */
void run_stop_reserving(struct run *run);

/* Usage is reported to the ledger, and the agent's limits are checked, once per this many
 * bytes. */
#define SPENDING_STEP_BYTES 1024
bool run_use_step(struct run *run); /* of run_use(), in turn.h */

/* Whether anything needs to know the usage before the call is over. */
bool run_is_watched(const struct run *run);

/* Take the provider's count for the call in flight. Later counts are ignored. */
void run_note_usage(struct run *run, const struct event_usage *usage);

/* The reply of `model` is over: append its usage event, if it has none yet. False: the run is
 * ending. */
bool run_end_usage(struct run *run, struct str model);

/* We cut the call short: settle what was sent and received by estimate. Harmless when no call
 * is open. */
void run_settle_cut(struct run *run);

/* The provider failed: the same, but a call that returned nothing cost nothing. */
void run_settle_failed(struct run *run);

/* Count a call that this turn made in an earlier process. */
void run_count_usage(struct run *run, const struct event_usage *usage);

#endif
