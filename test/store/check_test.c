/* Damage (T3): each file is changed while the store is closed. The store then refuses to open,
 * names the file and leaves every byte unchanged. */
#include "fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

/* --- files -------------------------------------------------------------------------------- */

static const char *const names[] = {"weir.db", "weir.db-wal", "weir.mark"};

struct copy {
    char *bytes[ARRAY_LEN(names)]; /* NULL: there is none */
    size_t len[ARRAY_LEN(names)];
};

static void path_of(const struct fixture *f, const char *name, char path[static 96]) {
    snprintf(path, 96, "%s/%s", f->folder, name);
}

static void copy_read(const struct fixture *f, struct copy *copy) {
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[96];
        struct stat info;
        path_of(f, names[i], path);
        copy->bytes[i] = NULL;
        copy->len[i] = 0;
        int file = open(path, O_RDONLY);
        if (file < 0) continue;
        assert_int_equal(fstat(file, &info), 0);
        copy->len[i] = (size_t)info.st_size;
        copy->bytes[i] = mem_alloc(copy->len[i]);
        assert_int_equal(read(file, copy->bytes[i], copy->len[i]), copy->len[i]);
        close(file);
    }
}

static void copy_write(const struct fixture *f, const struct copy *copy) {
    char path[96];
    path_of(f, "weir.db-shm", path);
    unlink(path);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        path_of(f, names[i], path);
        unlink(path);
        if (!copy->bytes[i]) continue;
        int file = open(path, O_WRONLY | O_CREAT, 0600);
        assert_int_equal(write(file, copy->bytes[i], copy->len[i]), copy->len[i]);
        close(file);
    }
}

static void copy_free(struct copy *copy) {
    for (size_t i = 0; i < ARRAY_LEN(names); i++) free(copy->bytes[i]);
}

static bool copy_equal(const struct copy *a, const struct copy *b) {
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (!str_equal(str_of(a->bytes[i], a->len[i]), str_of(b->bytes[i], b->len[i])))
            return false;
    }
    return true;
}

/* --- the store of an earlier process ------------------------------------------------------ */

static void write_runs(struct fixture *f, uint64_t first, uint64_t count) {
    for (uint64_t run = first; run < first + count; run++) {
        char says[600];
        memset(says, 'a' + (int)(run % 26), sizeof(says) - 1);
        says[sizeof(says) - 1] = '\0';
        fixture_write(f, whole_run(run, "s", says));
    }
}

/* Closed in good order: all in weir.db. */
static void leave_closed(struct fixture *f, uint64_t count) {
    fixture_open(f);
    write_runs(f, 1, count);
    fixture_close(f);
}

/* Killed: the write-ahead log is not folded in. */
static void leave_killed(struct fixture *f, uint64_t first, uint64_t count) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct fixture other = *f;
        other.loop = loop_new();
        fixture_open(&other);
        write_runs(&other, first, count);
        raise(SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
}

/* Opening fails with this code, names the folder, and changes nothing. */
static void assert_refused(struct fixture *f, enum err_code code) {
    struct copy before, after;
    copy_read(f, &before);
    bool open = fixture_try_open(f);
    fixture_close(f);
    if (open) fail_msg("the damage was not noticed");
    if (f->failed.code != code) fail_msg("%s", f->failed.text);
    assert_non_null(strstr(f->failed.text, f->folder));
    copy_read(f, &after);
    assert_true(copy_equal(&before, &after));
    copy_free(&before);
    copy_free(&after);
}

/* --- tests -------------------------------------------------------------------------------- */

static void an_untouched_store_opens(void **state) {
    struct fixture *f = *state;
    leave_closed(f, 20);
    leave_killed(f, 21, 20);
    fixture_open(f);
    struct store_load load = fixture_load(f, session_load("s"));
    assert_int_equal(load.section_count, 40);
    arena_free(load.arena);
}

