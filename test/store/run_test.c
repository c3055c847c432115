/* The places of a run: read as they were added, however many and however far apart. */
#include "store/run.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these four first. */
#include <cmocka.h>

static void assert_places(const struct run_entry *entry, const int64_t *rows,
                          const bool *shared, size_t count) {
    struct run_places cursor = run_entry_places(entry);
    for (size_t i = 0; i < count; i++) {
        assert_true(run_places_next(&cursor));
        assert_int_equal(cursor.row, rows[i]);
        assert_int_equal(cursor.shared, shared[i]);
    }
    assert_false(run_places_next(&cursor));
    assert_int_equal(entry->last_log, count ? rows[count - 1] : 0);
    assert_int_equal(entry->first_log, count ? rows[0] : 0);
}

static void places_are_read_as_they_were_added(void **state) {
    (void)state;
    static const int64_t steps[] = {1, 63, 64, 10000, INT64_C(1) << 40};
    for (size_t s = 0; s < ARRAY_LEN(steps); s++) {
        struct run_entry entry;
        int64_t rows[40];
        bool shared[40];
        run_entry_init(&entry, 7);
        assert_places(&entry, rows, shared, 0);
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            rows[i] = (i ? rows[i - 1] : 0) + steps[(s + i / 3) % ARRAY_LEN(steps)];
            shared[i] = i % 2;
            run_entry_add_place(&entry, rows[i], shared[i]);
            assert_places(&entry, rows, shared, i + 1);
            run_entry_add_place(&entry, rows[i], true); /* changes nothing */
            assert_places(&entry, rows, shared, i + 1);
            if (i % 3) continue;
            run_entry_add_place(&entry, rows[i], false);
            shared[i] = false;
            assert_places(&entry, rows, shared, i + 1);
        }
        run_entry_done(&entry);
    }
}

static void the_list_ends_at_its_limit_and_has_no_gap(void **state) {
    (void)state;
    const int64_t most = RUN_PLACES_MAX_BYTES;
    struct run_entry entry;
    run_entry_init(&entry, 7);
    for (int64_t row = 1; row <= 2 * most; row++) run_entry_add_place(&entry, row, true);
    struct run_places cursor = run_entry_places(&entry);
    int64_t count = 0;
    while (run_places_next(&cursor)) assert_int_equal(cursor.row, ++count);
    assert_true(count > most - 16 && count <= most);
    assert_int_equal(entry.last_log, 2 * most);
    run_entry_done(&entry);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_read_as_they_were_added),
        cmocka_unit_test(the_list_ends_at_its_limit_and_has_no_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
