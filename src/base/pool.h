/* pool: blocks of one size that go round on a thread without the allocator.
 *
 * A turn takes some blocks of a few kilobytes and gives them back a moment later. The C library
 * keeps no list of free blocks of such sizes: it cuts and joins them each time; and of small blocks
 * it keeps seven of a size, where hundreds of turns end together. A pool keeps those that were
 * given, up to `max`, for the next to take.
 *
 *     static _Thread_local struct pool pool = POOL(sizeof(struct thing), 64);
 *
 * A block may be given on another thread than the one that took it: it stays there.
 *
 * Memory   the spare blocks are freed by pools_empty(), which heap_cache_take() calls, and when
 *          the thread ends. Under a sanitizer nothing is kept, so that it sees who uses a block that was given.
 * Threads  a pool belongs to its thread.
 */
#ifndef WEIR_BASE_POOL_H
#define WEIR_BASE_POOL_H

#include "base/mem.h"

#include <string.h>

struct pool {
    size_t size; /* of a block */
    unsigned max, count;
    void *spare;       /* the first of them; each begins with the address of the next */
    struct pool *next; /* of this thread, once it has kept one */
    bool listed;
};

#define POOL(block_size, max_count)                                                            \
    { .size = (block_size), .max = (max_count) }

/* A block, uninitialised. */
static inline void *pool_take(struct pool *pool) {
    void *at = pool->spare;
    if (!at) return mem_alloc(pool->size);
    pool->spare = *(void **)at;
    pool->count--;
    return at;
}

/* A block, cleared. */
static inline void *pool_zero(struct pool *pool) {
    return memset(pool_take(pool), 0, pool->size);
}

/* NULL is fine. */
void pool_give(struct pool *pool, void *at);

/* Free what the pools of this thread keep. */
void pools_empty(void);

#endif
