#include "store/session_cache.h"

#include "base/mem.h"

#include <stdlib.h>

struct session_entry {
    uint64_t hash, newest;
    int64_t id;
    size_t key_len;
    char key[];
};

struct session_cache {
    struct session_entry *slots[SESSION_CACHE_SLOTS];
};

struct session_cache *session_cache_new(void) {
    return MEM_NEW(struct session_cache);
}

void session_cache_free(struct session_cache *cache) {
    if (!cache) return;
    session_cache_clear(cache);
    free(cache);
}

void session_cache_clear(struct session_cache *cache) {
    for (size_t i = 0; i < SESSION_CACHE_SLOTS; i++) {
        free(cache->slots[i]);
        cache->slots[i] = NULL;
    }
}

static bool is_of(const struct session_entry *entry, struct str key, uint64_t hash) {
    return entry && entry->hash == hash && str_equal(str_of(entry->key, entry->key_len), key);
}

bool session_cache_find(const struct session_cache *cache, struct str key, uint64_t hash,
                        int64_t *ret_id, uint64_t *ret_newest) {
    const struct session_entry *entry = cache->slots[hash % SESSION_CACHE_SLOTS];
    if (!is_of(entry, key, hash)) return false;
    *ret_id = entry->id;
    *ret_newest = entry->newest;
    return true;
}

void session_cache_put(struct session_cache *cache, struct str key, uint64_t hash, int64_t id,
                       uint64_t newest) {
    struct session_entry **slot = &cache->slots[hash % SESSION_CACHE_SLOTS];
    if (key.len > SESSION_CACHE_KEY_BYTES) return;
    if (!is_of(*slot, key, hash)) {
        free(*slot);
        *slot = mem_alloc(sizeof(**slot) + key.len);
        (*slot)->hash = hash;
        (*slot)->key_len = key.len;
        memcpy((*slot)->key, key.at, key.len);
    }
    (*slot)->id = id;
    (*slot)->newest = newest;
}

void session_cache_forget(struct session_cache *cache, struct str key, uint64_t hash) {
    struct session_entry **slot = &cache->slots[hash % SESSION_CACHE_SLOTS];
    if (!is_of(*slot, key, hash)) return;
    free(*slot);
    *slot = NULL;
}
