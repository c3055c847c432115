/* chunk: a stretch of a journal's bytes, shared by its readers.
 *
 * Private to journal/. Only the owner appends, and a written byte never changes. The journal
 * decides which bytes may be read (its visible mark orders the memory).
 */
#ifndef WEIR_JOURNAL_CHUNK_H
#define WEIR_JOURNAL_CHUNK_H

#include "base/str.h"

#include <stdatomic.h>

struct chunk {
    atomic_uint refs;
    struct chunk *_Atomic next; /* holds a reference; set before anything in it is visible */
    uint64_t first_seq;
    uint64_t first_byte; /* of the journal's bytes, counted from 0 */
    uint64_t last_seq;   /* 0 when empty; final once `next` is set */
    size_t used, room;   /* owner only */
    char bytes[];
};

/* The usual rooms, each of which makes a block of 1, 2 or 6 KiB with all that belongs to it. */
#define CHUNK_HEAD_BYTES (sizeof(struct chunk) + 8)     /* the allocator's 8 */
#define CHUNK_BYTES (1 * KIB - CHUNK_HEAD_BYTES)        /* for events that come one by one */
#define CHUNK_DOUBLE_BYTES (2 * KIB - CHUNK_HEAD_BYTES) /* for texts at once: fewer pieces */
#define CHUNK_BURST_BYTES (6 * KIB - CHUNK_HEAD_BYTES)  /* for a whole reply of 4 KiB */
#define CHUNK_SHARED_BYTES (CHUNK_BYTES / 2)            /* a longer event has a chunk alone */

struct chunk *chunk_new(uint64_t first_seq, uint64_t first_byte, size_t room);
struct chunk *chunk_ref(struct chunk *chunk);
void chunk_unref(struct chunk *chunk); /* NULL is fine */

#endif
