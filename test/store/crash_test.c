/* A kill at every named step (R-1, R-2, T9): a child writes, reports what was acknowledged, and
 * is killed at the step. Everything it reported must be found, and no part of anything else. */
#include "fixture.h"
#include "store/memory.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define CHILD_WRITES 12

/* Where the child dies: the nth time this step is reached. */
static const char *fatal_step;
static atomic_int lives;

static void die_at_step(const char *step, void *ctx) {
    (void)ctx;
    if (strcmp(step, fatal_step) == 0 && --lives == 0) raise(SIGKILL);
}

/* A run in two rows of one write: both or none may be found. */
static void write_pair(struct fixture *f, uint64_t run) {
    struct row_text first, second;
    row_begin(&first);
    row_section(&first, run, 1);
    row_event(&first, started("s"));
    row_begin(&second);
    row_section(&second, run, 2);
    row_event(&second, done());
    struct store_row rows[] = {row_end(&first, run), row_end(&second, run)};
    if (!fixture_try_write(f, rows, 2)) _exit(1);
}

static void noted(const struct memory_answer *answer, const struct err *failed, void *ctx) {
    (void)answer;
    if (failed) _exit(1);
    loop_stop(ctx);
}

/* A memory beside each run. */
static void write_note(struct fixture *f, uint64_t run) {
    char key[24];
    snprintf(key, sizeof(key), "%llu", (unsigned long long)run);
    struct memory_entry entry = {.key = str_from(key), .content = STR("kyoto")};
    memory_put_start(f->store, f->loop, AUDIT_NOBODY, STR("w"), &entry, noted, f->loop);
    loop_run(f->loop);
}

static void live(const char *folder, enum store_durability durability, uint64_t first,
                 int acknowledged) {
    struct fixture f = {.durability = durability, .at_step = die_at_step};
    snprintf(f.folder, sizeof(f.folder), "%s", folder);
    f.loop = loop_new();
    if (!fixture_try_open(&f)) {
        fprintf(stderr, "%s\n", f.failed.text);
        _exit(1);
    }
    for (uint64_t run = first; run < first + CHILD_WRITES; run++) {
        write_note(&f, run);
        write_pair(&f, run);
        if (write(acknowledged, &run, sizeof(run)) != sizeof(run)) _exit(1);
        struct store_load load = session_load("s");
        if (!fixture_try_load(&f, &load)) _exit(1);
        arena_free(load.arena);
    }
    fixture_close(&f);
    _exit(0);
}

/* Returns the newest run that the child knew to be written, or `before`. */
static uint64_t run_child(struct fixture *f, uint64_t first, uint64_t before, int *ret_status) {
    int acknowledged[2];
    assert_int_equal(pipe(acknowledged), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(acknowledged[0]);
        live(f->folder, f->durability, first, acknowledged[1]);
    }
    close(acknowledged[1]);
    uint64_t run, newest = before;
    while (read(acknowledged[0], &run, sizeof(run)) == sizeof(run)) newest = run;
    close(acknowledged[0]);
    assert_int_equal(waitpid(child, ret_status, 0), child);
    return newest;
}

/* A note is acknowledged before its run is written, so one may be there without it; and the
 * index of its words came with it. */
static void check_notes(const struct fixture *f, uint64_t count) {
    char sql[240];
    snprintf(sql, sizeof(sql),
             "SELECT notes BETWEEN %llu AND %llu + 1, notes = words FROM"
             " (SELECT count(*) AS notes FROM memory),"
             " (SELECT count(*) AS words FROM memory_words WHERE memory_words MATCH 'kyoto')",
             (unsigned long long)count, (unsigned long long)count);
    assert_sql(f, sql, "1 1 ");
}

enum notes { RUNS_ALONE, WITH_NOTES };

/* Every run up to `newest` is there and whole; after it at most the one that was under way. */
static uint64_t check_runs(struct fixture *f, uint64_t newest, enum notes notes) {
    struct store_load load = session_load("s");
    load.runs_max = 100000;
    load = fixture_load(f, load);
    assert_int_equal(load.section_count % 2, 0);
    uint64_t count = load.section_count / 2;
    assert_in_range(count, newest, newest + 1);
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(load.sections[2 * i].run, i + 1);
        assert_int_equal(load.sections[2 * i].first_seq, 1);
        assert_int_equal(load.sections[2 * i + 1].run, i + 1);
        assert_int_equal(load.sections[2 * i + 1].first_seq, 2);
    }
    arena_free(load.arena);
    assert_answer(f, (struct store_load){.question = STORE_UNFINISHED}, "");
    if (notes) check_notes(f, count);
    return count;
}

