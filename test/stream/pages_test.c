#include "stream/pages.h"

#include "base/mem.h"
#include "helper/assert_str.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

/* The bytes of an event follow from its number alone; every seventh is not sent. */
static void encode(uint64_t seq, struct buf *out) {
    buf_clear(out);
    if (seq % 7 == 0) return;
    buf_printf(out, "<%llu:", (unsigned long long)seq);
    for (uint64_t i = 0; i < seq * 31 % 97; i++) buf_append_byte(out, (char)('a' + i % 26));
    buf_append_byte(out, '>');
}

static bool put(struct pages *pages, struct pages_run *run, uint64_t seq, uint64_t last) {
    struct buf out;
    buf_init(&out, MIB);
    encode(seq, &out);
    bool kept =
        pages_put(run, pages_generation(pages),
                  &(struct pages_event){.seq = seq,
                                        .bytes = buf_str(&out),
                                        .end = seq == last ? PAGES_FINISHED : PAGES_GOES_ON});
    buf_done(&out);
    return kept;
}

static void put_all(struct pages *pages, struct pages_run *run, uint64_t first, uint64_t to,
                    uint64_t last) {
    for (uint64_t seq = first; seq <= to; seq++) assert_true(put(pages, run, seq, last));
}

static void expect(uint64_t first, uint64_t last, struct buf *out) {
    struct buf one;
    buf_init(&one, MIB);
    for (uint64_t seq = first; seq <= last; seq++) {
        encode(seq, &one);
        assert_true(buf_append(out, buf_str(&one)));
    }
    buf_done(&one);
}

/* Read from `place` to a gap or the end, `step` bytes at a time. */
static enum pages_end read_on(struct pages_run *run, struct pages_place *place, size_t step,
                              struct buf *got) {
    enum pages_end end = PAGES_GOES_ON;
    enum err_code code = ERR_NONE;
    while (end == PAGES_GOES_ON) {
        size_t before = got->len;
        if (!pages_read(run, place, step, got, &end, &code)) break;
        assert_true(got->len - before <= step);
    }
    return end;
}

static void assert_bytes(uint64_t first, uint64_t last, const struct buf *got) {
    struct buf all;
    buf_init(&all, 8 * MIB);
    expect(first, last, &all);
    assert_int_equal(got->len, all.len);
    assert_memory_equal(got->at, all.at, all.len);
    buf_done(&all);
}

static void it_is_cut_anywhere_and_read_from_every_event(void **state) {
    (void)state;
    struct pages *pages = pages_new(MIB);
    struct pages_run *run = pages_open(pages, 7);
    put_all(pages, run, 1, 60, 60);
    for (uint64_t after = 0; after < 60; after++) {
        for (size_t step = 1; step < 300; step = step * 2 + after % 3) {
            struct buf got;
            struct pages_place place = {.seq = after};
            buf_init(&got, MIB);
            assert_int_equal(read_on(run, &place, step, &got), PAGES_FINISHED);
            assert_int_equal(place.seq, 60);
            assert_int_equal(place.skip, 0);
            assert_bytes(after + 1, 60, &got);
            buf_done(&got);
        }
    }
    pages_close(run);
    pages_free(pages);
}

/* Stretches that overlap, in any order: nothing is kept twice, and nothing is lost. */
static void pages_put_in_any_order_become_one_run(void **state) {
    (void)state;
    static const uint64_t stretches[][2] = {
        {500, 900}, {1, 80}, {60, 520}, {850, 2000}, {1, 9}};
    struct pages *pages = pages_new(4 * MIB);
    struct pages_run *run = pages_open(pages, 7);
    struct pages_place place = {0};
    struct buf got;
    buf_init(&got, 4 * MIB);
    for (size_t i = 0; i < ARRAY_LEN(stretches); i++) {
        put_all(pages, run, stretches[i][0], stretches[i][1], 2000);
        read_on(run, &place, 100, &got);
        static const uint64_t reached[] = {0, 80, 900, 2000, 2000};
        assert_int_equal(place.seq, reached[i]); /* it waits at the gap */
    }
    assert_bytes(1, 2000, &got);
    buf_done(&got);
    pages_close(run);
    pages_free(pages);
}

static void a_page_goes_while_it_is_read_and_comes_again(void **state) {
    (void)state;
    struct pages *pages = pages_new(4 * MIB);
    struct pages_run *run = pages_open(pages, 7);
    struct pages_place place = {0};
    struct buf got;
    size_t again = 0;
    buf_init(&got, 4 * MIB);
    while (place.seq < 2000) {
        enum pages_end end = PAGES_GOES_ON;
        enum err_code code;
        if (pages_read(run, &place, 333, &got, &end, &code)) {
            pages_shrink(pages, 0); /* also in the middle of an event */
            assert_int_equal(pages_held(pages), 0);
        } else {
            put_all(pages, run, place.seq + 1, place.seq + 3 < 2000 ? place.seq + 3 : 2000,
                    2000);
            again++;
        }
    }
    assert_true(again > 300);
    assert_bytes(1, 2000, &got);
    buf_done(&got);
    pages_close(run);
    pages_free(pages);
}

/* Runs fall into stripes by a hash that differs from process to process; many sets of runs are
 * tried, so that one in which the oldest run has a stripe to itself is among them. */
