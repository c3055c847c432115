/* Tasks beside the log: in order, all or nothing, and never lost once they were
 * acknowledged. */
#include "fixture.h"
#include "store/task.h"

#include <fcntl.h>
#include <sys/mount.h>

struct job {
    struct store_task task;
    const char *sql;
    int64_t number; /* what the SQL gave */
    int runs;
    struct fixture *f;
    struct buf *order; /* of the answers */
    char name;
    size_t *left; /* jobs that have not been answered */
    struct err failed;
};

static bool run_sql(struct database *db, void *ctx, struct err *e) {
    struct job *job = ctx;
    job->runs++;
    return database_number(db, job->sql, &job->number, e);
}

static void on_done(const struct err *failed, void *ctx) {
    struct job *job = ctx;
    job->failed.code = ERR_NONE;
    if (failed) job->failed = *failed;
    if (job->order) buf_append_byte(job->order, job->name);
    if (--*job->left == 0) loop_stop(job->f->loop);
}

static void start(struct fixture *f, struct job *job, struct store_task task, size_t *left) {
    ++*left;
    job->f = f;
    job->left = left;
    job->task = task;
    if (!job->task.fn) job->task.fn = run_sql;
    job->task.on_done = on_done;
    store_run(f->store, f->loop, &job->task, job);
}

static void start_all(struct fixture *f, struct job *jobs, size_t count, size_t *left) {
    for (size_t i = 0; i < count; i++) {
        bool reads = strncmp(jobs[i].sql, "SELECT", 6) == 0;
        start(f, &jobs[i], (struct store_task){.reads_only = reads}, left);
    }
}

static void run_all(struct fixture *f, struct job *jobs, size_t count) {
    size_t left = 0;
    start_all(f, jobs, count, &left);
    loop_run(f->loop);
}

static int64_t ask(struct fixture *f, const char *sql) {
    struct job job = {.sql = sql};
    run_all(f, &job, 1);
    if (job.failed.code) fail_msg("%s: %s", sql, job.failed.text);
    return job.number;
}

#define NOTE(n) "INSERT INTO meta VALUES('note-" n "', 1)"
#define NOTES "SELECT count(*) FROM meta WHERE name LIKE 'note-%'"

static void tasks_are_answered_in_the_order_they_were_asked(void **state) {
    struct fixture *f = *state;
    struct buf order;
    fixture_open(f);
    buf_init(&order, 64);
    struct job jobs[] = {
        {.sql = NOTE("a"), .name = 'a'}, {.sql = NOTES, .name = 'b'},
        {.sql = NOTE("c"), .name = 'c'}, {.sql = NOTE("d"), .name = 'd'},
        {.sql = NOTES, .name = 'e'},
    };
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) jobs[i].order = &order;
    run_all(f, jobs, ARRAY_LEN(jobs));
    assert_int_equal(order.len, 5);
    assert_memory_equal(order.at, "abcde", 5);
    assert_int_equal(jobs[1].number, 1);
    assert_int_equal(jobs[4].number, 3);
    buf_done(&order);
}

static void one_that_fails_takes_no_neighbour_with_it(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    struct job jobs[] = {{.sql = NOTE("a")},
                         {.sql = NOTE("b")},
                         {.sql = NOTE("a")},
                         {.sql = "INSERT INTO nowhere VALUES(1)"},
                         {.sql = NOTE("c")}};
    run_all(f, jobs, ARRAY_LEN(jobs));
    assert_int_equal(jobs[0].failed.code, ERR_NONE);
    assert_int_equal(jobs[1].failed.code, ERR_NONE);
    assert_int_equal(jobs[2].failed.code, ERR_INTERNAL);
    assert_int_equal(jobs[3].failed.code, ERR_INTERNAL);
    assert_int_equal(jobs[4].failed.code, ERR_NONE);
    assert_int_equal(ask(f, NOTES), 3);
}

static void a_failed_task_runs_no_second_time_when_it_stands_alone(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    struct job job = {.sql = "INSERT INTO nowhere VALUES(1)"};
    run_all(f, &job, 1);
    assert_int_equal(job.runs, 1);
    assert_int_equal(job.failed.code, ERR_INTERNAL);
}

