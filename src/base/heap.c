#include "base/heap.h"

#include "base/machine.h"
#include "base/pool.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

/* The capacity of a thread's cache: glibc's TCACHE_FILL_COUNT, TCACHE_MAX_BINS and the sizes of
 * its bins. If they differ, less is taken. */
#define CACHED_OF_A_SIZE 7
#define CACHED_SIZES 64
#define CACHED_LEAST_BYTES 24
#define CACHED_STEP_BYTES 16
/* A free() of 64 KiB or more trims the end of its arena. Blocks of MAPPED_FROM_BYTES (mem.c),
 * by default of 128 KiB, are not part of an arena. */
#define LARGE_BYTES (96 * KIB)
#define STACK_BYTES (64 * KIB)

struct heap_block {
    struct heap_block *next;
};

/* --- a thread's cache --------------------------------------------------------------------- */

static bool heap_take(struct heap_block **list, size_t bytes) {
    struct heap_block *block = malloc(bytes);
    if (!block) return false;
    block->next = *list;
    *list = block;
    return true;
}

struct heap_cache heap_cache_take(void) {
    struct heap_cache cache = {NULL, NULL};
    pools_empty();
    bool has_room = heap_take(&cache.large, LARGE_BYTES);
    for (size_t i = 0; has_room && i < CACHED_OF_A_SIZE * CACHED_SIZES; i++) {
        has_room = heap_take(&cache.small,
                             CACHED_LEAST_BYTES + i / CACHED_OF_A_SIZE * CACHED_STEP_BYTES);
    }
    return cache;
}

static void free_list(struct heap_block **list) {
    for (struct heap_block *block = *list, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    *list = NULL;
}

void heap_cache_free(struct heap_cache *cache) {
    free_list(&cache->small);
    free_list(&cache->large);
}

/* --- giving back -------------------------------------------------------------------------- */

struct emptying {
    struct heap_cache *caches;
    size_t count;
};

static void *free_small(void *ctx) {
    const struct emptying *emptying = ctx;
    for (size_t i = 0; i < emptying->count; i++) free_list(&emptying->caches[i].small);
    return NULL;
}

/* Run on a thread that ends, so that nothing stays in its cache. If no thread can be created,
 * much of it goes to this thread's cache. */
static void empty_small(struct heap_cache *caches, size_t count) {
    struct emptying emptying = {caches, count};
    sigset_t all, before;
    pthread_attr_t small_stack;
    pthread_t thread;
    pthread_attr_init(&small_stack);
    pthread_attr_setstacksize(&small_stack, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int failed = pthread_create(&thread, &small_stack, free_small, &emptying);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&small_stack);
    if (failed) {
        free_small(&emptying);
    } else {
        pthread_join(thread, NULL);
    }
}

/* The heap's free bytes include what was returned to the system, so only changes are
 * meaningful. */
static size_t heap_free_bytes(void) {
#ifdef __GLIBC__
    return mallinfo2().fordblks;
#else
    return 0;
#endif
}

/* Not code, which comes and goes without the heap. */
static uint64_t resident_bytes(void) {
    uint64_t bytes;
    return machine_private_bytes(&bytes) ? bytes : 0;
}

/* The minimum since memory was last returned. */
static _Atomic uint64_t least_resident;
static _Atomic size_t least_free;

static size_t large_bytes(const struct heap_cache *caches, size_t count) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        for (const struct heap_block *block = caches[i].large; block; block = block->next)
            bytes += LARGE_BYTES;
    }
    return bytes;
}

void heap_give_back(struct heap_cache *caches, size_t count) {
    empty_small(caches, count);
    /* Memory freed from now on counts for the next time, but for the large blocks. */
    least_free = heap_free_bytes() + large_bytes(caches, count);
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    for (size_t i = 0; i < count; i++) free_list(&caches[i].large);
    least_resident = resident_bytes();
}

bool heap_may_give_back(size_t bytes) {
    uint64_t resident = resident_bytes();
    size_t unused = heap_free_bytes();
    if (resident < least_resident) least_resident = resident;
    if (unused < least_free) least_free = unused;
    return resident - least_resident >= bytes || unused - least_free >= bytes;
}
