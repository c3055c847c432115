#include "journal/chunk.h"

#include "base/mem.h"

#include <stdlib.h>

struct chunk *chunk_new(uint64_t first_seq, uint64_t first_byte, size_t room) {
    struct chunk *chunk = mem_alloc(sizeof(*chunk) + room);
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
        mem_uncount(sizeof(*chunk) + chunk->room);
        free(chunk);
        chunk = next;
    }
}
