/* A log that is folded by large reads and writes leaves the database as one that is folded page by
 * page, whatever was written, whoever reads beside it, and wherever a read or a write fails. */
#include "fixture.h"

#include "store/database.h"
#include "store/fold_window.h"
#include "store/log_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define PAGE FOLD_PAGE_BYTES
#define FRAME (24 + PAGE)
#define FRAMES_MAX 200
#define PAGES_MAX 64
#define TRIALS 2000

/* --- against a log and a database in memory ----------------------------------------------- */

/* SQLite's part: it folds the newest frame of each page up to `upto`, pages in order. */
static struct play {
    sqlite3_io_methods methods;
    sqlite3_file log;
    unsigned seed;
    uint32_t count, upto, folded; /* frames; `folded` are folded already */
    uint32_t pages[FRAMES_MAX];
    char bytes[32 + FRAMES_MAX * FRAME];
    char database[PAGES_MAX * PAGE], before[PAGES_MAX * PAGE];
    size_t reads, writes, calls, fails_at;
} play;

static uint32_t pick(uint32_t limit) {
    return (uint32_t)rand_r(&play.seed) % limit;
}

static bool fails(void) {
    return ++play.calls == play.fails_at;
}

/* What lies beyond the frames that are folded may be half written. */
static int play_read(sqlite3_file *file, void *to, int len, sqlite3_int64 at) {
    assert_ptr_equal(file, &play.log);
    assert_true(at >= 0 && at + len <= 32 + (sqlite3_int64)play.upto * FRAME);
    assert_true(len < 128 * 1024);
    if (fails()) return SQLITE_IOERR_READ;
    play.reads++;
    memcpy(to, play.bytes + at, (size_t)len);
    return SQLITE_OK;
}

static int play_write(const char *bytes, size_t len, sqlite3_int64 at) {
    assert_true(len < 128 * 1024);
    if (fails()) return SQLITE_IOERR_WRITE;
    play.writes++;
    memcpy(play.database + at, bytes, len);
    return SQLITE_OK;
}

static void put_frame(uint32_t page) {
    char *frame = play.bytes + 32 + (size_t)play.count * FRAME;
    memset(frame, 0, 24);
    frame[3] = (char)page;
    memset(frame + 24, (int)pick(256), PAGE);
    memcpy(frame + 24, &play.count, sizeof(play.count));
    play.pages[play.count++] = page;
}

static void begin_log(void) {
    play.count = play.folded = 0;
    play.methods.xRead = play_read;
    play.log.pMethods = &play.methods;
    play.reads = play.writes = play.calls = play.fails_at = 0;
    memset(play.database, 'd', sizeof(play.database));
    memcpy(play.before, play.database, sizeof(play.before));
}

/* One commit: pages in order, each once. Some are appended, a few that are there change, and in half of
 * the commits those at the end of what is there, where a table grows. */
static void put_commit(uint32_t *size) {
    bool changed[PAGES_MAX + 1] = {[1] = true};
    for (uint32_t i = pick(3); i > 0; i--) changed[1 + pick(*size)] = true;
    for (uint32_t i = pick(2) * pick(5); i > 0; i--)
        changed[*size - pick(*size < 5 ? *size : 5)] = true;
    for (uint32_t i = pick(12); i > 0 && *size < PAGES_MAX; i--) changed[++*size] = true;
    for (uint32_t page = 1; page <= *size; page++) {
        if (changed[page]) put_frame(page);
    }
}

static void make_log(unsigned seed) {
    play.seed = seed;
    begin_log();
    uint32_t size = 3, frames = 1 + pick(FRAMES_MAX - 24);
    while (play.count < frames) put_commit(&size);
    play.upto = 1 + pick(play.count);
    play.folded = pick(play.upto);
}

static const char *page_in_log(uint32_t frame) {
    return play.bytes + 32 + (size_t)(frame - 1) * FRAME + 24;
}

static uint32_t newest_of(uint32_t page, uint32_t upto) {
    for (uint32_t frame = upto; frame > 0; frame--) {
        if (play.pages[frame - 1] == page) return frame;
    }
    return 0;
}

