/* heap: return the freed memory that the C library keeps to the system.
 *
 * glibc's malloc_trim() returns whole free pages. It cannot return two things, which are most
 * of the excess after a burst:
 *
 *   - Each thread has a cache with up to seven freed blocks of each small size. They count as
 *     used. After a burst they are scattered over the heap, and each keeps its page.
 *   - The free end of each arena but the first.
 *
 * So each thread takes the blocks in its cache and one large block. A thread that ends directly
 * afterwards frees the small ones: its own cache is emptied as it ends. Freeing a large block
 * makes glibc trim the end of the block's arena.
 *
 *     each thread   heap_cache_take()  ─┐
 *     each thread   heap_cache_take()  ─┴─▶ heap_give_back(), on a thread without other work
 *
 * Threads  any. heap_may_give_back(): one thread only.
 * Source   glibc 2.36, malloc/malloc.c: tcache_thread_shutdown, mtrim, heap_trim. */
#ifndef WEIR_BASE_HEAP_H
#define WEIR_BASE_HEAP_H

#include "base/attr.h"

#include <stdbool.h>
#include <stddef.h>

struct heap_block;

/* Blocks from one thread's cache; a plain value, empty when zeroed. */
struct heap_cache {
    struct heap_block *small, *large;
};

/* Empty the calling thread's cache and its pools. Takes about 20 us. */
struct heap_cache heap_cache_take(void);

void heap_cache_free(struct heap_cache *cache); /* back to the cache of this thread */

/* Free the blocks of `caches`, which are empty afterwards, and return free memory to the
 * system. Takes milliseconds, during which other threads may wait for the heap. */
void heap_give_back(struct heap_cache *caches, size_t count);

/* Whether heap_give_back() may return `bytes`: this much was freed, or was added to the
 * process, since the last one. It scans the whole heap, which takes up to a millisecond. */
MUST_CHECK bool heap_may_give_back(size_t bytes);

#endif
