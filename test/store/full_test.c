/* A full disk (T1) and failed allocations (L3): the write fails as a whole, what was
 * acknowledged can be read, and writing goes on once there is room. */
#include "fixture.h"
#include "store/store_folder.h"
#include "store/task.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/resource.h>

/* Two rows of two runs in one write. */
static bool try_pair(struct fixture *f, uint64_t first) {
    char says[4000];
    memset(says, 'x', sizeof(says) - 1);
    says[sizeof(says) - 1] = '\0';
    struct store_row rows[] = {whole_run(first, "s", says), whole_run(first + 1, "s", says)};
    return fixture_try_write(f, rows, 2);
}

static uint64_t write_until_refused(struct fixture *f, uint64_t next) {
    for (int i = 0; i < 1000; i++, next += 2) {
        if (try_pair(f, next)) continue;
        if (f->failed.code != ERR_UNAVAILABLE) fail_msg("%s", f->failed.text);
        assert_non_null(strstr(f->failed.text, f->folder));
        if (!strstr(f->failed.text, "the disk is full")) fail_msg("%s", f->failed.text);
        return next;
    }
    fail_msg("the disk never filled");
    return 0;
}

static void assert_runs(struct fixture *f, uint64_t count) {
    struct store_load load = session_load("s");
    load.runs_max = 10000;
    load.max_bytes = 64 * MIB;
    load = fixture_load(f, load);
    assert_int_equal(load.section_count, count);
    arena_free(load.arena);
}

struct count {
    struct store_task task;
    struct loop *loop;
    int64_t runs;
    struct err failed;
};

static bool count_runs(struct database *db, void *ctx, struct err *e) {
    struct count *count = ctx;
    return database_number(db, "SELECT count(*) FROM run", &count->runs, e);
}

static void on_counted(const struct err *failed, void *ctx) {
    struct count *count = ctx;
    if (failed) count->failed = *failed;
    loop_stop(count->loop);
}

/* A list or an export asks so: the rows that are not in the tables yet are read with them. */
static void assert_counted(struct fixture *f, uint64_t runs) {
    struct count count = {.task = {.reads_only = true,
                                   .needs_tables = true,
                                   .fn = count_runs,
                                   .on_done = on_counted},
                          .loop = f->loop};
    store_run(f->store, f->loop, &count.task, &count);
    loop_run(f->loop);
    if (count.failed.code) fail_msg("%s", count.failed.text);
    assert_int_equal(count.runs, runs);
}

/* Refused until `make_room`, then everything goes on; nothing acknowledged is missing. */
static void fill_and_recover(struct fixture *f, void (*make_room)(struct fixture *f)) {
    uint64_t next = write_until_refused(f, 1);
    for (int again = 0; again < 5; again++) assert_false(try_pair(f, next));
    assert_counted(f, next - 1);
    assert_runs(f, next - 1);
    assert_counted(f, next - 1);
    make_room(f);
    assert_true(try_pair(f, next));
    next += 2;
    assert_runs(f, next - 1);
    fixture_close(f);
    assert_sql(f, "PRAGMA integrity_check", "ok ");
    fixture_open(f);
    assert_runs(f, next - 1);
}

static void delete_filler(struct fixture *f) {
    char path[96];
    snprintf(path, sizeof(path), "%s/filler", f->folder);
    assert_int_equal(unlink(path), 0);
}

static void a_full_disk_fails_writes_until_space_returns(void **state) {
    struct fixture *f = *state;
    if (mount("none", f->folder, "tmpfs", 0, "size=2m") != 0) skip();
    char path[96], zero[4096] = {0};
    snprintf(path, sizeof(path), "%s/filler", f->folder);
    int filler = open(path, O_WRONLY | O_CREAT, 0600);
    for (int i = 0; i < 256; i++) assert_int_equal(write(filler, zero, sizeof(zero)), 4096);
    close(filler);
    fixture_open(f);
    fill_and_recover(f, delete_filler);
    fixture_close(f);
    umount(f->folder);
}

static void set_file_limit(rlim_t bytes) {
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
}

static void lift_file_limit(struct fixture *f) {
    (void)f;
    set_file_limit(RLIM_INFINITY);
}

static void a_limit_on_file_size_is_a_full_disk(void **state) {
    struct fixture *f = *state;
    signal(SIGXFSZ, SIG_IGN);
    fixture_open(f);
    set_file_limit(512 * KIB);
    fill_and_recover(f, lift_file_limit);
}

static void a_disk_too_full_to_open_says_so(void **state) {
    struct fixture *f = *state;
    if (mount("none", f->folder, "tmpfs", 0, "size=16k") != 0) skip();
    assert_false(fixture_try_open(f));
    assert_int_equal(f->failed.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(f->failed.text, f->folder));
    fixture_close(f);
    umount(f->folder);
}

