/* The write-ahead log stays short while commits go on, and is gone after a clean end. */
#include "fixture.h"

#include "helper/moves.h"
#include "store/checkpoint.h"

static off_t wal_bytes(const struct fixture *f) {
    char path[96];
    struct stat info;
    snprintf(path, sizeof(path), "%s/weir.db-wal", f->folder);
    return stat(path, &info) == 0 ? info.st_size : 0;
}

static void the_write_ahead_log_stays_bounded_under_load(void **state) {
    struct fixture *f = *state;
    enum { WRITES = 100, ROWS = 16 };
    char *says = mem_alloc(64 * KIB);
    memset(says, 'x', 64 * KIB - 1);
    says[64 * KIB - 1] = '\0';
    f->durability = STORE_NORMAL;
    fixture_open(f);
    for (uint64_t i = 0; i < WRITES; i++) {
        struct store_row rows[ROWS];
        for (uint64_t j = 0; j < ROWS; j++) rows[j] = whole_run(1 + i * ROWS + j, "s", says);
        assert_true(fixture_try_write(f, rows, ROWS));
        assert_true(wal_bytes(f) < (off_t)(36 * MIB));
    }
    free(says);
    struct store_load load = session_load("s");
    load.runs_max = 10;
    load = fixture_load(f, load);
    assert_int_equal(load.section_count, 10);
    arena_free(load.arena);
    fixture_close(f);
    assert_int_equal(wal_bytes(f), 0);
    assert_sql(f, "SELECT count(*) FROM log", "1600 ");
}

/* Another program that reads keeps the log from beginning anew, but blocks no writer. Once it has
 * left, the log does not keep the length it had. */
static void a_reader_elsewhere_delays_the_folding_and_stops_no_write(void **state) {
    struct fixture *f = *state;
    char path[96];
    sqlite3 *reader;
    f->durability = STORE_NORMAL;
    fixture_open(f);
    fixture_write(f, whole_run(1, "s", "x"));
    snprintf(path, sizeof(path), "%s/weir.db", f->folder);
    assert_int_equal(sqlite3_open(path, &reader), SQLITE_OK);
    assert_int_equal(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM log", NULL, NULL, NULL),
                     SQLITE_OK);
    char *says = mem_alloc(1 * MIB);
    memset(says, 'x', 1 * MIB - 1);
    says[1 * MIB - 1] = '\0';
    for (uint64_t run = 2; run < 42; run++) fixture_write(f, whole_run(run, "s", says));
    assert_true(wal_bytes(f) > (off_t)(36 * MIB));
    sqlite3_exec(reader, "COMMIT", NULL, NULL, NULL);
    sqlite3_close(reader);
    for (uint64_t run = 42; run < 82; run++) fixture_write(f, whole_run(run, "s", says));
    assert_true(wal_bytes(f) < (off_t)(36 * MIB));
    free(says);
    fixture_close(f);
    assert_int_equal(wal_bytes(f), 0);
    assert_sql(f, "SELECT count(*) FROM log", "81 ");
}

/* Resting may be repeated: a short log is folded at the start, and before it is cut. */
static void only_the_drawn_moves_are_legal(void **state) {
    (void)state;
    static const char *const drawn[] = {"resting resting", "resting folding",
                                        "resting leftovers", "folding leftovers",
                                        "leftovers resting"};
    assert_moves(checkpoint_states, CHECKPOINT_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(only_the_drawn_moves_are_legal),
        TEST(the_write_ahead_log_stays_bounded_under_load),
        TEST(a_reader_elsewhere_delays_the_folding_and_stops_no_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
