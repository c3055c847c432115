/* Failing syncs (T2): nothing is acknowledged by a failed sync, or before the store is open
 * again. Afterwards what was acknowledged is there and what was refused is not, both when the
 * process is killed, which keeps what was written, and when the power is cut, which loses what
 * was not synced. A child writes on a simulated disk; the parent checks what is left. */
#include "fixture.h"

#include "helper/powercut_vfs.h"
#include "store/memory.h"

#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 5
#define FLIGHT 3 /* writes of a round, which share a commit */
#define ROOM 64  /* for what the child tells */
#define NOTE 100 /* a memory's number: its round, and this */
#define BIG_BYTES 700000
#define REOPEN_MS 100 /* as in store/serve.c */
#define WORKERS 6     /* trials at once */

enum end { KILLED, POWER_GOES, CLOSED, END_COUNT };

struct plan {
    size_t fail_from, fail_to;
    bool fail_writes, fail_keeps;
    bool big; /* so that the write-ahead log is folded */
    uint64_t doubt_ms;
    enum end end;
};

/* What the child reports, one after the other. */
struct report {
    uint64_t number; /* of a run, or a note; 0: how many syncs there were, `failed` of them */
    enum err_code failed;
    size_t syncs, failed_syncs;
};

struct trial {
    struct fixture f;
    struct report reports[ROOM];
    size_t report_count;
    size_t kept, refused, unknown;
};

/* --- the child ---------------------------------------------------------------------------- */

static struct {
    int to;
    size_t under_way;
    bool refused; /* a write of this round */
    struct fixture *f;
} child;

static void send_report(struct report report) {
    if (write(child.to, &report, sizeof(report)) != sizeof(report)) _exit(1);
}

static void answered(uint64_t number, const struct err *failed) {
    send_report((struct report){.number = number, .failed = failed ? failed->code : ERR_NONE});
    child.refused = child.refused || failed;
    if (--child.under_way == 0) loop_stop(child.f->loop);
}

static void on_written(struct store_write *write, const struct err *failed, void *ctx) {
    (void)write;
    answered(*(const uint64_t *)ctx, failed);
}

static void on_noted(const struct memory_answer *answer, const struct err *failed, void *ctx) {
    (void)answer;
    answered(*(const uint64_t *)ctx, failed);
}

static const char *text_of(const struct plan *plan) {
    static char text[BIG_BYTES + 1];
    memset(text, 'x', BIG_BYTES);
    text[plan->big ? BIG_BYTES : 300] = '\0';
    return text;
}

/* Some runs and a memory at once, then a question, which fills the tables. */
static void one_round(const struct plan *plan, uint64_t round) {
    struct store_row rows[FLIGHT];
    struct store_write writes[FLIGHT];
    uint64_t numbers[FLIGHT], note = NOTE + round;
    char key[24];
    snprintf(key, sizeof(key), "%llu", (unsigned long long)note);
    child.under_way = FLIGHT + 1;
    child.refused = false;
    for (size_t i = 0; i < FLIGHT; i++) {
        numbers[i] = round * FLIGHT + i + 1;
        rows[i] = whole_run(numbers[i], "s", text_of(plan));
        writes[i] = (struct store_write){.rows = &rows[i],
                                         .row_count = 1,
                                         .home = child.f->loop,
                                         .on_written = on_written,
                                         .ctx = &numbers[i]};
        store_write(child.f->store, &writes[i]);
    }
    struct memory_entry entry = {.key = str_from(key), .content = STR("kyoto")};
    memory_put_start(child.f->store, child.f->loop, AUDIT_NOBODY, STR("w"), &entry, on_noted,
                     &note);
    loop_run(child.f->loop);
    for (size_t i = 0; i < FLIGHT; i++) buf_done(&rows[i].bytes);
    struct store_load load = session_load("s");
    load.max_bytes = 64 * MIB;
    if (!fixture_try_load(child.f, &load) && child.f->failed.code != ERR_UNAVAILABLE) _exit(1);
    arena_free(load.arena);
}

/* A store that could not be opened refuses what comes until it tries again. */
static void wait_for_next_try(void) {
    usleep(1000 * REOPEN_MS + 20000);
}

