#include "base/pool.h"

#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KEEPS false
#elif defined(__has_feature)
#define KEEPS (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer))
#else
#define KEEPS true
#endif

static _Thread_local struct pool *pools;

void pool_give(struct pool *pool, void *at) {
    if (!KEEPS || !at || pool->count == pool->max) {
        free(at);
        return;
    }
    if (!pool->listed) {
        pool->listed = true;
        pool->next = pools;
        pools = pool;
    }
    *(void **)at = pool->spare;
    pool->spare = at;
    pool->count++;
}

void pools_empty(void) {
    for (struct pool *pool = pools; pool; pool = pool->next) {
        while (pool->spare) free(pool_take(pool));
    }
}
