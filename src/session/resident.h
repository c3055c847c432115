/* resident: a session in memory, and its place among the others of its stripe.
 *
 * A session is busy while a lease holds it or waits for it, else idle. The idle ones of a stripe
 * are in a list, the least recently used first, and are forgotten in that order.
 *
 * Memory   the stripe owns its sessions.
 * Threads  each function needs the lock of the stripe, unless it says otherwise.
 */
#ifndef WEIR_SESSION_RESIDENT_H
#define WEIR_SESSION_RESIDENT_H

#include "base/map.h"
#include "base/striped.h"
#include "base/text.h"
#include "session/history.h"
#include "session/lease.h"
#include "session/session_table.h"
#include "store/lease.h"

#include <pthread.h>
#include <stdatomic.h>

#define SESSION_STRIPE_COUNT 64

/* The state of a session; more of it is in the leases on its stack. */
struct session {
    struct session_stripe *stripe;
    struct text key;
    struct session_name name;  /* in `key` */
    struct lease_key lease;    /* among replicas */
    struct loop *held_by;      /* the lease is this replica's, and given back from that loop */
    bool loaded;               /* the history was read from the store */
    struct turn_record **late; /* records that arrived before that */
    size_t late_count;
    struct history *history; /* of finished turns */
    struct list stack;       /* leases, the deepest child last */
    struct list waiters;     /* leases, the oldest first */
    struct list idle;        /* in the stripe's list, least recently used first */
    uint64_t idle_since_ms;  /* when it became idle */
    size_t idle_bytes;       /* what the table counts for it; 0: not idle, or not counted */
};

/* What idle sessions hold that the store has too. Any thread, unless noted. */
struct idle_memory {
    atomic_size_t bytes;
    atomic_size_t rested; /* bytes of sessions that became idle, since the window began */
    atomic_bool trimming; /* session_table_trim() is called from time to time */
    session_table_many_fn *_Atomic many;
    void *ctx;
    /* The thread that trims: */
    size_t calls;   /* in this window */
    size_t kept;    /* bytes that may stay */
    bool cut_short; /* more than that is left */
};

struct session_stripe {
    pthread_mutex_t lock;
    struct session_table *table;
    struct map *sessions;
    struct list idle;
    size_t idle_count;
};

struct session_table {
    struct store *store;
    struct directory *directory;
    struct idempotency_claims *claims;
    struct slots *turns; /* turns at once, per workspace */
    struct pending_approvals *approvals;
    _Atomic uint64_t last_run;
    _Atomic int64_t posted;    /* answers to runs of other replicas */
    struct holdings *holdings; /* NULL: the store is not shared with other replicas */
    struct key_leases *keys;   /* the same */
    uint64_t wait_ms;
    atomic_bool leaving; /* what is held is given back when the store is closed */
    struct history *empty;
    struct idle_memory idle;
    struct striped *stripes;
};

/* Find the session, or add it: *ret_new. It is not idle any more. */
struct session *resident_find_or_add(struct session_stripe *stripe, struct str key,
                                     const struct session_name *name, bool *ret_new);

/* If no lease holds it, make it idle. The least recently used idle sessions are forgotten
 * first; among replicas all at once, but those of which a run waits here for a human. */
void resident_rest(struct session *session);

/* The least recently used idle session, or NULL. */
struct session *resident_oldest(struct session_stripe *stripe);

/* Forget an idle session. Returns the bytes of text that were freed. */
size_t resident_forget(struct session *session);

/* Forget a session that could not be read from the store. No lease may have it or wait. */
void resident_discard(struct session *session);

/* Add `record` (taken) to the history. */
void resident_remember(struct session *session, struct turn_record *record);

/* Keep `record` (taken) until the history has been read. */
void resident_remember_later(struct session *session, struct turn_record *record);

/* The history was read from the store. Adds the records that were kept for it. */
void resident_loaded(struct session *session, struct history *history);

/* Free it. No lock needed. */
void resident_free(struct session *session);

#endif