static void any_byte_of_the_header_that_never_changes_is_checked(void **state) {
    struct fixture *f = *state;
    leave_closed(f, 5);
    struct copy good, bad;
    copy_read(f, &good);
    for (size_t at = 0; at < 92; at++) {
        bool varies = (at >= 24 && at < 48) || (at >= 56 && at < 72);
        if (varies) continue;
        copy_read(f, &bad);
        bad.bytes[0][at] ^= 0x04;
        copy_write(f, &bad);
        copy_free(&bad);
        assert_refused(f, ERR_DATA_LOSS);
    }
    copy_write(f, &good);
    fixture_open(f);
    copy_free(&good);
}

static void a_flipped_byte_in_any_page_of_the_log_is_noticed(void **state) {
    struct fixture *f = *state;
    leave_closed(f, 200);
    struct copy good, bad;
    copy_read(f, &good);
    /* The text of every run, wherever it lies. */
    for (char letter = 'a'; letter <= 'z'; letter = (char)(letter + 5)) {
        char run_of_them[32];
        memset(run_of_them, letter, sizeof(run_of_them));
        size_t at = str_find(str_of(good.bytes[0], good.len[0]),
                             str_of(run_of_them, sizeof(run_of_them)));
        assert_true(at < good.len[0]);
        copy_read(f, &bad);
        bad.bytes[0][at + 16] ^= 1;
        copy_write(f, &bad);
        copy_free(&bad);
        assert_refused(f, ERR_DATA_LOSS);
        copy_write(f, &good);
    }
    /* The head of every page. */
    for (size_t page = 4096; page + 4096 <= good.len[0]; page += 4096) {
        copy_read(f, &bad);
        bad.bytes[0][page] ^= 0x40;
        copy_write(f, &bad);
        copy_free(&bad);
        assert_refused(f, ERR_DATA_LOSS);
        copy_write(f, &good);
    }
    copy_free(&good);
}

static void a_flip_anywhere_in_the_write_ahead_log_loses_nothing_unnoticed(void **state) {
    struct fixture *f = *state;
    leave_closed(f, 3);
    leave_killed(f, 4, 12);
    struct copy good, bad;
    copy_read(f, &good);
    assert_true(good.len[1] > 12 * 4096);
    size_t refused = 0, served = 0;
    for (size_t at = 0; at < good.len[1]; at += at < 64 ? 1 : 997) {
        copy_write(f, &good);
        copy_read(f, &bad);
        bad.bytes[1][at] ^= 0x10;
        copy_write(f, &bad);
        copy_free(&bad);
        struct copy before, after;
        copy_read(f, &before);
        if (!fixture_try_open(f)) {
            assert_int_equal(f->failed.code, ERR_DATA_LOSS);
            assert_non_null(strstr(f->failed.text, f->folder));
            fixture_close(f);
            copy_read(f, &after);
            assert_true(copy_equal(&before, &after));
            copy_free(&after);
            refused++;
        } else {
            /* Only what the log fills again can have been lost. */
            struct store_load load = fixture_load(f, session_load("s"));
            assert_int_equal(load.section_count, 15);
            arena_free(load.arena);
            fixture_close(f);
            served++;
        }
        copy_free(&before);
    }
    assert_true(refused > served);
    copy_free(&good);
}

static void a_write_ahead_log_cut_or_gone_is_refused(void **state) {
    struct fixture *f = *state;
    leave_closed(f, 3);
    leave_killed(f, 4, 12);
    struct copy good, bad;
    copy_read(f, &good);
    for (size_t len = 0; len < good.len[1] / 2; len += 4097) {
        copy_write(f, &good);
        copy_read(f, &bad);
        bad.len[1] = len;
        copy_write(f, &bad);
        copy_free(&bad);
        assert_refused(f, ERR_DATA_LOSS);
    }
    copy_write(f, &good);
    char path[96];
    path_of(f, "weir.db-wal", path);
    assert_int_equal(unlink(path), 0);
    assert_refused(f, ERR_DATA_LOSS);
    copy_free(&good);
}

