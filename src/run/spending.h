/* spending: what the model calls of a turn cost, before, while and after they are made.
 *
 *     reserve ─▶ (waits for its budget) ─▶ made: use, use ... ─▶ one usage event, and settled
 *
 * Each call has its cost reserved on the budgets before it is made and is settled once, with
 * what the provider counted or with an estimate. The limits of the agent are looked at
 * meanwhile.
 *
 * Memory   a plain value inside its run; nothing may be reserved or waited for when that goes.
 * Threads  the loop of its run.
 * Source   ledger.h; docs/accounting.md.
 */
#ifndef WEIR_RUN_SPENDING_H
#define WEIR_RUN_SPENDING_H

#include "loop/loop.h"
#include "run/ledger.h"
#include "run/turn_line.h"

struct run;

struct spending {
    struct reservation reserved; /* for the call that is out */
    struct ledger_wait budget;   /* before it: its turn at what is left of a budget */
    bool waits;                  /* for that; the answer, or who withdraws, drops a reference */
    struct timer limit;          /* no longer than that */
    size_t prompt_bytes;         /* of that call, for estimates */
    size_t output_bytes;         /* of its reply and thinking so far */
    size_t output_told;          /* of them, what the ledger has heard of */
    struct amount spent;         /* on the calls before it */
    struct turn_sums sums;       /* what is known of all of them */
    bool usage_due;              /* it was made, and has no usage event yet */
    bool usage_noted;            /* its provider has counted: */
    struct event_usage usage;
};

/* All zero, but for a timer. */
void spending_init(struct run *run);

/* Reserve what the call may cost. False: the run has failed, because a budget is used up, or it
 * waits for others to end, and run_make_call() follows. */
bool run_reserve(struct run *run);

/* Give up waiting for that. */
void run_stop_reserving(struct run *run);

/* So many bytes of the reply have come. False: a limit of the agent is reached, and the run has
 * failed. A budget never ends a call. */
bool run_use(struct run *run, size_t bytes);

/* What the provider counted of the call that is out. Only the first one counts. */
void run_note_usage(struct run *run, const struct event_usage *usage);

/* The reply is over, and `model` gave it: its usage event, if it has none yet. False: the run
 * is ending. */
bool run_end_usage(struct run *run, struct str model);

/* We cut it short: what was asked and heard of it is settled by estimate. Harmless when no call
 * is open. */
void run_settle_cut(struct run *run);

/* The provider failed: likewise, but a call of which nothing was heard cost nothing. */
void run_settle_failed(struct run *run);

/* A call of an earlier process, of this turn. */
void run_count_usage(struct run *run, const struct event_usage *usage);

#endif
