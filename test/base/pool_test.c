/* Blocks go round on their thread, as many as the pool keeps, until it is emptied. */
#include "base/pool.h"

#include "base/heap.h"
#include "helper/assert_str.h"

#include <pthread.h>
#include <string.h>

#define KEPT 3

static _Thread_local struct pool small = POOL(16, KEPT);
static _Thread_local struct pool large = POOL(8192, KEPT);

static void blocks_are_whole_and_each_ones_own(void **state) {
    (void)state;
    char *blocks[10];
    for (int round = 0; round < 5; round++) {
        for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
            blocks[i] = pool_take(&large);
            memset(blocks[i], (int)i, large.size);
        }
        for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
            for (size_t at = 0; at < large.size; at++) assert_int_equal(blocks[i][at], i);
        }
        for (size_t i = 0; i < ARRAY_LEN(blocks); i++) pool_give(&large, blocks[i]);
        assert_true(large.count <= KEPT);
    }
    pool_give(&large, NULL);
    pools_empty();
    assert_int_equal(large.count, 0);
}

static void emptying_a_threads_cache_empties_its_pools(void **state) {
    (void)state;
    pool_give(&small, pool_take(&small));
    pool_give(&large, pool_take(&large));
    struct heap_cache cache = heap_cache_take();
    assert_int_equal(small.count + large.count, 0);
    assert_null(small.spare);
    heap_cache_free(&cache);
    pool_give(&small, pool_take(&small)); /* and it goes on */
    pools_empty();
}

static void *give(void *block) {
    pool_give(&small, block);
    pools_empty();
    return NULL;
}

static void a_block_may_be_given_on_another_thread(void **state) {
    (void)state;
    pthread_t thread;
    unsigned before = small.count;
    assert_int_equal(pthread_create(&thread, NULL, give, pool_take(&small)), 0);
    pthread_join(thread, NULL);
    assert_int_equal(small.count, before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_whole_and_each_ones_own),
        cmocka_unit_test(emptying_a_threads_cache_empties_its_pools),
        cmocka_unit_test(a_block_may_be_given_on_another_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
