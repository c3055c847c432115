#include "base/pool.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KEEPS false
#elif defined(__has_feature)
#define KEEPS (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer))
#else
#define KEEPS true
#endif

static _Thread_local struct pool *pools;

/* A thread that ends frees what its pools keep. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t ending;

static void on_ending(void *ctx) {
    (void)ctx;
    pools_empty();
}

static void make_key(void) {
    int failed = pthread_key_create(&ending, on_ending);
    assert(!failed);
    (void)failed;
}

static void list_pool(struct pool *pool) {
    pthread_once(&once, make_key);
    pthread_setspecific(ending, pool);
    pool->listed = true;
    pool->next = pools;
    pools = pool;
}

void pool_give(struct pool *pool, void *at) {
    if (!KEEPS || !at || pool->count == pool->max) {
        free(at);
        return;
    }
    if (!pool->listed) list_pool(pool);
    *(void **)at = pool->spare;
    pool->spare = at;
    pool->count++;
}

void pools_empty(void) {
    for (struct pool *pool = pools; pool; pool = pool->next) {
        while (pool->spare) free(pool_take(pool));
    }
}