static _Noreturn void live(const struct fixture *parent, const struct plan *plan) {
    struct fixture f = {.durability = STORE_FULL, .doubt_ms = plan->doubt_ms};
    snprintf(f.folder, sizeof(f.folder), "%s", parent->folder);
    powercut_begin(&(struct powercut){.seed = 7 + plan->fail_from,
                                      .fail_from = plan->fail_from,
                                      .fail_to = plan->fail_to,
                                      .fail_writes = plan->fail_writes,
                                      .fail_keeps = plan->fail_keeps});
    f.loop = loop_new();
    child.f = &f;
    bool open = fixture_try_open(&f);
    for (uint64_t round = 0; open && round < ROUNDS; round++) {
        one_round(plan, round);
        if (child.refused && plan->fail_to != SIZE_MAX) wait_for_next_try();
    }
    if (!open || plan->end == CLOSED) fixture_close(&f);
    struct report end = {0};
    end.syncs = powercut_syncs(&end.failed_syncs);
    send_report(end);
    if (plan->end == POWER_GOES) powercut_now();
    _exit(0);
}

/* --- what is left ------------------------------------------------------------------------- */

static void run_child(struct trial *trial, const struct plan *plan) {
    int lines[2], status;
    assert_int_equal(pipe(lines), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        child.to = lines[1];
        live(&trial->f, plan);
    }
    close(lines[1]);
    struct report *next = trial->reports;
    while (read(lines[0], next, sizeof(*next)) == sizeof(*next)) {
        next++;
        assert_true(next < trial->reports + ROOM);
    }
    trial->report_count = (size_t)(next - trial->reports);
    close(lines[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("the child ended with %d", status);
}

static bool run_is_there(struct trial *trial, uint64_t run) {
    struct store_load load = run_load(run, 0);
    load.max_bytes = 4 * MIB;
    load = fixture_load(&trial->f, load);
    bool there = load.section_count > 0;
    arena_free(load.arena);
    return there;
}

static bool on_disk[NOTE + ROUNDS + 1];

static void look_at_disk(struct trial *trial) {
    fixture_open(&trial->f);
    for (uint64_t run = 1; run <= ROUNDS * FLIGHT; run++)
        on_disk[run] = run_is_there(trial, run);
    assert_answer(&trial->f, (struct store_load){.question = STORE_UNFINISHED}, "");
    fixture_close(&trial->f);
    assert_sql(&trial->f, "PRAGMA integrity_check", "ok ");
    for (uint64_t round = 0; round < ROUNDS; round++) {
        char sql[80], path[96];
        sqlite3 *db;
        sqlite3_stmt *find;
        snprintf(sql, sizeof(sql), "SELECT 1 FROM memory WHERE key = CAST('%d' AS BLOB)",
                 (int)(NOTE + round));
        snprintf(path, sizeof(path), "%s/weir.db", trial->f.folder);
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &find, NULL), SQLITE_OK);
        on_disk[NOTE + round] = sqlite3_step(find) == SQLITE_ROW;
        sqlite3_finalize(find);
        sqlite3_close(db);
    }
}

static void check(struct trial *trial, const struct report *report) {
    trial->kept += report->failed == ERR_NONE;
    trial->refused += report->failed == ERR_UNAVAILABLE;
    trial->unknown += report->failed == ERR_OUTCOME_UNKNOWN;
    if (report->failed == ERR_NONE && !on_disk[report->number])
        fail_msg("%d was acknowledged and is gone", (int)report->number);
    if (report->failed == ERR_UNAVAILABLE && on_disk[report->number])
        fail_msg("%d was refused and is there", (int)report->number);
}

/* Returns how the child's disk fared. */
static struct report try(struct trial *trial, const struct plan *plan) {
    *trial = (struct trial){0};
    fixture_init(&trial->f);
    run_child(trial, plan);
    struct report end = {0};
    look_at_disk(trial);
    bool stopped = false;
    for (size_t i = 0; i < trial->report_count; i++) {
        const struct report *report = &trial->reports[i];
        if (!report->number) {
            end = *report;
            continue;
        }
        check(trial, report);
        if (stopped && plan->fail_to == SIZE_MAX)
            assert_int_not_equal(report->failed, ERR_NONE);
        stopped = stopped || report->failed != ERR_NONE;
    }
    assert_true(end.syncs > 0);
    fixture_done(&trial->f);
    return end;
}

