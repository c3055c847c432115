/* Rows that are appended together are packed, and read back as they were appended. */
#include "fixture.h"

#include "store/row.h"
#include "store/run.h"
#include "store/schema.h"
#include "store/shorten.h"

struct log {
    struct database db;
    struct rows rows;
};

static int log_setup(void **state) {
    struct log *log = MEM_NEW(struct log);
    struct err e;
    assert_true(database_open(&log->db, ":memory:", &e));
    assert_true(schema_migrate(&log->db, 0, &e));
    assert_true(row_open(&log->rows, &log->db, &e));
    *state = log;
    return 0;
}

static int log_teardown(void **state) {
    struct log *log = *state;
    row_close(&log->rows);
    database_close(&log->db);
    free(log);
    return 0;
}

/* "id run:text ", and "|" where a stored row ends. */
static bool note(const struct row *row, void *ctx, struct err *e) {
    struct buf *seen = ctx;
    struct str rest = row->bytes;
    struct store_section section;
    bool bad = false;
    (void)e;
    while (store_section_next(&rest, &section, &bad))
        buf_printf(seen, "%d %llu:%.*s ", (int)row->id, (unsigned long long)section.run,
                   (int)(section.events.len < 4 ? section.events.len : 4), section.events.at);
    assert_false(bad);
    if (row->last) buf_append_byte(seen, '|');
    return true;
}

static void append(struct log *log, uint64_t owner, uint64_t run, const char *text,
                   size_t bytes) {
    struct buf row, events;
    struct err e;
    int64_t id;
    buf_init(&row, MIB);
    buf_init(&events, MIB);
    buf_append(&events, str_from(text));
    while (events.len < bytes) buf_append_byte(&events, '.');
    assert_true(store_section_append(&row, run, 1, buf_str(&events)));
    const struct shorten_end end = shorten_find(buf_str(&row));
    assert_true(row_place(&log->rows, row.len, &id, &e));
    assert_true(row_put(&log->rows, owner, buf_str(&row), &end, &e));
    buf_done(&row);
    buf_done(&events);
}

static void finish(struct log *log) {
    struct err e;
    assert_true(row_finish(&log->rows, &log->rows.newest, &e));
}

static void assert_seen(struct log *log, bool all, uint64_t run, int64_t id,
                        const char *expected) {
    struct buf seen;
    struct err e;
    buf_init(&seen, MIB);
    if (all) assert_true(row_each(&log->rows, 0, 100, note, &seen, &e));
    if (!all && id) assert_true(row_each_in(&log->rows, id, run, note, &seen, &e));
    if (!all && !id) assert_true(row_each_of(&log->rows, run, 0, 100, note, &seen, &e));
    buf_append_byte(&seen, '\0');
    assert_string_equal(seen.at, expected);
    buf_done(&seen);
}

static void rows_of_one_transaction_share_a_stored_one(void **state) {
    struct log *log = *state;
    row_start(&log->rows);
    append(log, 7, 7, "aa", 0);
    append(log, 0, 8, "bb", 0);
    append(log, 9, 9, "cc", 0);
    finish(log);
    assert_int_equal(log->rows.newest, 1);
    row_start(&log->rows);
    append(log, 9, 9, "dd", 0);
    finish(log);
    assert_int_equal(log->rows.newest, 2);
    assert_seen(log, true, 0, 0, "1 7:aa 1 8:bb 1 9:cc |2 9:dd |");
    assert_seen(log, false, 9, 1, "1 8:bb 1 9:cc |");
    assert_seen(log, false, 7, 1, "1 7:aa 1 8:bb ");
    assert_seen(log, false, 9, 0, "1 8:bb 1 9:cc |2 9:dd |");
}

static void large_rows_stand_alone_in_their_order(void **state) {
    struct log *log = *state;
    row_start(&log->rows);
    append(log, 1, 1, "aa", 0);
    append(log, 2, 2, "bb", 0);
    append(log, 3, 3, "cc", ROW_PACKED_BYTES);
    append(log, 4, 4, "dd", 0);
    for (uint64_t run = 5; run < 9; run++)
        append(log, run, run, "ee", ROW_PACKED_BYTES / 2 - 100);
    finish(log);
    assert_int_equal(log->rows.newest, 4);
    assert_seen(log, true, 0, 0,
                "1 1:aa 1 2:bb |2 3:cc.. |3 4:dd 3 5:ee.. 3 6:ee.. |4 7:ee.. 4 8:ee.. |");
}

static void what_was_not_finished_is_forgotten(void **state) {
    struct log *log = *state;
    row_start(&log->rows);
    append(log, 7, 7, "aa", 0);
    row_start(&log->rows);
    finish(log);
    assert_int_equal(log->rows.newest, 0);
    row_start(&log->rows);
    append(log, 8, 8, "bb", 0);
    finish(log);
    assert_seen(log, true, 0, 0, "1 8:bb |");
}