static const char *const steps[] = {
    "schema 1",    "schema 2",  "schema 3",         "schema 4",   "schema 5",       "schema 6",
    "schema 7",    "schema 8",  "schema 9",         "schema 10",  "schema 11",      "schema 12",
    "schema 13",   "schema 14", "schema 15",        "schema 16",  "schema 17",      "schema 18",
    "schema 19",   "schema 20", "schema committed", "new filled", "new named",      "epoch",
    "epoch noted", "commit",    "rows appended",    "tasks done", "tasks answered", "committed",
    "noted",       "answered",  "tables filled",    "projected",
};

static void nothing_acknowledged_is_lost_at_any_step(void **state) {
    struct fixture *f = *state;
    for (int durability = STORE_FULL; durability <= STORE_NORMAL; durability++) {
        for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
            uint64_t newest = 0;
            f->durability = (enum store_durability)durability;
            /* Three deaths in a row on one folder, each later than the one before. */
            for (int life = 1; life <= 5; life += 2) {
                int status;
                fatal_step = steps[i];
                lives = life;
                newest = run_child(f, newest + 1, newest, &status);
                assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
                fixture_open(f);
                newest = check_runs(f, newest, WITH_NOTES);
                fixture_close(f);
            }
            test_folder_remove(f->folder);
        }
    }
}

static off_t size_of(const struct fixture *f, const char *name) {
    char path[96];
    struct stat info;
    snprintf(path, sizeof(path), "%s/%s", f->folder, name);
    return stat(path, &info) == 0 ? info.st_size : 0;
}

/* */
static void fifty_crashes_in_a_row_leave_a_small_write_ahead_log(void **state) {
    struct fixture *f = *state;
    uint64_t newest = 0;
    f->durability = STORE_NORMAL;
    fatal_step = "answered";
    for (int crash = 0; crash < 50; crash++) {
        int status;
        lives = CHILD_WRITES / 2;
        newest = run_child(f, newest + 1, newest, &status);
        assert_true(WIFSIGNALED(status));
        /* The write under way at the death may be there as well. */
        newest++;
        assert_true(size_of(f, "weir.db-wal") < (off_t)(9 * MIB));
    }
    fixture_open(f);
    assert_int_equal(store_epoch(f->store), 51);
    fixture_close(f);
    assert_int_equal(size_of(f, "weir.db-wal"), 0);
}

static void a_migration_resumes_where_it_died(void **state) {
    struct fixture *f = *state;
    static const char *const at[] = {"schema 2",  "schema 3",  "schema 4",  "schema 5",
                                     "schema 6",  "schema 7",  "schema 8",  "schema 9",
                                     "schema 10", "schema 11", "schema 12", "schema 13",
                                     "schema 14", "schema 15", "schema 16", "schema 17",
                                     "schema 18", "schema 19", "schema 20", "schema committed"};
    for (size_t i = 0; i < ARRAY_LEN(at); i++) {
        fixture_open(f);
        write_pair(f, 1);
        fixture_close(f);
        /* Back to version 1, which had the log alone. */
        fixture_sql(f, "DROP TABLE session; DROP TABLE run; DROP TABLE usage;"
                       "DROP TABLE memory; DROP TABLE memory_words; DROP TABLE artifact;"
                       "DROP TABLE bank_vector; DROP TABLE bank_space;"
                       "DROP TABLE agent; DROP TABLE bank_words; DROP TABLE bank_record;"
                       "DROP TABLE bank; DROP TABLE event_log_entry; DROP TABLE event_log;"
                       "DROP TABLE kept; DROP TABLE download; DROP TABLE audit;"
                       "DELETE FROM meta WHERE name IN ('audit', 'usage');"
                       "DROP TABLE keyed; DROP TABLE upload; DROP TABLE upload_piece;"
                       "DROP TABLE artifact_token; DROP TABLE usual;"
                       "DELETE FROM meta WHERE name = 'projected';"
                       "UPDATE meta SET value = 1 WHERE name = 'schema'");
        int status;
        fatal_step = at[i];
        lives = 1;
        run_child(f, 2, 1, &status);
        assert_true(WIFSIGNALED(status));
        fixture_open(f);
        assert_int_equal(check_runs(f, 1, RUNS_ALONE), 1);
        fixture_close(f);
        test_folder_remove(f->folder);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(nothing_acknowledged_is_lost_at_any_step),
        TEST(fifty_crashes_in_a_row_leave_a_small_write_ahead_log),
        TEST(a_migration_resumes_where_it_died),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