static void what_was_answered_is_there_after_a_restart(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    for (int i = 0; i < 3; i++) {
        char sql[80];
        snprintf(sql, sizeof(sql), "INSERT INTO meta VALUES('note-%d', 1)", i);
        ask(f, sql);
        fixture_write(f, whole_run((uint64_t)i + 1, "s", "hello"));
    }
    fixture_close(f);
    fixture_open(f);
    assert_int_equal(ask(f, NOTES), 3);
    assert_answer(f, session_load("s"),
                  "1:1 started hello done;2:1 started hello done;3:1 started hello done");
}

static void a_task_runs_after_the_writes_before_it(void **state) {
    FIXTURE_SQLITE_ONLY();
    struct fixture *f = *state;
    fixture_open(f);
    enum { WRITES = 3000 }; /* more than one commit takes */
    struct store_row *rows = mem_zero(WRITES, sizeof(struct store_row));
    struct store_write *writes = mem_zero(WRITES, sizeof(struct store_write));
    for (size_t i = 0; i < WRITES; i++) {
        rows[i] = whole_run(i + 1, "s", "counted");
        writes[i] = (struct store_write){.rows = &rows[i],
                                         .row_count = 1,
                                         .home = f->loop,
                                         .on_written = fixture_written,
                                         .ctx = f};
        store_write(f->store, &writes[i]);
    }
    /* Several are in one row of the log. */
    struct job job = {.sql =
                          "SELECT sum((length(hex(bytes)) -"
                          " length(replace(hex(bytes), hex('counted'), ''))) / 14) FROM log"};
    size_t left = 0;
    start_all(f, &job, 1, &left);
    while (left) loop_run(f->loop); /* each answered write stops it */
    assert_int_equal(job.number, WRITES);
    for (size_t i = 0; i < WRITES; i++) buf_done(&rows[i].bytes);
    free(rows);
    free(writes);
}

static void a_store_that_never_opened_says_so_to_tasks(void **state) {
    struct fixture *f = *state, other;
    fixture_open(f);
    other = *f;
    fixture_begin(&other);
    struct job job = {.sql = NOTES};
    size_t left = 0;
    start_all(&other, &job, 1, &left);
    while (left) loop_run(f->loop);
    assert_int_equal(job.failed.code, ERR_FAILED_PRECONDITION);
    assert_int_equal(job.runs, 0);
    fixture_close(&other);
}

static void closing_finishes_what_was_asked(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    struct job jobs[] = {{.sql = NOTE("a")}, {.sql = NOTE("b")}};
    size_t left = 0;
    start_all(f, jobs, 2, &left);
    fixture_close(f);
    loop_run(f->loop);
    assert_int_equal(left, 0);
    assert_sql(f, NOTES, "2 ");
}

/* T1 */
static void a_full_disk_fails_tasks_until_space_returns(void **state) {
    FIXTURE_SQLITE_ONLY();
    struct fixture *f = *state;
    if (mount("none", f->folder, "tmpfs", 0, "size=2m") != 0) skip();
    char path[96], zero[4096] = {0};
    snprintf(path, sizeof(path), "%s/filler", f->folder);
    int filler = open(path, O_WRONLY | O_CREAT, 0600);
    for (int i = 0; i < 256; i++) assert_int_equal(write(filler, zero, sizeof(zero)), 4096);
    close(filler);
    fixture_open(f);
    ask(f, "CREATE TABLE big(bytes BLOB)");
    int64_t kept = 0;
    struct job jobs[2];
    do {
        for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
            jobs[i] = (struct job){.sql = "INSERT INTO big VALUES(zeroblob(20000))"};
        run_all(f, jobs, ARRAY_LEN(jobs));
        for (size_t i = 0; i < ARRAY_LEN(jobs); i++) kept += jobs[i].failed.code == ERR_NONE;
    } while (jobs[1].failed.code == ERR_NONE);
    assert_int_equal(jobs[1].failed.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(jobs[1].failed.text, "the disk is full"));
    assert_int_equal(ask(f, "SELECT count(*) FROM big"), kept);
    assert_int_equal(unlink(path), 0);
    ask(f, "INSERT INTO big VALUES(zeroblob(20000))");
    fixture_write(f, whole_run(1, "s", "hello"));
    fixture_close(f);
    assert_sql(f, "PRAGMA integrity_check", "ok ");
    fixture_open(f);
    assert_int_equal(ask(f, "SELECT count(*) FROM big"), kept + 1);
    fixture_close(f);
    umount(f->folder);
}

