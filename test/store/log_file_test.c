/* A log that is written by the commit: another connection sees each commit as soon as it is made,
 * in every durability; the file holds what was written, however the calls are cut; a write that
 * fails fails the commit, and loses nothing else. Below it lies a file system of the test's, which
 * counts the writes of the log and can refuse them. */
#include "fixture.h"

#include "store/database.h"
#include "store/log_file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>

#define LOG_MAX (512 * KIB) /* of the file in the random trials */
#define TRIALS 200
#define CALLS 120

/* --- the file system below ---------------------------------------------------------------- */

static struct {
    sqlite3_vfs vfs, *real;
    sqlite3_io_methods methods; /* of a log; the rest is the system's */
    const sqlite3_io_methods *system;
    size_t writes;  /* of logs */
    size_t refused; /* so many more are refused */
} below;

static int counted_write(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 at) {
    below.writes++;
    if (below.refused > 0) {
        below.refused--;
        return SQLITE_IOERR_WRITE;
    }
    return below.system->xWrite(file, bytes, len, at);
}

static int counted_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags,
                        int *ret_flags) {
    (void)vfs;
    int result = below.real->xOpen(below.real, path, file, flags, ret_flags);
    if (!(flags & SQLITE_OPEN_WAL) || !file->pMethods) return result;
    below.system = file->pMethods;
    below.methods = *file->pMethods;
    below.methods.xWrite = counted_write;
    file->pMethods = &below.methods;
    return result;
}

static int below_setup(void **state) {
    (void)state;
    below.real = sqlite3_vfs_find(NULL);
    below.vfs = *below.real;
    below.vfs.zName = "counted";
    below.vfs.xOpen = counted_open;
    return sqlite3_vfs_register(&below.vfs, 1) == SQLITE_OK ? 0 : -1;
}

/* --- with SQLite -------------------------------------------------------------------------- */

struct pair {
    char folder[32], path[64];
    struct database writer, reader;
};

static int pair_setup(void **state) {
    struct pair *pair = MEM_NEW(struct pair);
    struct err e;
    snprintf(pair->folder, sizeof(pair->folder), "/tmp/weir-log-XXXXXX");
    assert_non_null(mkdtemp(pair->folder));
    snprintf(pair->path, sizeof(pair->path), "%s/db", pair->folder);
    assert_true(database_open(&pair->writer, pair->path, &e));
    assert_true(database_run(&pair->writer,
                             "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;"
                             "PRAGMA cache_spill = OFF;"
                             "CREATE TABLE t (id INTEGER PRIMARY KEY, bytes BLOB)",
                             &e));
    assert_true(database_open(&pair->reader, pair->path, &e));
    *state = pair;
    return 0;
}

static int pair_teardown(void **state) {
    struct pair *pair = *state;
    database_close(&pair->reader);
    database_close(&pair->writer);
    const char *const ends[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        char path[80];
        snprintf(path, sizeof(path), "%s%s", pair->path, ends[i]);
        unlink(path);
    }
    rmdir(pair->folder);
    free(pair);
    return 0;
}

static bool pair_add(struct pair *pair, int bytes, struct err *e) {
    char sql[80];
    snprintf(sql, sizeof(sql), "INSERT INTO t (bytes) VALUES (randomblob(%d))", bytes);
    return database_run(&pair->writer, sql, e);
}

static int64_t pair_read(struct pair *pair) {
    struct err e;
    int64_t count = -1;
    assert_true(database_number(&pair->reader, "SELECT count(*) FROM t", &count, &e));
    return count;
}

static void test_a_commit_of_many_pages_is_a_few_writes_and_seen_at_once(void **state) {
    struct pair *pair = *state;
    static const char *const durability[] = {
        "PRAGMA synchronous = FULL", "PRAGMA synchronous = NORMAL", "PRAGMA synchronous = OFF"};
    int64_t rows = 0;
    struct err e;
    for (size_t i = 0; i < ARRAY_LEN(durability); i++) {
        assert_true(database_run(&pair->writer, durability[i], &e));
        for (int kib = 1; kib <= 512; kib *= 2) {
            size_t before = below.writes;
            assert_true(pair_add(pair, kib * 1024, &e));
            assert_int_equal(pair_read(pair), ++rows);
            /* A page and its frame are 4,120 bytes, 15 of them 62 KB: and some pages more
             * than the row itself has. The first commit writes the log's head too. */
            assert_in_range(below.writes - before, 1, (size_t)kib / 60 + 3);
        }
    }
}

