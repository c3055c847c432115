/* dormant_wake: a run that waits for a human leaves memory, and comes back when a request needs
 * it.
 *
 *     waiting in memory ── unread for a while      ──▶ dormant: the store has it
 *            ▲                                                 │ a request means it,
 *            └────── restored from its events ◀───────────────┘ or its time is nearly over
 *
 * A request that may mean such a run first looks in memory. When that cannot tell
 * (PENDING_ASLEEP, or directory_find() returns false), it wakes the runs and looks again.
 *
 * Memory   opaque; dormant_wake_cancel() at any time before the answer, which ends it as well.
 * Threads  a wake belongs to the loop that asks; the runs to their hosts'.
 * Source   checks.md L2, K26.
 */
#ifndef WEIR_TURN_DORMANT_WAKE_H
#define WEIR_TURN_DORMANT_WAKE_H

#include "base/err.h"
#include "session/dormant_runs.h"

struct directory;
struct loop;
struct run;

/* --- leaving memory ----------------------------------------------------------------------- */

/* The run waits for a human from now on. It leaves memory after engine->limits.approval_doze_ms
 * without a reader, if its host has a store. Call on the host's loop. */
void dormant_wake_watch(struct run *run);

/* A host's timer: check the waiting runs. */
void dormant_wake_look(void *ctx);

/* The host goes away: leave its dormant runs to the next process. */
void dormant_wake_forget(struct run_host *host);

/* --- coming back -------------------------------------------------------------------------- */

struct dormant_wake;

/* Called once, later: all matching runs can be found now, except as `failed` says. */
typedef void dormant_wake_fn(const struct err *failed, void *ctx);

#define DORMANT_WAKE_MAX 1000 /* the first of the matching runs */

/* Bring the matching runs back. NULL: none matches, and no answer comes. `loop` is the caller's
 * own. */
MUST_CHECK struct dormant_wake *dormant_wake_start(struct directory *directory,
                                                   const struct dormant_filter *filter,
                                                   size_t max, struct loop *loop,
                                                   dormant_wake_fn *on_awake, void *ctx);
void dormant_wake_cancel(struct dormant_wake *wake); /* no answer comes; NULL is fine */

#endif