/* Nothing is acknowledged that is lost when the file is closed, and what is there is read. */
static void delete_under_it(struct fixture *f, const char *name) {
    char path[96], aside[112];
    snprintf(path, sizeof(path), "%s/%s", f->folder, name);
    snprintf(aside, sizeof(aside), "%s.aside", path);
    fixture_open(f);
    assert_true(try_pair(f, 1));
    assert_int_equal(rename(path, aside), 0);
    assert_true(try_pair(f, 3)); /* it is still there, under another name */
    assert_int_equal(unlink(aside), 0);
    assert_false(try_pair(f, 5));
    assert_int_equal(f->failed.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(f->failed.text, "was deleted"));
    assert_runs(f, 4);
}

static void a_database_that_is_deleted_under_it_is_written_no_more(void **state) {
    FIXTURE_SQLITE_ONLY();
    delete_under_it(*state, "weir.db");
}

static void a_log_that_is_deleted_under_it_is_written_no_more(void **state) {
    FIXTURE_SQLITE_ONLY();
    delete_under_it(*state, "weir.db-wal");
}

/* /proc opens a file that has no name by one, as a file system that counts none opens all. */
static void a_file_system_that_counts_no_names_is_not_watched(void **state) {
    struct store_folder_watch watch;
    char path[64];
    FILE *nameless = tmpfile();
    (void)state;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(nameless));
    store_folder_watch(&watch, path);
    assert_false(store_folder_deleted(&watch));
    store_folder_unwatch(&watch);
    fclose(nameless);
}

/* --- memory ------------------------------------------------------------------------------- */

static sqlite3_mem_methods real;
static atomic_int until_refusal; /* 0: never */

static bool refuse(void) {
    int left = atomic_load(&until_refusal);
    while (left > 0 && !atomic_compare_exchange_weak(&until_refusal, &left, left - 1)) continue;
    return left == 1;
}

static void *refusing_malloc(int size) {
    return refuse() ? NULL : real.xMalloc(size);
}

static void *refusing_realloc(void *at, int size) {
    return refuse() ? NULL : real.xRealloc(at, size);
}

static void take_over_memory(void) {
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real);
    sqlite3_mem_methods refusing = real;
    refusing.xMalloc = refusing_malloc;
    refusing.xRealloc = refusing_realloc;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &refusing);
}

static void memory_refused_in_a_write_or_a_load_fails_that_one_alone(void **state) {
    struct fixture *f = *state;
    f->durability = STORE_NORMAL;
    fixture_open(f);
    uint64_t next = 1, failed = 0;
    for (int nth = 1; nth < 120; nth++) {
        atomic_store(&until_refusal, nth);
        bool ok = try_pair(f, next);
        atomic_store(&until_refusal, 0);
        if (!ok) assert_int_equal(f->failed.code, ERR_UNAVAILABLE);
        if (ok) next += 2;
        failed += !ok;
        struct store_load load = session_load("s");
        load.runs_max = 10000;
        load.max_bytes = 64 * MIB;
        atomic_store(&until_refusal, nth);
        ok = fixture_try_load(f, &load);
        atomic_store(&until_refusal, 0);
        if (ok) assert_int_equal(load.section_count, next - 1);
        if (!ok) assert_int_equal(f->failed.code, ERR_UNAVAILABLE);
        failed += !ok;
        arena_free(load.arena);
        assert_runs(f, next - 1);
    }
    assert_true(failed > 10);
    fixture_close(f);
    assert_sql(f, "PRAGMA integrity_check", "ok ");
}

static void memory_refused_while_opening_refuses_the_store_cleanly(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    assert_true(try_pair(f, 1));
    fixture_close(f);
    int failed = 0;
    for (int nth = 1; nth < 3000; nth += nth < 100 ? 1 : 37) {
        atomic_store(&until_refusal, nth);
        bool ok = fixture_try_open(f);
        atomic_store(&until_refusal, 0);
        if (!ok && f->failed.code != ERR_UNAVAILABLE) fail_msg("%s", f->failed.text);
        failed += !ok;
        fixture_close(f);
    }
    assert_true(failed > 10);
    fixture_open(f);
    assert_runs(f, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
    take_over_memory();
    const struct CMUnitTest tests[] = {
        TEST(a_full_disk_fails_writes_until_space_returns),
        TEST(a_limit_on_file_size_is_a_full_disk),
        TEST(a_disk_too_full_to_open_says_so),
        TEST(a_database_that_is_deleted_under_it_is_written_no_more),
        TEST(a_log_that_is_deleted_under_it_is_written_no_more),
        cmocka_unit_test(a_file_system_that_counts_no_names_is_not_watched),
        TEST(memory_refused_in_a_write_or_a_load_fails_that_one_alone),
        TEST(memory_refused_while_opening_refuses_the_store_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
