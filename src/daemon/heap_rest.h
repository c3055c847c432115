/* heap_rest: gives the heap's free memory back to the system while the daemon serves.
 *
 * It looks half a second after much was freed (mem.h), two and six seconds after it was made, soon
 * after it gave back what a burst freed, and every 15 seconds. If a look finds that it is worth the
 * time, each loop and the store's thread hand over what their heap caches hold, and a thread of its
 * own gives everything back (heap.h), so that no loop waits for it. All looks but the first kind also
 * let the program's code go at a rest (code_rest.h), on the home loop.
 *
 *     look ─▶ each loop, the store: heap_cache_take() ─▶ the last one starts the thread ─▶ back
 *
 * What idle sessions hold is trimmed while it is much; the memory is then given back as after any
 * other burst.
 *
 * A steady load is left alone: what it frees it soon needs again.
 *
 * Memory   owns what the threads handed over.
 * Threads  the home loop, but for heap_rest_trim(); heap_rest_new() and heap_rest_free() while it is
 *          the only thread.
 */
#ifndef WEIR_DAEMON_HEAP_REST_H
#define WEIR_DAEMON_HEAP_REST_H

#include "store/store.h"

struct heap_rest;

struct heap_rest_options {
    struct loop *home;
    struct loop **loops; /* copied; with home */
    size_t loop_count;
    struct store *store;
    size_t (*tidy)(void *ctx); /* every 15 s: free what is unused; returns how many things */
    /* After heap_rest_trim(): free what is too much. Returns the milliseconds to the next call, 0: none. */
    uint64_t (*trim)(void *ctx);
    uint64_t trim_ms;          /* to the first call */
    void (*rested)(void *ctx); /* memory was given back; may be NULL */
    void *ctx;
};

struct heap_rest *heap_rest_new(const struct heap_rest_options *options);

/* All loops run from now on. */
void heap_rest_start(struct heap_rest *rest);

/* There is much to trim. Any thread, which may hold locks; not again before trim() has returned 0. */
void heap_rest_trim(struct heap_rest *rest);

/* No further looks, and no further mail. */
void heap_rest_stop(struct heap_rest *rest);

/* After heap_rest_stop(), once each loop has received its mail and the store is closed: wait for
 * the thread. Its mail is in front of what the home loop is sent from then on. */
void heap_rest_wait(struct heap_rest *rest);

void heap_rest_free(struct heap_rest *rest); /* NULL is fine */

#endif
