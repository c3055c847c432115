#include "base/mem.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "helper/assert_str.h"

#include <pthread.h>
#include <stdlib.h>

#define LATE_BYTES (16 * KIB) /* of one thread */

static void what_is_held_is_counted_and_given_back(void **state) {
    (void)state;
    size_t before = mem_counted();
    struct buf buf;
    buf_init(&buf, 8 * MIB);
    char *room = buf_room(&buf, 4 * MIB);
    assert_non_null(room);
    assert_in_range(mem_counted() - before, 4 * MIB, 8 * MIB);
    buf_release(&buf);
    assert_int_equal(mem_counted(), before);
    struct arena *arena = arena_new(MIB);
    for (size_t i = 0; i < 10; i++) assert_non_null(arena_alloc(arena, 64 * KIB));
    assert_in_range(mem_counted() - before, 640 * KIB, 800 * KIB);
    arena_free(arena);
    assert_int_equal(mem_counted(), before);
}

static void *hold_and_give_back(void *ctx) {
    (void)ctx;
    for (size_t i = 0; i < 1000; i++) {
        mem_count(i * 100);
        mem_uncount(i * 100);
        mem_count(30);
    }
    return NULL;
}

static void the_counts_of_threads_meet(void **state) {
    (void)state;
    pthread_t threads[4];
    size_t before = mem_counted();
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hold_and_give_back, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) pthread_join(threads[i], NULL);
    size_t held = mem_counted() - before, exact = ARRAY_LEN(threads) * 1000 * 30;
    assert_in_range(held, exact - ARRAY_LEN(threads) * LATE_BYTES,
                    exact + ARRAY_LEN(threads) * LATE_BYTES);
    mem_uncount(held);
}

/* --- the ceiling -------------------------------------------------------------------------- */

struct hoard {
    size_t bytes, calls;
};

static void give_up_some(size_t bytes, void *ctx) {
    struct hoard *hoard = ctx;
    size_t given = bytes < hoard->bytes ? bytes : hoard->bytes;
    hoard->calls++;
    hoard->bytes -= given;
    mem_uncount(given);
}

static void large_wishes_leave_room_for_small_ones(void **state) {
    (void)state;
    mem_limit(mem_counted() + 8 * MIB);
    assert_true(mem_allows(6 * MIB));
    assert_false(mem_allows(8 * MIB));
    mem_count(7 * MIB + 512 * KIB);
    assert_false(mem_allows(128 * KIB));
    assert_true(mem_allows(64 * KIB));
    mem_count(512 * KIB);
    assert_false(mem_allows(1));
    mem_uncount(8 * MIB);
    mem_limit(0);
    assert_true(mem_allows(SIZE_MAX / 4));
}

static void memory_is_scarce_from_half_of_the_ceiling_on(void **state) {
    (void)state;
    mem_limit(mem_counted() * 2 + 8 * MIB);
    assert_false(mem_scarce());
    mem_count(5 * MIB);
    assert_true(mem_scarce());
    mem_uncount(5 * MIB);
    assert_false(mem_scarce());
    mem_limit(0);
    mem_count(64 * MIB);
    assert_false(mem_scarce());
    mem_uncount(64 * MIB);
}

static void memory_that_can_be_restored_is_freed_before_a_call_is_refused(void **state) {
    (void)state;
    struct err e;
    struct hoard hoard = {.bytes = 6 * MIB};
    mem_limit(mem_counted() + 8 * MIB);
    mem_shed_with(give_up_some, &hoard);
    mem_count(6 * MIB);
    assert_true(mem_check(512 * KIB, &e));
    assert_int_equal(hoard.calls, 0);
    assert_true(mem_check(5 * MIB, &e));
    assert_int_equal(hoard.calls, 1);
    assert_int_equal(hoard.bytes, 2 * MIB); /* no more than was needed */
    assert_false(mem_check(64 * MIB, &e));
    assert_int_equal(hoard.bytes, 0);
    assert_int_equal(e.code, ERR_OUT_OF_MEMORY);
    assert_true(strstr(e.text, "limits.memory") != NULL);
    mem_shed_with(NULL, NULL);
    mem_limit(0);
}

/* --- the end of a burst ------------------------------------------------------------------- */

static void count_call(void *ctx) {
    ++*(size_t *)ctx;
}

static void the_end_of_a_burst_is_reported_once(void **state) {
    (void)state;
    size_t calls = 0;
    mem_freed_with(count_call, &calls);
    mem_count(8 * MIB);
    mem_uncount(2 * MIB);
    assert_int_equal(calls, 0); /* more than two thirds are there */
    assert_false(mem_much_freed());
    mem_uncount(3 * MIB);
    assert_int_equal(calls, 1);
    assert_true(mem_much_freed());
    mem_uncount(2 * MIB);
    assert_int_equal(calls, 1);
    mem_watch(MEM_FROM_BEFORE);
    mem_uncount(512 * KIB);
    assert_int_equal(calls, 2);
    mem_watch(MEM_FROM_NOW);
    assert_false(mem_much_freed());
    mem_uncount(512 * KIB);
    assert_int_equal(calls, 2);
    mem_count(2 * MIB);
    mem_unwatch();
    mem_uncount(2 * MIB);
    assert_int_equal(calls, 2);
    mem_freed_with(NULL, NULL);
}

static void less_than_a_third_is_no_end(void **state) {
    (void)state;
    size_t calls = 0;
    mem_count(64 * MIB);
    mem_freed_with(count_call, &calls);
    for (size_t i = 0; i < 100; i++) { /* a steady load */
        mem_count(20 * MIB);
        mem_uncount(20 * MIB);
    }
    assert_int_equal(calls, 0);
    mem_freed_with(NULL, NULL);
    mem_uncount(64 * MIB);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_of_a_burst_is_reported_once),
        cmocka_unit_test(less_than_a_third_is_no_end),
        cmocka_unit_test(what_is_held_is_counted_and_given_back),
        cmocka_unit_test(the_counts_of_threads_meet),
        cmocka_unit_test(large_wishes_leave_room_for_small_ones),
        cmocka_unit_test(memory_is_scarce_from_half_of_the_ceiling_on),
        cmocka_unit_test(memory_that_can_be_restored_is_freed_before_a_call_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
