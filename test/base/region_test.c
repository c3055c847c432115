/* Blocks of a region stay where they are and what they are, also while the region is packed. */
#include "base/region.h"

#include "base/mem.h"
#include "helper/assert_str.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct pooled {
    struct region_pool pool;
    struct region region;
};

static int open_region(void **state) {
    struct pooled *pooled = MEM_NEW(struct pooled);
    region_pool_init(&pooled->pool);
    assert_true(region_init(&pooled->region, &pooled->pool));
    *state = pooled;
    return 0;
}

static int shut_region(void **state) {
    struct pooled *pooled = *state;
    region_done(&pooled->region);
    region_done(&pooled->region); /* nothing more happens */
    region_pool_done(&pooled->pool);
    assert_int_equal(pooled->pool.area_count, 0);
    free(pooled);
    return 0;
}

static bool is_filled(const char *at, size_t size, char with) {
    for (size_t i = 0; i < size; i++)
        if (at[i] != with) return false;
    return true;
}

/* How many pages of the region are in memory. */
static size_t pages_in_memory(const struct region *region) {
    unsigned char in[REGION_PAGES];
    size_t count = 0;
    assert_int_equal(mincore(region->at, REGION_BYTES, in), 0);
    for (size_t i = 0; i < REGION_PAGES; i++) count += in[i] & 1;
    return count;
}

/* --- blocks ------------------------------------------------------------------------------- */

static void blocks_are_aligned_and_a_page_begins_a_large_one(void **state) {
    struct region *region = &((struct pooled *)*state)->region;
    static const size_t sizes[] = {1, 8, 9, 24, 25, 152, REGION_LISTED_MAX_BYTES, 1024, 2928};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        char *at = region_take(region, sizes[i]);
        assert_non_null(at);
        assert_true(region_has(region, at) && region_has(region, at + sizes[i] - 1));
        assert_int_equal((uintptr_t)at % 16, 0);
        assert_in_range(region_block_bytes(region, at), sizes[i], sizes[i] + 15);
    }
    char *page = region_take(region, REGION_PAGE_BYTES);
    char *pages = region_take(region, 16394);
    assert_int_equal((uintptr_t)page % REGION_PAGE_BYTES, 0);
    assert_int_equal((uintptr_t)pages % REGION_PAGE_BYTES, 0);
    assert_int_equal(region_block_bytes(region, page), REGION_PAGE_BYTES);
    assert_int_equal(region_block_bytes(region, pages), 5 * REGION_PAGE_BYTES);
}

static void a_region_that_is_full_says_so_and_goes_on(void **state) {
    struct region *region = &((struct pooled *)*state)->region;
    char *blocks[REGION_BYTES / 16] = {0};
    size_t count = 0;
    while ((blocks[count] = region_take(region, 40))) memset(blocks[count++], 7, 40);
    assert_in_range(count, 150, REGION_SHARED_PAGES * REGION_PAGE_BYTES / 48);
    while (region_take(region, 1)) continue;
    assert_null(region_take_zero(region, 1));
    assert_null(region_take(region, REGION_BYTES));
    assert_null(region_take(region, REGION_BYTES + 1));
    assert_null(region_take_zero(region, SIZE_MAX));
    char *six = region_take(region, 6 * REGION_PAGE_BYTES);
    assert_non_null(six);
    assert_null(region_take(region, REGION_PAGE_BYTES));
    region_give(region, six);
    region_give(region, blocks[3]);
    assert_ptr_equal(region_take(region, 33), blocks[3]);
    assert_ptr_equal(region_take(region, REGION_PAGE_BYTES), six);
    for (size_t i = 0; i < count; i++)
        if (i != 3) assert_true(is_filled(blocks[i], 40, 7));
}

static void what_was_given_back_is_used_again_and_cleared(void **state) {
    struct region *region = &((struct pooled *)*state)->region;
    static const size_t sizes[] = {24, 200, REGION_LISTED_MAX_BYTES, REGION_PAGE_BYTES,
                                   3 * REGION_PAGE_BYTES};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        char *at = region_take_zero(region, sizes[i]);
        assert_true(is_filled(at, sizes[i], 0));
        memset(at, 0xff, sizes[i]);
        region_give(region, at);
        char *again = region_take_zero(region, sizes[i]);
        assert_ptr_equal(again, at);
        assert_true(is_filled(again, sizes[i], 0));
        region_give(region, again);
    }
}