static int write_run(struct fold_window *window, const struct fold_run *run, uint32_t page) {
    for (size_t i = 0; i < run->count; i++) memcpy(run->room + i * PAGE, run->pages[i], PAGE);
    int result = run->count == 0 ? SQLITE_OK
                                 : play_write(run->room, run->count * PAGE,
                                              (sqlite3_int64)(page - 1) * PAGE);
    if (result == SQLITE_OK) fold_window_written(window, run);
    return result;
}

static int fold_page(struct fold_window *window, uint32_t frame) {
    char bytes[PAGE];
    struct fold_run run;
    uint32_t page = play.pages[frame - 1];
    sqlite3_int64 from = 32 + (sqlite3_int64)(frame - 1) * FRAME + 24,
                  to = (sqlite3_int64)(page - 1) * PAGE;
    int result = SQLITE_OK;
    if (!fold_window_read(window, &play.log, play.upto, bytes, PAGE, from, &result))
        result = play_read(&play.log, bytes, PAGE, from);
    if (result != SQLITE_OK) return result;
    assert_memory_equal(bytes, page_in_log(frame), PAGE);
    if (fold_window_run(window, bytes, to, &run)) return write_run(window, &run, page);
    return play_write(bytes, PAGE, to);
}

static int fold_all(size_t *ret_pages) {
    struct fold_window *window = fold_window_new();
    int result = SQLITE_OK;
    *ret_pages = 0;
    for (uint32_t page = 1; result == SQLITE_OK && page <= PAGES_MAX; page++) {
        uint32_t frame = newest_of(page, play.count);
        if (frame <= play.folded || frame > play.upto) continue; /* SQLite passes these over */
        result = fold_page(window, frame);
        ++*ret_pages;
    }
    fold_window_free(window);
    return result;
}

/* What a reader of any moment sees, who looks for a page in the log first: one who came before the
 * fold, and one who came after it. */
static void assert_readers_see_the_same(uint32_t folded) {
    for (uint32_t page = 1; page <= PAGES_MAX; page++) {
        size_t at = (size_t)(page - 1) * PAGE;
        uint32_t newest = newest_of(page, play.count);
        if (newest > folded) continue; /* in the log, for both */
        const char *expected = newest > play.folded ? page_in_log(newest) : play.before + at;
        assert_memory_equal(play.database + at, expected, PAGE);
    }
}

static void test_every_page_is_its_newest_frame(void **state) {
    (void)state;
    for (unsigned seed = 1; seed <= TRIALS; seed++) {
        size_t pages;
        make_log(seed);
        assert_int_equal(fold_all(&pages), SQLITE_OK);
        assert_readers_see_the_same(play.upto);
    }
}

/* 12 was written from its newest frame together with 9, when 11 is written from its own: the 12 that
 * follows it in the log is an older one. */
static void test_an_older_frame_does_not_follow_its_newest(void **state) {
    static const uint32_t log[] = {9, 10, 11, 1, 11, 12, 1, 12, 13};
    size_t pages;
    (void)state;
    begin_log();
    for (size_t i = 0; i < ARRAY_LEN(log); i++) put_frame(log[i]);
    play.upto = play.count;
    assert_int_equal(fold_all(&pages), SQLITE_OK);
    assert_readers_see_the_same(play.upto);
}

static void test_what_fails_is_reported_and_a_second_fold_ends_it(void **state) {
    (void)state;
    size_t failed = 0, pages;
    for (unsigned seed = 1; seed <= TRIALS; seed++) {
        make_log(seed);
        play.fails_at = 1 + seed % 20;
        int result = fold_all(&pages);
        failed += result != SQLITE_OK;
        assert_int_equal(result != SQLITE_OK, play.calls >= play.fails_at);
        if (result != SQLITE_OK) assert_int_equal(fold_all(&pages), SQLITE_OK);
        assert_readers_see_the_same(play.upto);
    }
    assert_in_range(failed, TRIALS / 4, TRIALS);
}

