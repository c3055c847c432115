/* striped: a table in stripes, each with a lock of its own, so that threads rarely meet.
 *
 * What a key stands for lies in the key's stripe, and whoever holds that lock may look at it
 * and change it. What a stripe holds, and how it is found there, is its user's: a struct with a
 * member `pthread_mutex_t lock`.
 *
 *     struct stripe_of_mine *stripe = striped_lock(table->stripes, key);
 *     ... map_find(stripe->map, key) ...
 *     pthread_mutex_unlock(&stripe->lock);
 *
 * Keys often come from peers, so the stripe is chosen by map_hash(), the hash with a secret: no
 * one can choose keys that all meet in one stripe. Its upper half is taken: the lower one
 * chooses the places of a map inside.
 *
 * Memory   owns the stripes, which begin as zero bytes, and their locks; what its user keeps in
 *          them is the user's to free first.
 * Threads  any.
 */
#ifndef WEIR_BASE_STRIPED_H
#define WEIR_BASE_STRIPED_H

#include "base/str.h"

struct striped;

/* `count` stripes of a struct of the user's; a power of two, 65536 at most. */
#define STRIPED_NEW(count, type) striped_new(count, sizeof(type), offsetof(type, lock))

struct striped *striped_new(size_t count, size_t stripe_bytes, size_t lock_at);
void striped_free(struct striped *striped); /* no lock may be held; NULL is fine */

/* The stripe of `key`. It stays as long as the table, so it may be kept and locked again. */
void *striped_of(const struct striped *striped, struct str key);

/* The same, locked. */
void *striped_lock(const struct striped *striped, struct str key);

/* The stripes one after the other, from 0; NULL behind the last. Not locked. */
void *striped_at(const struct striped *striped, size_t index);

#endif