static void a_region_of_an_earlier_owner_is_cleared_too(void **state) {
    struct pooled *pooled = *state;
    char *at = pooled->region.at;
    for (char *block; (block = region_take(&pooled->region, REGION_PAGE_BYTES));)
        memset(block, 0xff, REGION_PAGE_BYTES);
    for (char *block; (block = region_take(&pooled->region, 100));) memset(block, 0xff, 100);
    region_done(&pooled->region);
    assert_true(region_init(&pooled->region, &pooled->pool));
    assert_ptr_equal(pooled->region.at, at);
    assert_true(is_filled(region_take_zero(&pooled->region, 1000), 1000, 0));
    char *pages = region_take_zero(&pooled->region, 6 * REGION_PAGE_BYTES);
    assert_true(is_filled(pages, 6 * REGION_PAGE_BYTES, 0));
    region_pack(&pooled->region); /* nothing of the earlier owner is kept */
    assert_in_range(region_packed_bytes(&pooled->region), 1, 1100);
    region_unpack(&pooled->region);
}

static void give_twice(struct region *region, size_t size) {
    void *at = region_take(region, size);
    region_give(region, at);
    region_give(region, at);
}

static void a_block_given_back_twice_is_our_own_mistake(void **state) {
    struct region *region = &((struct pooled *)*state)->region;
    static const size_t sizes[] = {24, 1000, REGION_PAGE_BYTES};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        pid_t child = fork();
        if (child == 0) {
            setrlimit(RLIMIT_CORE, &(struct rlimit){0});
            close(STDERR_FILENO);
            signal(SIGABRT, SIG_DFL);
            give_twice(region, sizes[i]);
            _exit(0);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}

/* --- packing ------------------------------------------------------------------------------ */

static void pages_cost_nothing_until_they_are_written(void **state) {
    struct region *region = &((struct pooled *)*state)->region;
    if (sysconf(_SC_PAGESIZE) != (long)REGION_PAGE_BYTES) skip();
    assert_non_null(region_take_zero(region, REGION_PAGE_BYTES));
    char *buffer = region_take(region, 16394);
    assert_int_equal(pages_in_memory(region), 0);
    buffer[100] = 1;
    assert_int_equal(pages_in_memory(region), 1);
}

static void a_packed_region_holds_no_pages_and_comes_back_as_it_was(void **state) {
    struct pooled *pooled = *state;
    struct region *region = &pooled->region;
    if (!pooled->pool.can_pack) skip();
    char *small = region_take_zero(region, 2928);
    char *table = region_take_zero(region, REGION_PAGE_BYTES);
    char *large = region_take_zero(region, 5 * REGION_PAGE_BYTES);
    char *gone = region_take(region, 500);
    memset(gone, 1, 500);
    region_give(region, gone);
    small[0] = small[2927] = large[0] = large[5 * REGION_PAGE_BYTES - 1] = 'x';
    for (int round = 0; round < 3; round++) {
        region_pack(region);
        region_pack(region);
        assert_true(region_is_packed(region));
        assert_int_equal(pages_in_memory(region), 0);
        assert_in_range(region_packed_bytes(region), 1, 400); /* without what is free */
        region_unpack(region);
        region_unpack(region);
        assert_false(region_is_packed(region));
        assert_int_equal(region_packed_bytes(region), 0);
        assert_true(small[0] == 'x' && is_filled(small + 1, 2926, 0) && small[2927] == 'x');
        assert_true(is_filled(table, REGION_PAGE_BYTES, 0));
        assert_true(large[0] == 'x' && is_filled(large + 1, 5 * REGION_PAGE_BYTES - 2, 0) &&
                    large[5 * REGION_PAGE_BYTES - 1] == 'x');
    }
    assert_ptr_equal(region_take(region, 500), gone);
}

static void a_packed_region_can_end(void **state) {
    struct pooled *pooled = *state;
    char *at = pooled->region.at;
    memset(region_take(&pooled->region, 1000), 1, 1000);
    region_pack(&pooled->region);
    region_done(&pooled->region);
    assert_true(region_init(&pooled->region, &pooled->pool));
    assert_ptr_equal(pooled->region.at, at);
    assert_true(is_filled(region_take_zero(&pooled->region, 1000), 1000, 0));
}

/* A block as the test remembers it: filled with one byte. */
struct known {
    char *at;
    size_t size;
    char with;
};

/* Any numbers do, the same ones each time. */
static size_t any_below(uint64_t *seed, size_t end) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(*seed >> 33) % end;
}

