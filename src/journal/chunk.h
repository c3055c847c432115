/* chunk: a stretch of a journal's bytes, shared by its readers.
 *
 * Private to journal/. Only the owner appends, and a written byte never changes. The journal
 * decides which bytes may be read (its visible mark orders the memory).
 */
#ifndef WEIR_JOURNAL_CHUNK_H
#define WEIR_JOURNAL_CHUNK_H

#include "base/str.h"

#include <stdatomic.h>

#define CHUNK_BYTES (2 * KIB)        /* for events that come one by one */
#define CHUNK_BURST_BYTES (4 * KIB)  /* for many texts at once: fewer pieces */
#define CHUNK_SHARED_BYTES (1 * KIB) /* a longer event at the start of a chunk has it alone */

struct chunk {
    atomic_uint refs;
    struct chunk *_Atomic next; /* holds a reference; set before anything in it is visible */
    uint64_t first_seq;
    uint64_t first_byte; /* of the journal's bytes, counted from 0 */
    uint64_t last_seq;   /* 0 when empty; final once `next` is set */
    size_t used, room;   /* owner only */
    char bytes[];
};

struct chunk *chunk_new(uint64_t first_seq, uint64_t first_byte, size_t room);
struct chunk *chunk_ref(struct chunk *chunk);
void chunk_unref(struct chunk *chunk); /* NULL is fine */

#endif
