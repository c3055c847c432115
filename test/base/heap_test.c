#include "base/heap.h"

#include "base/machine.h"
#include "base/mem.h"
#include "helper/assert_str.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEAP_IS_GLIBC false /* a sanitizer has its own, which keeps what is freed */
#else
#define HEAP_IS_GLIBC true
#endif

#define SIZES 64
#define EACH 7
#define SPACER_BYTES (8 * KIB)
#define NEAR_BYTES (256 * KIB)

static uint64_t resident(void) {
    uint64_t bytes;
    assert_true(machine_resident_bytes(&bytes));
    return bytes;
}

static void what_was_freed_is_worth_giving_back_once(void **state) {
    (void)state;
    enum { BLOCKS = 4096 };
    static char *blocks[BLOCKS];
    heap_give_back(NULL, 0);
    assert_false(heap_may_give_back(MIB));
    for (size_t i = 0; i < BLOCKS; i++) memset(blocks[i] = mem_alloc(KIB), 1, KIB);
    bool grown = heap_may_give_back(MIB); /* or the heap had room */
    (void)grown;
    char *last = mem_alloc(KIB);
    for (size_t i = 0; i < BLOCKS; i++) free(blocks[i]);
    assert_true(heap_may_give_back(MIB));
    heap_give_back(NULL, 0);
    assert_false(heap_may_give_back(MIB));
    free(last);
}

/* As after a burst: blocks of each size that a cache holds, each on a page of its own. */
static void scatter(void) {
    static char *blocks[SIZES * EACH], *spacers[SIZES * EACH];
    for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
        size_t bytes = 24 + i / EACH * 16;
        memset(blocks[i] = mem_alloc(bytes), 1, bytes);
        memset(spacers[i] = mem_alloc(SPACER_BYTES), 1, SPACER_BYTES);
    }
    for (size_t i = 0; i < ARRAY_LEN(blocks); i++) free(blocks[i]);
    for (size_t i = 0; i < ARRAY_LEN(spacers); i++) free(spacers[i]);
}

static void what_a_cache_holds_does_not_keep_its_pages(void **state) {
    (void)state;
    struct heap_cache cache = heap_cache_take();
    heap_give_back(&cache, 1);
    uint64_t before = resident();
    scatter();
    heap_give_back(NULL, 0);
    uint64_t kept = resident();
    cache = heap_cache_take();
    heap_give_back(&cache, 1);
    assert_null(cache.small);
    assert_null(cache.large);
    if (!HEAP_IS_GLIBC) return;
    assert_in_range(resident(), 0, before + NEAR_BYTES);
    assert_true(kept > before + MIB); /* or the test shows nothing */
}

/* --- a thread with an arena of its own ---------------------------------------------------- */

struct thread_part {
    pthread_barrier_t freed, given;
    struct heap_cache cache;
};

static void *scatter_and_stay(void *ctx) {
    struct thread_part *part = ctx;
    scatter();
    part->cache = heap_cache_take();
    pthread_barrier_wait(&part->freed);
    pthread_barrier_wait(&part->given);
    return NULL;
}

static void the_memory_of_another_thread_goes_back_while_it_lives(void **state) {
    (void)state;
    struct thread_part part;
    pthread_t thread;
    struct heap_cache own = heap_cache_take();
    heap_give_back(&own, 1);
    uint64_t before = resident();
    pthread_barrier_init(&part.freed, NULL, 2);
    pthread_barrier_init(&part.given, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, scatter_and_stay, &part), 0);
    pthread_barrier_wait(&part.freed);
    assert_non_null(part.cache.small);
    heap_give_back(&part.cache, 1);
    uint64_t after = resident();
    pthread_barrier_wait(&part.given);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&part.freed);
    pthread_barrier_destroy(&part.given);
    if (HEAP_IS_GLIBC) assert_in_range(after, 0, before + NEAR_BYTES);
}

static void what_was_taken_can_simply_be_freed(void **state) {
    (void)state;
    struct heap_cache cache = heap_cache_take();
    assert_non_null(cache.small);
    heap_cache_free(&cache);
    assert_null(cache.small);
    assert_null(cache.large);
    heap_cache_free(&cache);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_freed_is_worth_giving_back_once),
        cmocka_unit_test(what_a_cache_holds_does_not_keep_its_pages),
        cmocka_unit_test(the_memory_of_another_thread_goes_back_while_it_lives),
        cmocka_unit_test(what_was_taken_can_simply_be_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
