#include "contract/nimi/replies.h"

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdlib.h>

struct entry {
    struct list link;
    struct str key, reply; /* both behind the struct */
    uint64_t until_ms;
    uint8_t digest[REPLIES_DIGEST_BYTES];
    char bytes[];
};

struct replies {
    pthread_mutex_t lock;
    struct map *entries;
    struct list used; /* the one asked for longest ago first */
    size_t count_max, bytes_max, bytes;
};

struct replies *replies_new(size_t count_max, size_t bytes_max) {
    struct replies *replies = MEM_NEW(struct replies);
    replies->entries = map_new();
    replies->count_max = count_max;
    replies->bytes_max = bytes_max;
    list_init(&replies->used);
    pthread_mutex_init(&replies->lock, NULL);
    return replies;
}

static void drop(struct replies *replies, struct entry *entry) {
    map_remove(replies->entries, entry->key);
    list_remove(&entry->link);
    replies->bytes -= entry->key.len + entry->reply.len;
    free(entry);
}

static struct entry *oldest(struct replies *replies) {
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): drop() unlinks what it frees */
    return list_empty(&replies->used) ? NULL
                                      : CONTAINER_OF(replies->used.next, struct entry, link);
}

void replies_free(struct replies *replies) {
    if (!replies) return;
    size_t place = 0;
    struct str key;
    void *entry;
    while (map_next(replies->entries, &place, &key, &entry)) free(entry);
    map_free(replies->entries);
    pthread_mutex_destroy(&replies->lock);
    free(replies);
}

/* The entry under `key`, unless its day is over. */
static struct entry *living(struct replies *replies, struct str key, uint64_t now_ms) {
    struct entry *entry = map_find(replies->entries, key);
    if (!entry || now_ms < entry->until_ms) return entry;
    drop(replies, entry);
    return NULL;
}

enum reply_found replies_find(struct replies *replies, struct str key, const uint8_t *digest,
                              uint64_t now_ms, struct buf *out) {
    enum reply_found found = REPLY_NEW;
    pthread_mutex_lock(&replies->lock);
    struct entry *entry = living(replies, key, now_ms);
    if (entry && memcmp(entry->digest, digest, REPLIES_DIGEST_BYTES) != 0) {
        found = REPLY_CONFLICT;
    } else if (entry) {
        list_remove(&entry->link);
        list_append(&replies->used, &entry->link);
        buf_append(out, entry->reply);
        found = REPLY_STORED;
    }
    pthread_mutex_unlock(&replies->lock);
    return found;
}

static struct str put(char **at, struct str text) {
    struct str here = {*at, text.len};
    if (text.len) memcpy(*at, text.at, text.len);
    *at += text.len;
    return here;
}

void replies_keep(struct replies *replies, struct str key, const uint8_t *digest,
                  uint64_t now_ms, struct str reply) {
    size_t bytes = key.len + reply.len;
    if (bytes > replies->bytes_max || replies->count_max == 0) return;
    struct entry *entry = mem_zero(1, sizeof(struct entry) + bytes);
    char *at = entry->bytes;
    entry->key = put(&at, key);
    entry->reply = put(&at, reply);
    entry->until_ms = now_ms + REPLIES_KEPT_MS;
    memcpy(entry->digest, digest, REPLIES_DIGEST_BYTES);
    list_init(&entry->link);

    pthread_mutex_lock(&replies->lock);
    struct entry *before = map_find(replies->entries, key);
    if (before) drop(replies, before);
    while (map_count(replies->entries) >= replies->count_max ||
           replies->bytes + bytes > replies->bytes_max) {
        struct entry *old = oldest(replies);
        if (!old) break;
        drop(replies, old);
    }
    map_put(replies->entries, key, entry);
    list_append(&replies->used, &entry->link);
    replies->bytes += bytes;
    pthread_mutex_unlock(&replies->lock);
}

size_t replies_count(struct replies *replies) {
    pthread_mutex_lock(&replies->lock);
    size_t count = map_count(replies->entries);
    pthread_mutex_unlock(&replies->lock);
    return count;
}