static void a_run_is_taken_out_and_its_neighbours_stay(void **state) {
    struct log *log = *state;
    struct buf kept;
    struct err e;
    uint64_t owner;
    bool changed;
    row_start(&log->rows);
    append(log, 7, 7, "secret", 0);
    append(log, 0, 7, "secret", 0);
    append(log, 9, 9, "cc", 0);
    finish(log);
    buf_init(&kept, MIB);
    assert_true(row_without(&log->rows, 1, 8, &kept, &owner, &changed, &e));
    assert_false(changed);
    buf_clear(&kept);
    assert_true(row_without(&log->rows, 1, 7, &kept, &owner, &changed, &e));
    assert_true(changed && owner == ROW_PACKED);
    assert_true(str_find(buf_str(&kept), STR("secret")) == kept.len);
    assert_true(str_find(buf_str(&kept), STR("cc")) < kept.len);
    buf_clear(&kept);
    assert_true(row_without(&log->rows, 1, 9, &kept, &owner, &changed, &e));
    assert_true(str_find(buf_str(&kept), STR("cc")) == kept.len);
    assert_true(str_find(buf_str(&kept), STR("secret")) < kept.len);
    buf_done(&kept);
}

/* Whatever the bytes of a packed row, reading them ends with all of them or DATA_LOSS. */
static void a_packed_row_cut_anywhere_is_an_error(void **state) {
    struct log *log = *state;
    char sql[200];
    row_start(&log->rows);
    append(log, 7, 7, "aa", 0);
    append(log, 300, 300, "bb", 0);
    finish(log);
    for (int len = 0; len < 22; len++) {
        struct buf seen;
        struct err e;
        buf_init(&seen, MIB);
        snprintf(sql, sizeof(sql), "UPDATE log SET bytes = substr(bytes, 1, %d)", len);
        assert_true(database_run(&log->db, "SAVEPOINT whole", &e));
        assert_true(database_run(&log->db, sql, &e));
        assert_false(row_each(&log->rows, 0, 100, note, &seen, &e));
        assert_int_equal(e.code, ERR_DATA_LOSS);
        assert_int_equal(seen.len, 0);
        assert_true(database_run(&log->db, "ROLLBACK TO whole; RELEASE whole", &e));
        buf_done(&seen);
    }
    assert_seen(log, true, 0, 0, "1 7:aa 1 300:bb |");
}

/* --- the places of a run ------------------------------------------------------------------ */

static void assert_places(struct run_entry *entry, const char *expected) {
    struct buf seen;
    buf_init(&seen, MIB);
    struct run_places cursor = run_entry_places(entry);
    while (run_places_next(&cursor))
        buf_printf(&seen, "%d%s ", (int)cursor.row, cursor.shared ? "s" : "");
    buf_append_byte(&seen, '\0');
    assert_string_equal(seen.at, expected);
    buf_done(&seen);
}

static void a_row_with_something_of_its_own_is_no_shared_place(void **state) {
    (void)state;
    struct run_entry entry;
    run_entry_init(&entry, 7);
    run_entry_add_place(&entry, 3, true);
    run_entry_add_place(&entry, 3, true);
    assert_places(&entry, "3s ");
    run_entry_add_place(&entry, 300, true);
    run_entry_add_place(&entry, 300, false);
    assert_places(&entry, "3s 300 ");
    run_entry_add_place(&entry, 300, true);
    run_entry_add_place(&entry, 70000, true);
    assert_places(&entry, "3s 300 70000s ");
    run_entry_done(&entry);
}

static void a_chain_of_runs_has_an_end(void **state) {
    (void)state;
    struct run_chain chain = run_chain();
    assert_true(run_chain_follows(&chain, &(struct run_entry){.first_log = 9}));
    assert_true(run_chain_follows(&chain, &(struct run_entry){.first_log = 9}));
    assert_true(run_chain_follows(&chain, &(struct run_entry){.first_log = 4}));
    size_t steps = 0;
    while (run_chain_follows(&chain, &(struct run_entry){.first_log = 4})) steps++;
    assert_int_equal(steps, RUN_CHAIN_MAX_EQUAL - 1);
    chain = run_chain();
    assert_true(run_chain_follows(&chain, &(struct run_entry){.first_log = 4}));
    assert_false(run_chain_follows(&chain, &(struct run_entry){.first_log = 5}));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_of_one_transaction_share_a_stored_one, log_setup,
                                        log_teardown),
        cmocka_unit_test_setup_teardown(large_rows_stand_alone_in_their_order, log_setup,
                                        log_teardown),
        cmocka_unit_test_setup_teardown(what_was_not_finished_is_forgotten, log_setup,
                                        log_teardown),
        cmocka_unit_test_setup_teardown(a_run_is_taken_out_and_its_neighbours_stay, log_setup,
                                        log_teardown),
        cmocka_unit_test_setup_teardown(a_packed_row_cut_anywhere_is_an_error, log_setup,
                                        log_teardown),
        cmocka_unit_test(a_row_with_something_of_its_own_is_no_shared_place),
        cmocka_unit_test(a_chain_of_runs_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
