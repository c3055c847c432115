/* striped: a table split into stripes, each with its own lock, to reduce contention.
 *
 * The data of a key lives in the key's stripe; the holder of that lock may read and change it.
 * The user defines the stripe: a struct with a member `pthread_mutex_t lock` and whatever
 * lookup it needs.
 *
 *     struct stripe_of_mine *stripe = striped_lock(table->stripes, key);
 *     ... map_find(stripe->map, key) ...
 *     pthread_mutex_unlock(&stripe->lock);
 *
 * Keys often come from peers, so map_hash(), which is keyed with a secret, chooses the stripe:
 * a peer cannot choose keys that all fall into one. The upper half of the hash is used here,
 * because the lower half chooses the slot in a map inside the stripe.
 *
 * Memory   owns the stripes, which start zeroed, and their locks. The user frees the contents
 *          of the stripes first.
 * Threads  any.
 */
#ifndef WEIR_BASE_STRIPED_H
#define WEIR_BASE_STRIPED_H

#include "base/str.h"

struct striped;

/* `count` stripes of the user's struct; a power of two, at most 65536. */
#define STRIPED_NEW(count, type) striped_new(count, sizeof(type), offsetof(type, lock))

struct striped *striped_new(size_t count, size_t stripe_bytes, size_t lock_at);
void striped_free(struct striped *striped); /* no lock may be held; accepts NULL */

/* The stripe of `key`. It lives as long as the table, so it may be kept and locked again. */
void *striped_of(const struct striped *striped, struct str key);

/* The same, locked. */
void *striped_lock(const struct striped *striped, struct str key);

/* The stripe at `index`, from 0; NULL past the last. Not locked. */
void *striped_at(const struct striped *striped, size_t index);

#endif
