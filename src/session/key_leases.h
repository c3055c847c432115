/* key_leases: idempotency keys that are being used, among replicas.
 *
 * Of two requests with one key, at any replicas, only one may begin a run. The store knows the
 * key once the run's first event is committed; until then the replica has a lease on it:
 *
 *     the store does not know it ─▶ lease ─▶ it still does not ─▶ free: begin
 *                 ▲                   └─▶ another has it: wait a moment ─┐
 *                 └──────────────────────────────────────────────────────┘
 *
 * A lease is kept while a look-up is open or a live run has the key (idempotency_claims.h), and
 * a few seconds more.
 *
 * Memory   owns its entries.
 * Threads  any; an entry belongs to the loop that made it.
 */
#ifndef WEIR_SESSION_KEY_LEASES_H
#define WEIR_SESSION_KEY_LEASES_H

#include "session/idempotency_claims.h"
#include "store/lease.h"

struct key_leases;

struct key_leases *key_leases_new(struct store *store, struct idempotency_claims *claims);
void key_leases_free(struct key_leases *leases); /* NULL is fine; every loop has left */

/* Before a look-up asks for the lease: it is not given back before key_leases_let(). */
struct lease_key key_leases_keep(struct key_leases *leases, const struct claim_name *name,
                                 struct loop *loop);

/* The look-up has ended: the lease is given back when it is not needed any more. */
void key_leases_let(struct key_leases *leases, const struct lease_key *key);

/* The same for what takes longer than a moment after its look-up, such as an answer on its way to
 * another replica. Zeroed, it keeps nothing. */
struct key_hold {
    struct key_leases *leases;
    struct lease_key key;
};

/* Nothing is kept without a key, or where the store is not shared (`leases` NULL). */
void key_hold_begin(struct key_hold *hold, struct key_leases *leases,
                    const struct claim_name *name, struct loop *loop);
void key_hold_end(struct key_hold *hold); /* harmless when nothing is kept */

/* The loop ends. Call on it. */
void key_leases_leave(struct key_leases *leases, const struct loop *loop);

#endif