static void test_appended_pages_are_a_few_reads_and_writes(void **state) {
    size_t pages;
    (void)state;
    make_log(1);
    play.count = 0;
    for (uint32_t page = 1; page <= PAGES_MAX; page++) put_frame(page);
    play.upto = play.count;
    play.folded = 0;
    assert_int_equal(fold_all(&pages), SQLITE_OK);
    assert_int_equal(pages, PAGES_MAX);
    assert_int_equal(play.reads, (PAGES_MAX + FOLD_WINDOW_FRAMES - 1) / FOLD_WINDOW_FRAMES);
    assert_int_equal(play.writes, play.reads);
    assert_readers_see_the_same(play.upto);
}

/* Other reads pass: of the log's header, of a frame with its head, past the end, of another size. */
static void test_only_pages_of_frames_come_from_the_window(void **state) {
    struct fold_window *window = fold_window_new();
    struct fold_run run;
    char bytes[2 * PAGE];
    int result = SQLITE_OK;
    (void)state;
    make_log(2);
    assert_false(fold_window_read(window, &play.log, play.upto, bytes, 32, 0, &result));
    assert_false(fold_window_read(window, &play.log, play.upto, bytes, PAGE, 32, &result));
    assert_false(fold_window_read(window, &play.log, play.upto, bytes, 24, 32, &result));
    assert_false(fold_window_read(window, &play.log, play.upto, bytes, 2 * PAGE, 56, &result));
    assert_false(fold_window_read(window, &play.log, 0, bytes, PAGE, 56, &result));
    assert_false(fold_window_read(window, &play.log, play.upto, bytes, PAGE,
                                  56 + (sqlite3_int64)play.upto * FRAME, &result));
    assert_false(fold_window_run(window, bytes, 0, &run));
    assert_true(fold_window_read(window, &play.log, play.upto, bytes, PAGE, 56, &result));
    assert_false(fold_window_run(window, bytes + 1, 0, &run)); /* other bytes */
    assert_true(fold_window_read(window, &play.log, play.upto, bytes, PAGE, 56, &result));
    assert_false(fold_window_run(window, bytes, 7 * PAGE, &run)); /* another place */
    fold_window_free(window);
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

/* In SQL: bytes of this length that say which round wrote them, the same in each run of the test. */
#define BYTES_OF "replace(hex(zeroblob(%d)), '00', '%04d')"

static void turn_over(struct database *db, int round) {
    char sql[300];
    for (int i = 0; i < 40; i++) {
        snprintf(sql, sizeof(sql),
                 "INSERT OR REPLACE INTO t VALUES((%d * 7919 + %d * 131) %% 409,"
                 " 'name ' || (%d * 31 %% 977), " BYTES_OF ")",
                 i, round, i, (i * 6151 + round * 37) % 5000, round);
        run(db, sql);
    }
    snprintf(sql, sizeof(sql), "DELETE FROM t WHERE (id + %d) %% 4 = 0", round);
    run(db, sql);
}

/* The end of a table grows, and its newest rows change: so their pages have several frames that lie
 * close to each other. */
static void grow(struct database *db, int round) {
    char sql[400];
    for (int i = 0; i < 60; i++) {
        int now = round * 60 + i;
        snprintf(sql, sizeof(sql),
                 "BEGIN; UPDATE t SET bytes = " BYTES_OF
                 " WHERE id > (SELECT max(id) FROM t) - %d; INSERT INTO t VALUES((SELECT "
                 "max(id) + 1 "
                 "FROM t), 'name %d', " BYTES_OF "); COMMIT",
                 750, now, (round + i * 7) % 4, now, 125 + (round * 131 + i * 977) % 1000, now);
        run(db, sql);
    }
}

static void copy_file(const char *from, const char *to) {
    static char bytes[64 * KIB];
    ssize_t got;
    int in = open(from, O_RDONLY | O_CLOEXEC),
        out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(in >= 0 && out >= 0);
    while ((got = read(in, bytes, sizeof(bytes))) > 0)
        assert_int_equal(write(out, bytes, (size_t)got), got);
    close(in);
    close(out);
}

static void assert_same_files(const char *one, const char *other) {
    static char a[64 * KIB], b[64 * KIB];
    ssize_t got;
    int x = open(one, O_RDONLY | O_CLOEXEC), y = open(other, O_RDONLY | O_CLOEXEC);
    assert_true(x >= 0 && y >= 0);
    do {
        got = read(x, a, sizeof(a));
        assert_int_equal(read(y, b, sizeof(b)), got);
        if (got > 0) assert_memory_equal(a, b, (size_t)got);
    } while (got > 0);
    close(x);
    close(y);
}

#define SETTINGS                                                                               \
    "PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = OFF; PRAGMA secure_delete = ON;"

static void open_one(struct database *db, const char *path) {
    struct err e;
    if (!database_open(db, path, &e)) fail_msg("%s", e.text);
    run(db, SETTINGS);
    ask(db, "PRAGMA schema_version");
}

/* The same log, folded both ways, makes the same file. */
static void test_the_file_is_that_of_a_fold_page_by_page(void **state) {
    struct fixture *f = *state;
    struct database db = {0}, other = {0};
    char path[96], log[112], copy[112], copy_log[128];
    snprintf(path, sizeof(path), "%s/db", f->folder);
    snprintf(log, sizeof(log), "%s-wal", path);
    snprintf(copy, sizeof(copy), "%s/copy", f->folder);
    snprintf(copy_log, sizeof(copy_log), "%s-wal", copy);
    open_one(&db, path);
    run(&db, "PRAGMA journal_mode = WAL; CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT,"
             " bytes BLOB); CREATE INDEX by_name ON t(name, id)");
    for (int round = 0; round < 20; round++) {
        turn_over(&db, round);
        grow(&db, round);
        copy_file(path, copy);
        copy_file(log, copy_log);
        open_one(&other, copy);
        run(&other, "PRAGMA wal_checkpoint(TRUNCATE)");
        database_close(&other);
        assert_int_equal(log_file_fold(db.handle, SQLITE_CHECKPOINT_TRUNCATE), SQLITE_OK);
        assert_same_files(path, copy);
    }
    database_close(&db);
}

/* One who reads an old moment keeps seeing it, one who comes sees the new one, and another
 * connection folds meanwhile. */
static void test_readers_see_their_moment(void **state) {
    struct fixture *f = *state;
    struct database writer = {0}, reader = {0}, folder = {0};
    char path[96];
    snprintf(path, sizeof(path), "%s/db", f->folder);
    open_one(&writer, path);
    run(&writer, "PRAGMA journal_mode = WAL; CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT,"
                 " bytes BLOB); CREATE INDEX by_name ON t(name, id)");
    open_one(&reader, path);
    open_one(&folder, path);
    static const char sum[] = "SELECT total(length(bytes) * (id + 1)) FROM t";
    for (int round = 0; round < 30; round++) {
        turn_over(&writer, round);
        run(&reader, "BEGIN");
        int64_t before = ask(&reader, sum);
        turn_over(&writer, round + 1000);
        ask(&folder, "PRAGMA schema_version");
        assert_int_equal(log_file_fold(folder.handle, SQLITE_CHECKPOINT_PASSIVE), SQLITE_OK);
        assert_int_equal(ask(&reader, sum), before);
        run(&reader, "COMMIT");
        assert_int_equal(ask(&reader, sum), ask(&writer, sum));
        turn_over(&writer, round + 2000);
        if (round % 3 == 0)
            assert_int_equal(log_file_fold(writer.handle, SQLITE_CHECKPOINT_PASSIVE),
                             SQLITE_OK);
        assert_int_equal(
            ask(&reader,
                "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"),
            1);
    }
    database_close(&folder);
    database_close(&reader);
    database_close(&writer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_page_is_its_newest_frame),
        cmocka_unit_test(test_an_older_frame_does_not_follow_its_newest),
        cmocka_unit_test(test_what_fails_is_reported_and_a_second_fold_ends_it),
        cmocka_unit_test(test_appended_pages_are_a_few_reads_and_writes),
        cmocka_unit_test(test_only_pages_of_frames_come_from_the_window),
        cmocka_unit_test_setup_teardown(test_the_file_is_that_of_a_fold_page_by_page,
                                        fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_readers_see_their_moment, fixture_setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
