/* session: one writer at a time for each conversation, and a queue of waiters.
 *
 * A run acquires its session before it asks a model and releases it when its turn is durable. A
 * run that waits for a tool lends its session. A turn that arrives meanwhile (perhaps from that
 * very tool) runs as its child, SESSION_DEPTH_MAX deep at most. The parent takes the session
 * back when its tools and its children are done. So two runs never wait for each other.
 *
 *     idle ─▶ waiting ─▶ held ⇄ lent ─▶ (released) idle
 *                          ▲      └─ children: held, lent, ... the last one on top
 *
 * A run that waits for a human parks: it releases the lease and leaves its journal here, so
 * that the session's next message finds it. Later it may be only in the store (dormant_wake.h).
 *
 * Where several replicas share the store, a session is first acquired from them, as a lease that
 * is given back when no turn needs it; its history is then read anew.
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
#include "session/pending_approvals.h"
#include "store/store.h"

struct session_table;
struct session;
struct session_stripe;
struct note;
struct lease;
struct journal;
struct directory;
struct idempotency_claims;
struct key_leases;
struct slots;

#define SESSION_DEPTH_MAX 3
#define SESSIONS_RESIDENT_MAX 10240 /* idle sessions in memory, in all stripes together */

/* A second turn on a held session: it waits (QUEUE), is refused with ERR_ABORTED (REJECT), or
 * waits while the caller cancels the runs before it (INTERRUPT). */
enum session_policy { SESSION_QUEUE, SESSION_REJECT, SESSION_INTERRUPT };

enum lease_state { LEASE_IDLE, LEASE_WAITING, LEASE_HELD, LEASE_LENT, LEASE_STATE_COUNT };

struct str lease_state_name(enum lease_state state);
bool lease_may_become(enum lease_state state, enum lease_state next);

struct lease_events {
    /* The session is yours: lease->history and ->parent are set. */
    void (*granted)(void *ctx);
    void (*refused)(const struct err *why, void *ctx);
    /* session_reclaim() returned false and the children are now done: call it again. */
    void (*children_done)(void *ctx);
};

struct lease {
    /* Set by the run. */
    struct loop *loop;
    uint64_t run;
    const struct lease_events *events;
    void *ctx;
    /* Valid while held or lent. */
    struct history *history; /* snapshot; owned by the lease until it is released */
    uint64_t parent;         /* the run that lent its session, or 0 */
    /* The table's. */
    enum lease_state state;
    struct session_stripe *stripe; /* set once; lives as long as the table */
    struct session *session;
    struct list link; /* in the session's waiters, or on its stack */
    struct lease *lender;
    enum session_policy policy;
    unsigned depth;
    size_t children;   /* granted and not yet released */
    bool wants_back;   /* session_reclaim() returned false */
    struct note *note; /* children_done, on its way */
    struct turn_record **child_records;
    size_t child_record_count;
    struct mail mail;
    struct err refusal;
};

/* `store` is borrowed. NULL: sessions live in memory only. */
struct session_table *session_table_new(struct store *store);
void session_table_free(struct session_table *table); /* no lease may be out */

/* How long a turn waits for a session that another replica holds (holding.h), at most. Only of a
 * shared store, and before the first turn. */
void session_table_wait(struct session_table *table, uint64_t wait_ms);

/* A loop ends: its turns get no more sessions from other replicas. Call on that loop, and once on
 * all before the store is closed. */
void session_table_leave(struct session_table *table, const struct loop *loop);

/* Forget idle sessions, the least recently used of each stripe first, until `bytes` of text are
 * freed or none is left. Returns the bytes freed. The next turn of such a session reads it from
 * the store again. Any thread, also while turns run; no lock of the table may be held. */
size_t session_table_shed(struct session_table *table, size_t bytes);

/* Forget the sessions that the store has and that were unused for `unused_ms`. Returns how
 * many. */
size_t session_table_tidy(struct session_table *table, uint64_t unused_ms);

/* The live runs. Lives as long as the table. */
struct directory *session_table_directory(struct session_table *table);

/* The keys of live runs; and the store, which may be NULL. */
struct idempotency_claims *session_table_claims(struct session_table *table);
struct store *session_table_store(struct session_table *table);
/* Keys among replicas; NULL: the store is not shared. And how long to wait for one of them. */
struct key_leases *session_table_key_leases(struct session_table *table);
uint64_t session_table_wait_ms(const struct session_table *table);
/* Counts and limits the running turns of each workspace. */
struct slots *session_table_slots(struct session_table *table);

/* The last id given to a run. All hosts that share the table share this counter. */
_Atomic uint64_t *session_table_last_run(struct session_table *table);

enum session_answer { SESSION_GRANTED, SESSION_WAITS, SESSION_REFUSED };

/* Ask for the session. GRANTED: the lease is held now. REFUSED: `e` says why (ERR_ABORTED by
 * policy, ERR_RESOURCE_EXHAUSTED too deep). WAITS: `granted` or `refused` is called later,
 * unless session_withdraw() returns true. */
MUST_CHECK enum session_answer session_acquire(struct session_table *table,
                                               const struct session_name *name,
                                               enum session_policy policy, struct lease *lease,
                                               struct err *e);

/* The runs that a waiting lease waits for: the one that has the session now and earlier
 * waiters. `max` at most; returns how many. */
size_t session_before(struct lease *lease, uint64_t *ret_runs, size_t max);

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

/* Drop everything the session remembers. Only while it is held. */
void session_forget(struct lease *lease);

/* Among replicas: the session is kept from the others as long as a run of it waits here for a
 * human, so that its next message comes here. `loop` is the caller's own. */
void session_hold(struct session_table *table, const struct session_name *name,
                  struct loop *loop);

/* The parked runs, for pending_approvals_list(). */
struct pending_approvals *session_table_approvals(struct session_table *table);

#endif
