#include "base/striped.h"

#include "base/map.h"
#include "base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#define STRIPES_MAX 65536

struct striped {
    size_t count, stripe_bytes, lock_at;
    char *stripes;
};

static pthread_mutex_t *lock_of(const struct striped *striped, void *stripe) {
    return (pthread_mutex_t *)(void *)((char *)stripe + striped->lock_at);
}

struct striped *striped_new(size_t count, size_t stripe_bytes, size_t lock_at) {
    assert(count && count <= STRIPES_MAX && (count & (count - 1)) == 0);
    assert(lock_at + sizeof(pthread_mutex_t) <= stripe_bytes);
    struct striped *striped = MEM_NEW(struct striped);
    *striped = (struct striped){count, stripe_bytes, lock_at, mem_zero(count, stripe_bytes)};
    for (size_t i = 0; i < count; i++)
        pthread_mutex_init(lock_of(striped, striped_at(striped, i)), NULL);
    return striped;
}

void striped_free(struct striped *striped) {
    if (!striped) return;
    for (size_t i = 0; i < striped->count; i++)
        pthread_mutex_destroy(lock_of(striped, striped_at(striped, i)));
    free(striped->stripes);
    free(striped);
}

void *striped_at(const struct striped *striped, size_t index) {
    return index < striped->count ? striped->stripes + index * striped->stripe_bytes : NULL;
}

void *striped_of(const struct striped *striped, struct str key) {
    return striped_at(striped, map_hash(key) >> 32 & (striped->count - 1));
}

void *striped_lock(const struct striped *striped, struct str key) {
    void *stripe = striped_of(striped, key);
    pthread_mutex_lock(lock_of(striped, stripe));
    return stripe;
}
