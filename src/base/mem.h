/* mem: heap allocation that never returns NULL.
 *
 * No caller can recover from an exhausted machine. These functions log one last line and
 * abort; the store recovers at the next start. Limits that a peer can reach are enforced above,
 * in buffers and arenas, and are errors.
 *
 * Threads  any.
 */
#ifndef WEIR_BASE_MEM_H
#define WEIR_BASE_MEM_H

#include "base/attr.h"

#include <stdbool.h>
#include <stddef.h>

/* Uninitialised bytes; free() them. A size of 0 gives a pointer that may only be freed. */
void *mem_alloc(size_t size);

/* `count` items of `size` zero bytes each; free() them. */
void *mem_zero(size_t count, size_t size);

/* Like realloc(), but never NULL. */
void *mem_resize(void *at, size_t size);

/* --- the ceiling ----------------------------------------------------------------------------
 *
 * Memory that peers can make grow (bodies, replies, journals, histories, waiting turns) is
 * counted by its holders: buffers, arenas, chunks, records. The entry points ask before they
 * accept more work, and refuse it when the ceiling is reached:
 *
 *     entry points   mem_allows(4 MiB) ──▶ is there room? if not, shed() what the store has
 *     holders        mem_count(), mem_uncount(): never refused; admitted work must finish
 *
 * Each thread's count may lag by up to 16 KiB. */

/* The caller holds `bytes` more, or less. */
void mem_count(size_t bytes);
void mem_uncount(size_t bytes);

/* Bytes held now. */
size_t mem_counted(void);

/* Release memory that can be restored later, least recently used first, until `bytes` less
 * are counted or nothing is left. Runs on the thread that asked, which holds no lock. */
typedef void mem_shed_fn(size_t bytes, void *ctx);

/* Set the ceiling to `bytes`; 0: no ceiling. Call it before other threads start. */
void mem_limit(size_t bytes);
void mem_shed_with(mem_shed_fn *shed, void *ctx);

/* Whether more than half of the ceiling is held. What can wait for the disk then waits, and what
 * the disk has is released. */
MUST_CHECK bool mem_scarce(void);

/* Whether `bytes` more may be held. Large requests leave an eighth of the ceiling to small
 * ones (64 KiB or less), so that short work continues beside long work. */
MUST_CHECK bool mem_allows(size_t bytes);

/* The same as an error.
 * errors  ERR_OUT_OF_MEMORY, which may be retried */
struct err;
MUST_CHECK bool mem_check(size_t bytes, struct err *e);

/* --- the end of a burst -----------------------------------------------------------------------
 *
 * When much less is counted than before, the heap holds memory that should go back to the
 * system (heap.h). Much means 1 MiB, and a third of the highest count. */

/* Called once when much has been freed, and not again before the next mem_watch(). Any thread,
 * which may hold locks: only post a mail. */
typedef void mem_freed_fn(void *ctx);
void mem_freed_with(mem_freed_fn *freed, void *ctx); /* NULL: none. Call it before any thread */

/* Whether the count is much lower than its highest value since the last
 * mem_watch(MEM_FROM_NOW). */
MUST_CHECK bool mem_much_freed(void);

enum mem_from {
    MEM_FROM_BEFORE, /* keep the highest count */
    MEM_FROM_NOW,    /* start from the current count */
};
void mem_watch(enum mem_from from);
void mem_unwatch(void); /* a call may still be running on another thread */

/* One zeroed object of a type. */
#define MEM_NEW(type) ((type *)mem_zero(1, sizeof(type)))

#endif
