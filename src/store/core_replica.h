/* core_replica: a store in PostgreSQL that several processes write to.
 *
 * Each process is a replica with a number that no other one ever had: its fencing number. Its
 * row in the table `replica` says until when it is alive, by the server's clock; replica_watch.h
 * renews it. A replica whose time is over is fenced by another one, which takes what it held
 * (takeover.h).
 *
 * One transaction at a time writes: it holds a lock of the server until it ends, and looks at
 * its replica's row first. Fencing takes the same lock. So what a fenced replica writes is
 * refused, however late it notices, and the log has one order with no gap, as that of a store
 * with one process.
 *
 *     BEGIN ─▶ lock ─▶ am I fenced? what did others write? ─▶ rows ─▶ count, NOTIFY ─▶ COMMIT
 *
 * A commit whose answer was lost is found again by the replica's count of commits: a new
 * connection first waits for the lock, and so for the end of the old one's transaction.
 *
 * Memory   none.
 * Threads  the store's.
 */
#ifndef WEIR_STORE_CORE_REPLICA_H
#define WEIR_STORE_CORE_REPLICA_H

#include "store/core.h"

/* For the SQL of this schema. */
#define REPLICA_LOCK "pg_advisory_xact_lock(1935764852, hashtext(current_schema()))"
/* The channel of notifications: "weir_" and these digits. */
#define REPLICA_CHANNEL "'weir_' || to_hex(hashtext(current_schema()))"

/* Whether the store is shared with other processes. */
static inline bool core_is_shared(const struct core *core) {
    return core->replica.shared;
}

/* Become a replica: core->epoch is its number. One of the same name is fenced.
 * errors  ERR_UNAVAILABLE; ERR_RESOURCE_EXHAUSTED too many replicas */
MUST_CHECK bool core_replica_register(struct core *core, const struct store_options *options,
                                      struct err *e);

/* On a new connection: wait for the end of what the old one did, and see how much was kept. */
MUST_CHECK bool core_replica_resume(struct core *core, struct err *e);

/* Prepare what follows. */
MUST_CHECK bool core_replica_prepare(struct core *core, struct err *e);
void core_replica_close(struct core *core);

/* Begin a transaction that writes, and take over what others have written.
 * errors  ERR_UNAVAILABLE also when this replica was fenced: core->replica.lost */
MUST_CHECK bool core_replica_begin(struct core *core, struct err *e);

/* The last step before COMMIT: count it, and tell all replicas if it `wrote` to the log or its
 * tasks changed what they wait for. */
MUST_CHECK bool core_replica_count(struct core *core, bool wrote, struct err *e);

/* Without a transaction: see how far the log and the tables are. */
MUST_CHECK bool core_replica_look(struct core *core, struct err *e);

/* This replica ends in order: it is fenced, and the others are notified; one of them takes
 * what it held. */
MUST_CHECK bool core_replica_leave(struct core *core, struct err *e);

#endif