static void test_what_was_rolled_back_is_not_seen(void **state) {
    struct pair *pair = *state;
    struct err e;
    assert_true(database_run(&pair->writer, "BEGIN", &e));
    assert_true(pair_add(pair, 300000, &e));
    assert_int_equal(pair_read(pair), 0);
    assert_true(database_run(&pair->writer, "ROLLBACK", &e));
    assert_true(pair_add(pair, 10, &e));
    assert_int_equal(pair_read(pair), 1);
}

/* Refused at the first, second ... write of a commit: it fails, and the next one does not. */
static void test_a_write_that_fails_fails_the_commit(void **state) {
    struct pair *pair = *state;
    struct err e;
    int64_t rows = 0;
    for (int kib = 1; kib <= 256; kib *= 4) {
        below.refused = 1;
        assert_false(pair_add(pair, kib * 1024, &e));
        assert_int_equal(e.code, ERR_UNAVAILABLE);
        assert_int_equal(pair_read(pair), rows);
        below.refused = 0;
        assert_true(pair_add(pair, 1, &e));
        assert_int_equal(pair_read(pair), ++rows);
    }
    assert_true(database_run(&pair->writer, "PRAGMA wal_checkpoint(TRUNCATE)", &e));
    int64_t sound = 0;
    assert_true(database_number(
        &pair->reader,
        "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'", &sound,
        &e));
    assert_int_equal(sound, 1);
}

/* --- by itself ---------------------------------------------------------------------------- */

/* A log without a connection, beside the file that SQLite takes its permissions from. */
struct alone {
    char folder[32], database[64];
    char log[PATH_MAX]; /* SQLite reads up to two NULs past a file name */
};