static size_t count_all(const struct plan *plan) {
    struct trial trial;
    struct report end = try(&trial, plan);
    assert_int_equal(end.failed_syncs, 0);
    assert_int_equal(trial.kept, ROUNDS * (FLIGHT + 1));
    return end.syncs;
}

static size_t count_syncs(bool big) {
    return count_all(&(struct plan){.big = big});
}

/* --- the tests ---------------------------------------------------------------------------- */

/* Each failure refuses one round at most, nothing is unknown, and the store goes on by itself; a
 * store that was never open is the exception. Two failures can strike the last transaction of a
 * round and the first one of the next, or a change of the tables and the opening after it. */
static void assert_went_on(const struct trial *trial, size_t failures) {
    assert_int_equal(trial->unknown, 0);
    if (trial->refused > failures * (FLIGHT + 1))
        fail_msg("%zu writes were refused by %zu failures", trial->refused, failures);
    assert_true(trial->kept + trial->refused == ROUNDS * (FLIGHT + 1) || trial->kept == 0);
}

/* What the trials of one test saw. */
struct tally {
    size_t struck, refused, unknown;
};

struct series {
    size_t from, to, step; /* which sync or write fails first */
    void (*one)(size_t nth, struct tally *tally);
};

static void one_worker(const struct series *series, size_t worker, int to) {
    struct tally tally = {0};
    size_t place = 0;
    for (size_t nth = series->from; nth <= series->to; nth += series->step, place++)
        if (place % WORKERS == worker) series->one(nth, &tally);
    if (write(to, &tally, sizeof(tally)) != sizeof(tally)) _exit(1);
}

/* A trial mostly waits, for disks and for the next try of a store: so some run at once, each
 * in a process of its own, because the simulated disk is one for a process. */
static struct tally tally_of(struct series series) {
    struct tally all = {0}, part;
    pid_t workers[WORKERS];
    int lines[2], status;
    assert_int_equal(pipe(lines), 0);
    for (size_t i = 0; i < WORKERS; i++) {
        workers[i] = fork();
        assert_true(workers[i] >= 0);
        if (workers[i] > 0) continue;
        setenv("CMOCKA_TEST_ABORT", "1", 1); /* a failed assertion ends the worker alone */
        one_worker(&series, i, lines[1]);
        _exit(0);
    }
    close(lines[1]);
    for (size_t i = 0; i < WORKERS; i++) {
        assert_int_equal(waitpid(workers[i], &status, 0), workers[i]);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail_msg("a worker ended with %d: what failed stands above", status);
    }
    for (size_t i = 0; i < WORKERS; i++) {
        assert_int_equal(read(lines[0], &part, sizeof(part)), sizeof(part));
        all.struck += part.struck;
        all.refused += part.refused;
        all.unknown += part.unknown;
    }
    close(lines[0]);
    return all;
}

static void fail_one_sync(size_t nth, struct tally *tally) {
    for (int way = (int)(nth % 2); way < 2 * END_COUNT; way += 2) {
        struct trial trial;
        struct plan plan = {.fail_from = nth,
                            .fail_to = nth + (nth % 4 ? 0 : 1),
                            .fail_keeps = way % 2,
                            .end = (enum end)(way / 2)};
        struct report end = try(&trial, &plan);
        assert_went_on(&trial, end.failed_syncs);
        tally->struck += end.failed_syncs;
        tally->refused += trial.refused;
    }
}

static void one_sync_that_fails_costs_one_commit_at_most(void **state) {
    (void)state;
    size_t syncs = count_syncs(false);
    struct tally tally = tally_of((struct series){1, syncs, 1, fail_one_sync});
    assert_true(tally.struck >= syncs);
    print_message("%zu syncs failed, %zu writes were refused\n", tally.struck, tally.refused);
}