static void a_database_cut_or_gone_is_refused(void **state) {
    struct fixture *f = *state;
    leave_closed(f, 100);
    struct copy good, bad;
    copy_read(f, &good);
    for (size_t len = 0; len < good.len[0]; len += 1500) {
        copy_write(f, &good);
        copy_read(f, &bad);
        bad.len[0] = len;
        copy_write(f, &bad);
        copy_free(&bad);
        assert_refused(f, ERR_DATA_LOSS);
    }
    copy_write(f, &good);
    char path[96];
    path_of(f, "weir.db", path);
    assert_int_equal(unlink(path), 0);
    assert_refused(f, ERR_DATA_LOSS);
    assert_int_equal(access(path, F_OK), -1);
    copy_free(&good);
}

static void a_large_database_cut_at_its_end_is_refused_too(void **state) {
    struct fixture *f = *state;
    f->durability = STORE_NORMAL;
    fixture_open(f);
    for (uint64_t run = 1; run <= 300; run++) {
        struct row_text row;
        row_begin(&row);
        row_section(&row, run, 1);
        row_event(&row, started("s"));
        char *says = mem_alloc(32 * KIB);
        memset(says, 'x', 32 * KIB - 1);
        says[32 * KIB - 1] = '\0';
        row_event(&row, text(says));
        free(says);
        row_event(&row, done());
        fixture_write(f, row_end(&row, run));
    }
    fixture_close(f);
    leave_killed(f, 301, 2);
    struct copy bad;
    copy_read(f, &bad);
    assert_true(bad.len[0] > 9 * MIB);
    bad.len[0] -= 5 * 4096;
    copy_write(f, &bad);
    assert_refused(f, ERR_DATA_LOSS);
    copy_free(&bad);
}

static void a_database_that_is_not_ours_is_refused(void **state) {
    struct fixture *f = *state;
    fixture_sql(f, "PRAGMA journal_mode = WAL; CREATE TABLE other(x)");
    assert_refused(f, ERR_FAILED_PRECONDITION);
}

static void a_newer_schema_is_refused(void **state) {
    struct fixture *f = *state;
    leave_closed(f, 1);
    fixture_sql(f, "UPDATE meta SET value = 1000 WHERE name = 'schema'");
    assert_refused(f, ERR_FAILED_PRECONDITION);
    assert_non_null(strstr(f->failed.text, "1000"));
    fixture_sql(f, "DELETE FROM meta WHERE name = 'schema'");
    assert_refused(f, ERR_DATA_LOSS);
    fixture_sql(f, "DROP TABLE meta");
    assert_refused(f, ERR_DATA_LOSS);
}

static void an_older_copy_is_served_once_the_mark_is_removed(void **state) {
    struct fixture *f = *state;
    leave_closed(f, 3);
    struct copy old, now;
    copy_read(f, &old);
    leave_closed(f, 0);
    fixture_open(f);
    write_runs(f, 4, 1);
    fixture_close(f);
    copy_read(f, &now);
    free(old.bytes[2]);
    old.bytes[2] = mem_alloc(now.len[2]);
    memcpy(old.bytes[2], now.bytes[2], now.len[2]);
    copy_write(f, &old);
    assert_refused(f, ERR_DATA_LOSS);
    char path[96];
    path_of(f, "weir.mark", path);
    assert_non_null(strstr(f->failed.text, "weir.mark"));
    assert_int_equal(unlink(path), 0);
    fixture_open(f);
    struct store_load load = fixture_load(f, session_load("s"));
    assert_int_equal(load.section_count, 3);
    arena_free(load.arena);
    copy_free(&old);
    copy_free(&now);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_untouched_store_opens),
        TEST(any_byte_of_the_header_that_never_changes_is_checked),
        TEST(a_flipped_byte_in_any_page_of_the_log_is_noticed),
        TEST(a_flip_anywhere_in_the_write_ahead_log_loses_nothing_unnoticed),
        TEST(a_write_ahead_log_cut_or_gone_is_refused),
        TEST(a_database_cut_or_gone_is_refused),
        TEST(a_large_database_cut_at_its_end_is_refused_too),
        TEST(a_database_that_is_not_ours_is_refused),
        TEST(a_newer_schema_is_refused),
        TEST(an_older_copy_is_served_once_the_mark_is_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