/* T3: SQLite itself would silently drop the frames after the damage. */
static void a_task_that_the_disk_lost_is_noticed(void **state) {
    FIXTURE_SQLITE_ONLY();
    struct fixture *f = *state;
    char path[96], copy[4096];
    fixture_open(f);
    ask(f, NOTE("a"));
    /* The write-ahead log as it was then, after another task was acknowledged. */
    snprintf(path, sizeof(path), "%s/weir.db-wal", f->folder);
    int wal = open(path, O_RDONLY);
    off_t before = lseek(wal, 0, SEEK_END);
    close(wal);
    ask(f, NOTE("b"));
    char save[600];
    snprintf(save, sizeof(save), "mkdir %s/saved && cp %s/weir.* %s/saved/", f->folder,
             f->folder, f->folder);
    assert_int_equal(system(save), 0);
    fixture_close(f);
    snprintf(save, sizeof(save), "cd %s && rm weir.* && mv saved/* . && rm weir.db-shm",
             f->folder);
    assert_int_equal(system(save), 0);
    wal = open(path, O_RDWR);
    assert_int_equal(pread(wal, copy, sizeof(copy), before), sizeof(copy));
    copy[2000] ^= 1;
    assert_int_equal(pwrite(wal, copy, sizeof(copy), before), sizeof(copy));
    close(wal);
    assert_false(fixture_try_open(f));
    assert_int_equal(f->failed.code, ERR_DATA_LOSS);
}

static _Atomic bool gate_open;

/* As a store that is away does: nothing goes on behind it. */
static bool stand_at_the_gate(struct database *db, void *ctx, struct err *e) {
    (void)db, (void)ctx, (void)e;
    while (!atomic_load(&gate_open)) usleep(1000);
    return true;
}

/* What is taken has to be given back: with so many of those in wait, no more is taken. */
static void nothing_is_taken_while_very_much_waits_to_be_given_back(void **state) {
    struct fixture *f = *state;
    const size_t count = STORE_INSISTING_MAX;
    struct job *gives = calloc(count, sizeof(*gives)), gate = {.sql = "SELECT 1"};
    struct job refused = {.sql = NOTE("r")}, taken = {.sql = NOTE("t")}, reads = {.sql = NOTES};
    size_t left = 0, answers = 0;
    fixture_open(f);
    atomic_store(&gate_open, false);
    start(f, &gate, (struct store_task){.reads_only = true, .fn = stand_at_the_gate}, &left);
    for (size_t i = 0; i < count; i++) {
        gives[i].sql = "SELECT 1";
        start(f, &gives[i], (struct store_task){.light = true, .insists = true}, &left);
    }
    start(f, &refused, (struct store_task){.takes = true}, &answers);
    loop_run(f->loop); /* its answer comes before the store does anything */
    assert_int_equal(refused.failed.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(refused.failed.text, "given back"));
    assert_int_equal(refused.runs, 0);
    start(f, &reads, (struct store_task){.reads_only = true}, &left);
    atomic_store(&gate_open, true);
    loop_run(f->loop);
    for (size_t i = 0; i < count; i++) assert_true(gives[i].runs == 1 && !gives[i].failed.code);
    start(f, &taken, (struct store_task){.takes = true}, &left);
    loop_run(f->loop);
    assert_int_equal(taken.failed.code, ERR_NONE);
    assert_int_equal(ask(f, NOTES), 1);
    free(gives);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(tasks_are_answered_in_the_order_they_were_asked),
        TEST(one_that_fails_takes_no_neighbour_with_it),
        TEST(a_failed_task_runs_no_second_time_when_it_stands_alone),
        TEST(what_was_answered_is_there_after_a_restart),
        TEST(a_task_runs_after_the_writes_before_it),
        TEST(a_store_that_never_opened_says_so_to_tasks),
        TEST(closing_finishes_what_was_asked),
        TEST(nothing_is_taken_while_very_much_waits_to_be_given_back),
        TEST(a_full_disk_fails_tasks_until_space_returns),
        TEST(a_task_that_the_disk_lost_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
