/* The free room of a page is cleared as it is written, and nothing else is changed: what SQLite reads
 * afterwards is what it wrote. */
#include "fixture.h"

#include "store/database.h"
#include "store/page_file.h"

#include <fcntl.h>
#include <string.h>

#define PAGE PAGE_FILE_PAGE_BYTES

/* --- which room is free ------------------------------------------------------------------- */

static void number_to(unsigned char *at, size_t number) {
    at[0] = (unsigned char)(number >> 8);
    at[1] = (unsigned char)number;
}

static void assert_room(unsigned char kind, size_t cells, size_t content, sqlite3_int64 at,
                        size_t from, size_t len) {
    unsigned char page[PAGE];
    size_t begin = at == 0 ? 100 : 0;
    memset(page, 'x', sizeof(page));
    page[begin] = kind;
    number_to(page + begin + 3, cells);
    number_to(page + begin + 5, content);
    struct page_room room = page_file_room(page, at);
    assert_int_equal(room.len, len);
    if (len) assert_int_equal(room.from, from);
}

static void test_the_room_is_between_the_places_of_the_cells_and_the_cells(void **state) {
    (void)state;
    assert_room(13, 0, 4096, PAGE, 8, 4088);
    assert_room(13, 10, 1000, PAGE, 28, 972);
    assert_room(10, 10, 1000, PAGE, 28, 972);
    assert_room(5, 10, 1000, PAGE, 32, 968);
    assert_room(2, 10, 1000, PAGE, 32, 968);
    assert_room(13, 3, 1000, 0, 114, 886); /* behind the header of the file */
}

static void test_a_page_of_another_kind_or_that_does_not_fit_has_none(void **state) {
    (void)state;
    for (int kind = 0; kind < 256; kind++) {
        if (kind == 2 || kind == 5 || kind == 10 || kind == 13) continue;
        assert_room((unsigned char)kind, 3, 1000, PAGE, 0, 0);
    }
    assert_room(13, 10, 28, PAGE, 0, 0); /* full */
    assert_room(13, 10, 27, PAGE, 0, 0);
    assert_room(13, 10, 4097, PAGE, 0, 0);
    assert_room(13, 10, 0, PAGE, 0, 0); /* 65536 */
    assert_room(13, 65535, 4096, PAGE, 0, 0);
    assert_room(2, 65535, 65535, 0, 0, 0);
}

/* --- with SQLite -------------------------------------------------------------------------- */

static void run(struct database *db, const char *sql) {
    struct err e;
    if (!database_run(db, sql, &e)) fail_msg("%s", e.text);
}

static int64_t ask(struct database *db, const char *sql) {
    struct err e;
    int64_t number = -1;
    if (!database_number(db, sql, &number, &e)) fail_msg("%s", e.text);
    return number;
}

/* Bytes in free room that are not zero, in all pages. */
static size_t count_left(const char *path, size_t *ret_pages) {
    unsigned char page[PAGE];
    size_t left = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    for (off_t at = 0; pread(file, page, PAGE, at) == PAGE; at += PAGE, (*ret_pages)++) {
        struct page_room room = page_file_room(page, at);
        for (size_t i = 0; i < room.len; i++) left += page[room.from + i] != 0;
    }
    close(file);
    return left;
}

static void turn_over(struct database *db, int round) {
    char sql[400];
    for (int i = 0; i < 120; i++) {
        snprintf(sql, sizeof(sql),
                 "INSERT OR REPLACE INTO t VALUES((%d * 7919 + %d * 131) %% 1009,"
                 " 'name ' || (%d * 31 %% 977) || ' of %d', randomblob(abs(random()) %% 3000))",
                 i, round, i, round);
        run(db, sql);
    }
    snprintf(sql, sizeof(sql), "DELETE FROM t WHERE (id + %d) %% 3 = 0", round);
    run(db, sql);
    snprintf(sql, sizeof(sql), "UPDATE t SET bytes = zeroblob(9) WHERE (id + %d) %% 5 = 0",
             round);
    run(db, sql);
}

/* Trees of both kinds, pages that overflow and pages that are free. Returns how many pages were seen, and
 * in `ret_left` how many bytes free room kept. */
static size_t play(struct fixture *f, const char *settings, size_t *ret_left) {
    struct database db = {0};
    struct err e;
    char path[96];
    size_t pages = 0;
    *ret_left = 0;
    snprintf(path, sizeof(path), "%s/db", f->folder);
    assert_true(database_open(&db, path, &e));
    run(&db, settings);
    run(&db, "PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;"
             "PRAGMA secure_delete = ON;"
             "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, bytes BLOB);"
             "CREATE INDEX by_name ON t(name, id);"
             "CREATE TABLE copy (id INTEGER PRIMARY KEY, name TEXT, bytes BLOB)");
    for (int round = 0; round < 12; round++) {
        turn_over(&db, round);
        run(&db, "DELETE FROM copy; INSERT INTO copy SELECT * FROM t");
        run(&db, "PRAGMA wal_checkpoint(TRUNCATE)");
        *ret_left += count_left(path, &pages);
        database_close(&db);
        assert_true(database_open(&db, path, &e)); /* with nothing in its memory */
        run(&db, "PRAGMA secure_delete = ON; PRAGMA synchronous = OFF");
        assert_int_equal(
            ask(&db,
                "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"),
            1);
        assert_int_equal(ask(&db, "SELECT count(*) FROM (SELECT * FROM t EXCEPT SELECT * FROM"
                                  " copy)"),
                         0);
        assert_true(ask(&db, "SELECT count(*) FROM t INDEXED BY by_name WHERE name > ''") > 0);
    }
    assert_true(pages > 1000);
    database_close(&db);
    unlink(path);
    return pages;
}

static void test_no_page_keeps_what_was_moved_and_all_is_read_as_it_was(void **state) {
    size_t left;
    play(*state, "", &left);
    assert_int_equal(left, 0);
}

/* A file that may vacuum itself has pages that begin as trees do and are none: it is left alone. */
static void test_a_file_that_vacuums_itself_is_written_as_it_is(void **state) {
    size_t left;
    play(*state, "PRAGMA auto_vacuum = FULL", &left);
    assert_true(left > 0);
    play(*state, "PRAGMA auto_vacuum = INCREMENTAL", &left);
    assert_true(left > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_room_is_between_the_places_of_the_cells_and_the_cells),
        cmocka_unit_test(test_a_page_of_another_kind_or_that_does_not_fit_has_none),
        cmocka_unit_test_setup_teardown(
            test_no_page_keeps_what_was_moved_and_all_is_read_as_it_was, fixture_setup,
            fixture_teardown),
        cmocka_unit_test_setup_teardown(test_a_file_that_vacuums_itself_is_written_as_it_is,
                                        fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
