#include "journal/chunk.h"

#include "base/pool.h"

#include <stdlib.h>

#define SPARE_CHUNKS 1024

static _Thread_local struct pool chunks =
    POOL(sizeof(struct chunk) + CHUNK_BYTES, SPARE_CHUNKS);
static _Thread_local struct pool doubles =
    POOL(sizeof(struct chunk) + CHUNK_DOUBLE_BYTES, SPARE_CHUNKS / 8);
static _Thread_local struct pool bursts =
    POOL(sizeof(struct chunk) + CHUNK_BURST_BYTES, SPARE_CHUNKS / 2);

/* NULL: it is of no usual size. */
static struct pool *chunk_pool(size_t room) {
    if (room == CHUNK_BYTES) return &chunks;
    if (room == CHUNK_DOUBLE_BYTES) return &doubles;
    return room == CHUNK_BURST_BYTES ? &bursts : NULL;
}

static void chunk_free(struct chunk *chunk) {
    struct pool *pool = chunk_pool(chunk->room);
    mem_uncount(sizeof(*chunk) + chunk->room);
    if (pool) {
        pool_give(pool, chunk);
    } else {
        free(chunk);
    }
}

struct chunk *chunk_new(uint64_t first_seq, uint64_t first_byte, size_t room) {
    struct pool *pool = chunk_pool(room);
    struct chunk *chunk = pool ? pool_take(pool) : mem_alloc(sizeof(*chunk) + room);
    mem_count(sizeof(*chunk) + room);
    atomic_init(&chunk->refs, 1);
    atomic_init(&chunk->next, NULL);
    chunk->first_seq = first_seq;
    chunk->first_byte = first_byte;
    chunk->last_seq = 0;
    chunk->used = 0;
    chunk->room = room;
    return chunk;
}

struct chunk *chunk_ref(struct chunk *chunk) {
    atomic_fetch_add_explicit(&chunk->refs, 1, memory_order_relaxed);
    return chunk;
}

void chunk_unref(struct chunk *chunk) {
    /* A loop, not recursion: the chain after a forgotten reader may be long. */
    while (chunk && atomic_fetch_sub_explicit(&chunk->refs, 1, memory_order_acq_rel) == 1) {
        struct chunk *next = atomic_load_explicit(&chunk->next, memory_order_acquire);
        chunk_free(chunk);
        chunk = next;
    }
}