static void alone_make(struct alone *alone) {
    *alone = (struct alone){.folder = "/tmp/weir-log-XXXXXX"};
    assert_non_null(mkdtemp(alone->folder));
    snprintf(alone->database, sizeof(alone->database), "%s/db", alone->folder);
    snprintf(alone->log, sizeof(alone->log), "%s/db-wal", alone->folder);
    int file = open(alone->database, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    close(file);
}

static void alone_remove(struct alone *alone) {
    unlink(alone->log);
    unlink(alone->database);
    rmdir(alone->folder);
}

struct trial {
    sqlite3_file *file;
    char *expected;
    size_t len; /* of it */
    unsigned seed;
};

static size_t pick(struct trial *trial, size_t limit) {
    return (size_t)rand_r(&trial->seed) % limit;
}

/* Mostly frames and pages one behind the other, and now and then anything anywhere. */
static void write_some(struct trial *trial, size_t *at) {
    static const size_t usual[] = {24, 24, 24, 4096, 4096, 32, 1, 65536, 65560, 100000};
    static char bytes[100000];
    size_t len = usual[pick(trial, ARRAY_LEN(usual))];
    if (pick(trial, 8) == 0) *at = pick(trial, trial->len + 1);
    if (*at + len > LOG_MAX) *at = 0;
    for (size_t i = 0; i < len; i++) bytes[i] = (char)pick(trial, 256);
    if (pick(trial, 3) > 0) memset(bytes, 0, len < 8 ? len : 8); /* ends no commit */
    assert_int_equal(
        trial->file->pMethods->xWrite(trial->file, bytes, (int)len, (sqlite3_int64)*at),
        SQLITE_OK);
    memcpy(trial->expected + *at, bytes, len);
    if (*at + len > trial->len) trial->len = *at + len;
    *at += len;
}

static void check_all(struct trial *trial) {
    static char found[LOG_MAX];
    sqlite3_int64 size = -1;
    assert_int_equal(trial->file->pMethods->xFileSize(trial->file, &size), SQLITE_OK);
    assert_int_equal(size, trial->len == 1 ? 0 : trial->len); /* SQLite's Unix says so */
    if (trial->len == 0) return;
    assert_int_equal(trial->file->pMethods->xRead(trial->file, found, (int)trial->len, 0),
                     SQLITE_OK);
    assert_memory_equal(found, trial->expected, trial->len);
}

static void cut_off(struct trial *trial) {
    size_t len = pick(trial, trial->len + 1);
    assert_int_equal(trial->file->pMethods->xTruncate(trial->file, (sqlite3_int64)len),
                     SQLITE_OK);
    memset(trial->expected + len, 0, trial->len - len);
    trial->len = len;
}

static void run_trial(unsigned seed, const char *path) {
    sqlite3_vfs *files = sqlite3_vfs_find(log_file_system());
    struct trial trial = {.seed = seed};
    size_t at = 0;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_WAL;
    trial.file = mem_zero(1, (size_t)files->szOsFile);
    trial.expected = mem_zero(1, LOG_MAX);
    assert_int_equal(files->xOpen(files, path, trial.file, flags, &flags), SQLITE_OK);
    for (size_t i = 0; i < CALLS; i++) {
        size_t what = pick(&trial, 40);
        if (what == 0) check_all(&trial);
        if (what == 1) cut_off(&trial);
        if (what == 2)
            assert_int_equal(trial.file->pMethods->xSync(trial.file, SQLITE_SYNC_NORMAL),
                             SQLITE_OK);
        if (what > 2) write_some(&trial, &at);
    }
    check_all(&trial);
    assert_int_equal(trial.file->pMethods->xClose(trial.file), SQLITE_OK);
    free(trial.file);
    free(trial.expected);
    unlink(path);
}

static void test_the_file_holds_what_was_written(void **state) {
    struct alone alone;
    (void)state;
    alone_make(&alone);
    for (unsigned seed = 1; seed <= TRIALS; seed++) run_trial(seed, alone.log);
    alone_remove(&alone);
}

/* What is gathered when the file is closed is in it: as a page whose commit never ended is, when
 * the process ends. */
static void test_closing_writes_what_was_gathered(void **state) {
    struct alone alone;
    char frame[24] = {0};
    (void)state;
    alone_make(&alone);
    sqlite3_vfs *files = sqlite3_vfs_find(log_file_system());
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_WAL;
    for (int refused = 0; refused <= 1; refused++) {
        sqlite3_file *file = mem_zero(1, (size_t)files->szOsFile);
        assert_int_equal(files->xOpen(files, alone.log, file, flags, &flags), SQLITE_OK);
        assert_int_equal(file->pMethods->xWrite(file, frame, sizeof(frame), 32), SQLITE_OK);
        below.refused = (size_t)refused;
        assert_int_equal(file->pMethods->xClose(file),
                         refused ? SQLITE_IOERR_WRITE : SQLITE_OK);
        free(file);
    }
    alone_remove(&alone);
}

/* A log that cannot be opened leaves a file without methods, which SQLite does not close. */
static void test_a_log_that_cannot_be_opened(void **state) {
    (void)state;
    struct alone alone;
    alone_make(&alone);
    unlink(alone.database);
    rmdir(alone.folder);
    sqlite3_vfs *files = sqlite3_vfs_find(log_file_system());
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_WAL;
    sqlite3_file *file = mem_zero(1, (size_t)files->szOsFile);
    assert_int_equal(files->xOpen(files, alone.log, file, flags, &flags) & 0xFF, SQLITE_IOERR);
    assert_null(file->pMethods);
    free(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_a_commit_of_many_pages_is_a_few_writes_and_seen_at_once, pair_setup,
            pair_teardown),
        cmocka_unit_test_setup_teardown(test_what_was_rolled_back_is_not_seen, pair_setup,
                                        pair_teardown),
        cmocka_unit_test_setup_teardown(test_a_write_that_fails_fails_the_commit, pair_setup,
                                        pair_teardown),
        cmocka_unit_test(test_the_file_holds_what_was_written),
        cmocka_unit_test(test_closing_writes_what_was_gathered),
        cmocka_unit_test(test_a_log_that_cannot_be_opened),
    };
    return cmocka_run_group_tests(tests, below_setup, NULL);
}