static size_t any_size(uint64_t *seed) {
    static const size_t most[] = {64, 600, 4000, 3 * REGION_PAGE_BYTES};
    return 1 + any_below(seed, most[any_below(seed, ARRAY_LEN(most))]);
}

static void change_one(struct region *region, struct known *known, uint64_t *seed) {
    if (known->at) {
        assert_true(is_filled(known->at, known->size, known->with));
        region_give(region, known->at);
        known->at = NULL;
        return;
    }
    known->size = any_size(seed);
    known->with = (char)any_below(seed, 3);
    bool zero = any_below(seed, 2);
    known->at = zero ? region_take_zero(region, known->size) : region_take(region, known->size);
    if (!known->at) return;
    if (zero) assert_true(is_filled(known->at, known->size, 0));
    memset(known->at, known->with, known->size);
}

static void whatever_happens_blocks_keep_their_bytes(void **state) {
    struct region *region = &((struct pooled *)*state)->region;
    struct known known[40] = {{0}};
    uint64_t seed = 14;
    for (int step = 0; step < 20000; step++) {
        change_one(region, &known[any_below(&seed, ARRAY_LEN(known))], &seed);
        if (any_below(&seed, 16)) continue;
        region_pack(region);
        region_unpack(region);
        for (size_t i = 0; i < ARRAY_LEN(known); i++)
            if (known[i].at) assert_true(is_filled(known[i].at, known[i].size, known[i].with));
    }
}

/* --- pools -------------------------------------------------------------------------------- */

#define MANY 5000

static void thousands_of_regions_come_and_go(void **state) {
    struct pooled *pooled = *state;
    struct region *regions = mem_zero(MANY, sizeof(*regions));
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < MANY; i++) {
            assert_true(region_init(&regions[i], &pooled->pool));
            *(size_t *)region_take(&regions[i], sizeof(size_t)) = i;
            if (i % 3) region_pack(&regions[i]);
        }
        assert_int_equal(pooled->pool.area_count, MANY / REGIONS_AN_AREA + 1);
        for (size_t i = 0; i < MANY; i++) {
            region_unpack(&regions[i]);
            assert_int_equal(*(size_t *)(void *)(regions[i].at + 16), i);
            if (i % 2) region_pack(&regions[i]);
        }
        for (size_t i = 0; i < MANY; i += 2) region_done(&regions[i]);
        for (size_t i = MANY - 1; i < MANY; i -= 2) region_done(&regions[i]);
        region_pool_rest(&pooled->pool);
        assert_int_equal(pooled->pool.area_count, 1); /* the scene's own region is there */
    }
    free(regions);
}

static void without_memory_there_is_no_region(void **state) {
    struct pooled *pooled = *state;
    struct region regions[REGIONS_AN_AREA], one;
    pooled->pool.areas_max = 1;
    for (size_t i = 1; i < REGIONS_AN_AREA; i++)
        assert_true(region_init(&regions[i], &pooled->pool));
    assert_false(region_init(&one, &pooled->pool));
    region_pack(&one);
    region_done(&one);
    assert_false(region_init(&one, &pooled->pool));
    region_done(&regions[7]);
    assert_true(region_init(&one, &pooled->pool));
    region_done(&one);
    regions[7].at = NULL;
    for (size_t i = 1; i < REGIONS_AN_AREA; i++) region_done(&regions[i]);
}

#define REGION(name) cmocka_unit_test_setup_teardown(name, open_region, shut_region)

int main(void) {
    const struct CMUnitTest tests[] = {
        REGION(blocks_are_aligned_and_a_page_begins_a_large_one),
        REGION(a_region_that_is_full_says_so_and_goes_on),
        REGION(what_was_given_back_is_used_again_and_cleared),
        REGION(a_region_of_an_earlier_owner_is_cleared_too),
        REGION(a_block_given_back_twice_is_our_own_mistake),
        REGION(pages_cost_nothing_until_they_are_written),
        REGION(a_packed_region_holds_no_pages_and_comes_back_as_it_was),
        REGION(a_packed_region_can_end),
        REGION(whatever_happens_blocks_keep_their_bytes),
        REGION(thousands_of_regions_come_and_go),
        REGION(without_memory_there_is_no_region),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