static void fail_every_sync(size_t nth, struct tally *tally) {
    for (int way = (int)(nth % 2); way < 2 * END_COUNT; way += 2) {
        struct trial trial;
        struct plan plan = {.fail_from = nth,
                            .fail_to = SIZE_MAX,
                            .fail_keeps = way % 2,
                            .doubt_ms = 1,
                            .end = (enum end)(way / 2)};
        try(&trial, &plan);
        assert_true(trial.unknown <= FLIGHT + 1);
        tally->unknown += trial.unknown;
        tally->refused += trial.refused;
    }
}

static void when_every_sync_fails_nothing_more_is_acknowledged(void **state) {
    (void)state;
    struct tally tally = tally_of((struct series){1, count_syncs(false), 1, fail_every_sync});
    assert_true(tally.unknown > 0 && tally.refused > 0);
    print_message("%zu outcomes were unknown, %zu writes refused\n", tally.unknown,
                  tally.refused);
}

static void fail_a_fold(size_t nth, struct tally *tally) {
    struct trial trial;
    struct plan plan = {
        .fail_from = nth, .fail_to = nth, .big = true, .end = nth % 3 ? POWER_GOES : CLOSED};
    struct report end = try(&trial, &plan);
    assert_went_on(&trial, end.failed_syncs);
    tally->struck += end.failed_syncs;
}

/* Among them are those of the thread that folds. */
static void a_fold_that_cannot_be_synced_loses_nothing(void **state) {
    (void)state;
    struct tally tally = tally_of((struct series){4, count_syncs(true) + 2, 1, fail_a_fold});
    assert_true(tally.struck > 0);
}

static void fail_one_write(size_t nth, struct tally *tally) {
    struct trial trial;
    struct plan plan = {.fail_from = nth,
                        .fail_to = nth + nth % 2,
                        .fail_writes = true,
                        .fail_keeps = nth % 4 == 1,
                        .end = (enum end)(nth / 2 % END_COUNT)};
    struct report end = try(&trial, &plan);
    assert_went_on(&trial, end.failed_syncs);
    tally->struck += end.failed_syncs;
    tally->refused += trial.refused;
}

/* SQLite takes a write back that failed; a disk may keep it all the same. */
static void one_write_that_fails_costs_one_commit_at_most(void **state) {
    (void)state;
    size_t tried = count_all(&(struct plan){.fail_writes = true});
    struct tally tally = tally_of((struct series){1, tried, 1, fail_one_write});
    assert_true(tally.struck + 2 >= tried); /* the last may not come to it */
    print_message("%zu writes failed, %zu were refused\n", tally.struck, tally.refused);
}

static void fail_every_write(size_t nth, struct tally *tally) {
    struct trial trial;
    struct plan plan = {.fail_from = nth,
                        .fail_to = SIZE_MAX,
                        .fail_writes = true,
                        .fail_keeps = nth % 2,
                        .doubt_ms = 1,
                        .end = (enum end)(nth / 3 % END_COUNT)};
    try(&trial, &plan);
    assert_true(trial.unknown <= FLIGHT + 1);
    tally->unknown += trial.unknown;
    tally->refused += trial.refused;
}

/* From each write on, for the outcome is unknown only from some kinds of them. */
static void when_every_write_fails_nothing_more_is_acknowledged(void **state) {
    (void)state;
    size_t writes = count_all(&(struct plan){.fail_writes = true});
    struct tally tally = tally_of((struct series){1, writes, 1, fail_every_write});
    assert_true(tally.unknown > 0 && tally.refused > 0);
    print_message("%zu outcomes were unknown, %zu writes refused\n", tally.unknown,
                  tally.refused);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_sync_that_fails_costs_one_commit_at_most),
        cmocka_unit_test(when_every_sync_fails_nothing_more_is_acknowledged),
        cmocka_unit_test(a_fold_that_cannot_be_synced_loses_nothing),
        cmocka_unit_test(one_write_that_fails_costs_one_commit_at_most),
        cmocka_unit_test(when_every_write_fails_nothing_more_is_acknowledged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
