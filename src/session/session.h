/* session: one writer at a time for each conversation, and a queue of waiters.
 *
 * A run acquires its session before it asks a model and releases it when its turn is durable. A
 * run that waits for a tool lends its session. A turn that arrives meanwhile (perhaps from that
 * very tool) runs as its child, SESSION_DEPTH_MAX deep at most. The parent takes the session
 * back when its tools and its children are done. So two runs never wait for each other.
 *
 * A run that waits for a human parks: it releases the lease and leaves its journal here, so
 * that the session's next message finds it. Later it may be only in the store (dormant_wake.h).
 *
 * Where several replicas share the store, a session is first acquired from them, as a lease that
 * is given back when no turn needs it; its history is then read again.
 *
 * A session's history is read from the store when it is first needed, and dropped from memory
 * when it has been unused for long. The store keeps it.
 *
 * Memory   a lease belongs to its run; each call says how long it must live.
 * Threads  any loop; striped locks inside. Callbacks come on the lease's own loop.
 * Source   design.md "The run"; checks.md K11, K23.
 */
#ifndef WEIR_SESSION_SESSION_H
#define WEIR_SESSION_SESSION_H

#include "session/history.h"
#include "session/lease.h"
#include "session/session_table.h"

#define SESSION_DEPTH_MAX 3

/* A second turn on a held session: it waits (QUEUE), is refused with ERR_ABORTED (REJECT), or
 * waits while the caller cancels the runs before it (INTERRUPT); those of another replica are asked
 * to make way (store/interrupting.h). */
enum session_policy { SESSION_QUEUE, SESSION_REJECT, SESSION_INTERRUPT };

enum session_answer { SESSION_GRANTED, SESSION_WAITS, SESSION_REFUSED };

/* Ask for the session. GRANTED: the lease is held now. REFUSED: `e` says why (ERR_ABORTED by
 * policy, ERR_RESOURCE_EXHAUSTED too deep). WAITS: `granted` or `refused` is called later,
 * unless session_withdraw() returns true. */
MUST_CHECK enum session_answer session_acquire(struct session_table *table,
                                               const struct session_name *name,
                                               enum session_policy policy, struct lease *lease,
                                               struct err *e);

/* The same for a run that had the session before it waited for a human, and that was answered
 * (waiting.h): it comes before all turns that have not begun. */
MUST_CHECK enum session_answer session_return(struct session_table *table,
                                              struct pending_approval *parked,
                                              struct lease *lease, struct err *e);

/* A run that was answered, or waits no longer, has ended; session_remember() has its record. */
void session_forgo(struct session_table *table, struct pending_approval *parked);

/* The runs that a waiting lease waits for: the one that has the session now, earlier waiters,
 * and those that were answered and are about to return. `max` at most; returns how many. */
size_t session_before(struct lease *lease, uint64_t *ret_runs, size_t max);

/* The runs of a session that make way for the newer run `run` of another replica: the same, of those
 * that are older than it. A run that has lent the session stays, because what arrives here would run
 * inside it, and because that run may come from its own tool. */
size_t session_older(struct session_table *table, const struct session_name *name, uint64_t run,
                     uint64_t *ret_runs, size_t max);

/* Stop waiting. False: too late, an answer is on its way and must be awaited. */
MUST_CHECK bool session_withdraw(struct lease *lease);

/* Lend the session while the run waits for a tool. `so_far` (taken) is what a child sees: the
 * lease's history and this turn's messages without the open calls. */
void session_lend(struct lease *lease, struct history *so_far);

/* Take it back. False while children run: children_done follows. */
MUST_CHECK bool session_reclaim(struct lease *lease);

/* Release the session. `record` (taken) is what it should remember of this turn: it goes to the
 * session's history, or to the lender, followed by the records of its children. NULL: nothing
 * of this turn. children_done is not called any more. */
void session_release(struct lease *lease, struct turn_record *record);

/* Remember `record` (taken) for a run that released its session earlier, to wait for a
 * human. */
void session_remember(struct session_table *table, const struct session_name *name,
                      struct turn_record *record);

/* Among replicas: the session is kept from the others as long as a run of it waits here for a
 * human, so that its next message comes here. `loop` is the caller's own. */
void session_hold(struct session_table *table, const struct session_name *name,
                  struct loop *loop);

/* The lease (store/lease.h) of a session among replicas. */
struct lease_key session_lease_key(const struct session_name *name);

/* Drop everything the session remembers. Only while it is held. */
void session_forget(struct lease *lease);

#endif
