/* session_cache: which entry of the table of sessions a conversation has, for those seen last.
 *
 * A slot for each hash of a name, and a newer session takes the place of an older one. Whoever
 * changes the table forgets the entry first and puts it again once the change is committed, so
 * that an entry is never newer than the table, and none is left that a rollback or another
 * transaction made wrong.
 *
 * Memory   at most some 300 KiB; keys longer than SESSION_CACHE_KEY_BYTES are not kept.
 * Threads  none; the store's.
 */
#ifndef WEIR_STORE_SESSION_CACHE_H
#define WEIR_STORE_SESSION_CACHE_H

#include "base/str.h"

#define SESSION_CACHE_SLOTS 1024
#define SESSION_CACHE_KEY_BYTES 256

struct session_cache;

struct session_cache *session_cache_new(void);
void session_cache_free(struct session_cache *cache); /* NULL is fine */

/* `hash` is map_hash(key). Sets the id and the newest run of the session. */
bool session_cache_find(const struct session_cache *cache, struct str key, uint64_t hash,
                        int64_t *ret_id, uint64_t *ret_newest);
void session_cache_put(struct session_cache *cache, struct str key, uint64_t hash, int64_t id,
                       uint64_t newest);
void session_cache_forget(struct session_cache *cache, struct str key, uint64_t hash);
void session_cache_clear(struct session_cache *cache);

#endif
