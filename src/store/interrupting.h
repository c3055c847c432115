/* interrupting: a turn wishes to take the place of those of its session at other replicas.
 *
 *     another replica has the session ─▶ wished, again and again ─▶ the session is had: gone
 *                                          └▶ each replica ends its older turns of the session
 *
 * A wish is a record of kept.h, one for each session of a replica. It names a run: what is older makes
 * way, whether it has the session or waits for it. Runs number themselves by the time (record.h), so
 * those that came after it stay.
 *
 * Memory   requests are copied; an answer is borrowed during the callback.
 * Threads  the caller's loop.
 */
#ifndef WEIR_STORE_INTERRUPTING_H
#define WEIR_STORE_INTERRUPTING_H

#include "store/lease.h"

struct interrupting {
    uint64_t run;           /* older ones are to end */
    struct lease_key lease; /* of the session, to wish */
    struct str workspace, user, session;
};

/* Wish it, or wish it again: all hear of it. A failure is only logged. */
void interrupting_wish(struct store *store, struct loop *home, const struct interrupting *wish);

/* This replica wishes nothing more of the session. */
void interrupting_end(struct store *store, struct loop *home, const struct lease_key *lease);

struct interrupting_ask;
typedef void interrupting_fn(const struct interrupting *wishes, size_t count,
                             const struct err *failed, void *ctx);

#define INTERRUPTING_MAX 1024 /* that are read */

/* Those of the other replicas. `done` is called once, later, unless
 * interrupting_forget() comes first. */
struct interrupting_ask *interrupting_read(struct store *store, struct loop *home,
                                           interrupting_fn *done, void *ctx);
void interrupting_forget(struct interrupting_ask *ask); /* NULL is fine */

#endif