static void the_least_recently_touched_goes_first(void **state) {
    (void)state;
    const size_t most = 128 * KIB;
    for (uint64_t set = 0; set < 40; set++) {
        struct pages *pages = pages_new(most);
        struct pages_run *runs[12];
        struct pages_place place;
        struct buf got;
        buf_init(&got, MIB);
        for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
            runs[i] = pages_open(pages, set * 100 + i);
            put_all(pages, runs[i], 1, 400, 400);
            assert_true(pages_held(pages) <= most);
            place = (struct pages_place){.seq = 390};
            assert_int_equal(read_on(runs[0], &place, 50, &got),
                             PAGES_FINISHED); /* still read */
        }
        assert_false(pages_has(runs[1], 1));
        assert_true(pages_has(runs[ARRAY_LEN(runs) - 1], 1));
        for (size_t i = 2; i < ARRAY_LEN(runs); i++) {
            assert_true(pages_has(runs[i], 1) || !pages_has(runs[i - 1], 1));
        }
        for (size_t i = 0; i < ARRAY_LEN(runs); i++) pages_close(runs[i]);
        buf_done(&got);
        pages_free(pages);
    }
}

static void a_page_larger_than_all_is_held_until_the_next(void **state) {
    (void)state;
    struct pages *pages = pages_new(256 * KIB);
    struct pages_run *run = pages_open(pages, 3), *other = pages_open(pages, 4);
    put_all(pages, other, 1, 400, 400);
    char *large = mem_zero(1, MIB);
    assert_true(pages_put(run, pages_generation(pages),
                          &(struct pages_event){.seq = 9000, .bytes = str_of(large, MIB)}));
    assert_false(pages_has(other, 1));
    enum pages_end end = PAGES_GOES_ON;
    enum err_code code;
    struct pages_place place = {.seq = 8999};
    struct buf got;
    buf_init(&got, 2 * MIB);
    assert_true(pages_read(run, &place, SIZE_MAX, &got, &end, &code));
    assert_int_equal(got.len, MIB);
    assert_true(put(pages, run, 9001, 0));
    assert_true(pages_held(pages) <= pages_max(pages));
    buf_done(&got);
    free(large);
    pages_close(run);
    pages_close(other);
    pages_free(pages);
}

static void what_was_erased_does_not_come_back(void **state) {
    (void)state;
    struct pages *pages = pages_new(MIB);
    struct pages_run *run = pages_open(pages, 7);
    uint64_t before = pages_generation(pages);
    put_all(pages, run, 1, 10, 10);
    pages_drop_all(pages);
    assert_int_equal(pages_held(pages), 0);
    const struct pages_event late = {.seq = 1, .bytes = STR("read before it was erased")};
    assert_false(pages_put(run, before, &late));
    struct pages_place place = {0};
    struct buf got;
    enum pages_end end = PAGES_GOES_ON;
    enum err_code code;
    buf_init(&got, MIB);
    assert_false(pages_read(run, &place, MIB, &got, &end, &code));
    assert_int_equal(got.len, 0);
    assert_true(put(pages, run, 1, 10));
    pages_close(run);
    run = pages_open(pages, 7); /* they outlive their readers */
    assert_true(pages_read(run, &place, MIB, &got, &end, &code));
    buf_done(&got);
    pages_close(run);
    pages_free(pages);
}

/* --- threads ------------------------------------------------------------------------------ */

struct race {
    struct pages *pages;
    atomic_int over;
};

static void *race_reader(void *ctx) {
    struct race *race = ctx;
    for (uint64_t round = 0; round < 6; round++) {
        struct pages_run *run = pages_open(race->pages, 1 + round % 2);
        struct pages_place place = {.seq = round * 100};
        struct buf got;
        buf_init(&got, 4 * MIB);
        while (read_on(run, &place, 1000 + round, &got) == PAGES_GOES_ON) {
            for (uint64_t seq = place.seq + 1; seq <= place.seq + 50 && seq <= 3000; seq++) {
                put(race->pages, run, seq, 3000);
            }
        }
        assert_bytes(round * 100 + 1, 3000, &got);
        buf_done(&got);
        pages_close(run);
    }
    atomic_fetch_add(&race->over, 1);
    return NULL;
}

static void loops_read_and_drop_at_once(void **state) {
    (void)state;
    struct race race = {.pages = pages_new(64 * KIB)};
    pthread_t threads[4];
    atomic_init(&race.over, 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, race_reader, &race), 0);
    }
    while (atomic_load(&race.over) < (int)ARRAY_LEN(threads)) {
        pages_shrink(race.pages, 32 * KIB);
        sched_yield();
    }
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) pthread_join(threads[i], NULL);
    pages_free(race.pages);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_cut_anywhere_and_read_from_every_event),
        cmocka_unit_test(pages_put_in_any_order_become_one_run),
        cmocka_unit_test(a_page_goes_while_it_is_read_and_comes_again),
        cmocka_unit_test(the_least_recently_touched_goes_first),
        cmocka_unit_test(a_page_larger_than_all_is_held_until_the_next),
        cmocka_unit_test(what_was_erased_does_not_come_back),
        cmocka_unit_test(loops_read_and_drop_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
