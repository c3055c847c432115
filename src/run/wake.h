/* wake: a run that waits for a human leaves memory, and comes back when somebody wants it.
 *
 *     waiting in memory ── nobody reads it for a while ──▶ dormant: the store has it
 *            ▲                                                 │ a request means it,
 *            └─────── made anew from its events ◀──────────────┘ or its time is nearly over
 *
 * A request that may mean such a run looks as if all were in memory, and finds out that it does
 * not know (PARKING_ASLEEP, directory_find() false): then it wakes them and looks once more.
 *
 * Memory   opaque; wake_cancel() at any time before the answer, which ends it as well.
 * Threads  a wake belongs to the loop that asks; the runs to their hosts'.
 * Source   checks.md L2, K26.
 */
#ifndef WEIR_RUN_WAKE_H
#define WEIR_RUN_WAKE_H

#include "base/err.h"
#include "run/dormant.h"

struct directory;
struct loop;
struct run;

/* --- to sleep ----------------------------------------------------------------------------- */

/* The run waits for a human from now on: after engine->limits.approval_doze_ms without a reader
 * it goes, if its host has a store. The host's loop. */
void wake_watch(struct run *run);

/* The timer of a host: a look at those that wait. */
void wake_look(void *ctx);

/* The host goes away: its dormant runs are left to the next process. */
void wake_forget(struct run_host *host);

/* --- and back ----------------------------------------------------------------------------- */

struct wake;

/* Once, later: all that were meant can be found, but for what `failed` says. */
typedef void wake_fn(const struct err *failed, void *ctx);

#define WAKE_MAX 1001 /* of those that are meant, the first */

/* Bring them back. NULL: nobody is meant, and no answer comes. `loop` is the caller's own. */
MUST_CHECK struct wake *wake_start(struct directory *directory,
                                   const struct dormant_filter *filter, size_t max,
                                   struct loop *loop, wake_fn *on_awake, void *ctx);
void wake_cancel(struct wake *wake); /* no answer comes; NULL is fine */

#endif
