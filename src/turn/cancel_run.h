/* cancel_run: cancel a run by its id, wherever it is.
 *
 *     live here ──────────────────────────────────────▶ ASKED
 *     asleep here, as it waits for a human ─▶ woken ──▶ ASKED
 *     else, in a store that replicas share ─▶ wished ─▶ ASKED, or OVER
 *     else ───────────────────────────────────────────▶ OVER
 *
 * A wish (store/cancelling.h) is on disk before the answer, and outlives the replica that has the
 * run. What came of it is in the run's log: a run may end by itself before it hears of it.
 *
 * Memory   opaque; cancel_run_forget() at any time before the answer, which ends it as well.
 * Threads  the loop that asks.
 */
#ifndef WEIR_TURN_CANCEL_RUN_H
#define WEIR_TURN_CANCEL_RUN_H

#include "base/err.h"
#include "session/session_table.h"

struct cancel_run;
struct loop;

enum cancel_run_answer {
    CANCEL_RUN_ASKED, /* it ends now, unless it is just ending by itself */
    CANCEL_RUN_OVER,  /* it has ended, or there is no such run */
    CANCEL_RUN_FAILED /* it cannot be brought back, or the store cannot say: `failed` */
};

typedef void cancel_run_fn(enum cancel_run_answer answer, const struct err *failed, void *ctx);

/* `why` is copied. `done` is called once, never before this returns. */
struct cancel_run *cancel_run_start(struct session_table *sessions, struct loop *loop,
                                    uint64_t run, struct str why, cancel_run_fn *done,
                                    void *ctx);

/* `done` will not be called. A run that is asleep may stay so; any other is cancelled all the same.
 * NULL is fine. */
void cancel_run_forget(struct cancel_run *cancel);

/* For those who do not wait for the answer. Without effect on a run that is asleep, unless the store
 * is shared. */
void cancel_run_send(struct session_table *sessions, struct loop *loop, uint64_t run,
                     struct str why);

#endif
