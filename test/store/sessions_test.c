/* Listing sessions and erasing one: it is gone from every answer and from the files, also if
 * the process dies in the middle. Source: checks.md I7, T8. */
#include "store/sessions.h"

#include "base/clock.h"
#include "fixture.h"
#include "store/artifact.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* --- asking in turn ----------------------------------------------------------------------- */

#define ROOM 64

struct answered {
    struct loop *loop;
    struct err failed;
    size_t count, run_count;
    int64_t next, ids[ROOM];
    char names[ROOM][24];
    uint64_t runs[ROOM];
};

static void on_answered(const struct sessions_answer *answer, const struct err *failed,
                        void *ctx) {
    struct answered *answered = ctx;
    answered->failed.code = ERR_NONE;
    if (failed) answered->failed = *failed;
    answered->count = answer->count;
    answered->next = answer->next;
    answered->run_count = answer->run_count;
    for (size_t i = 0; i < answer->count; i++) {
        answered->ids[i] = answer->sessions[i].id;
        struct str name = answer->sessions[i].session;
        snprintf(answered->names[i], sizeof(answered->names[i]), STR_FMT, STR_ARG(name));
    }
    for (size_t i = 0; i < answer->run_count; i++) answered->runs[i] = answer->runs[i];
    loop_stop(answered->loop);
}

static struct answered list(struct fixture *f, struct str workspace, int64_t before,
                            size_t limit) {
    struct answered answered = {.loop = f->loop};
    struct sessions_filter filter = {.workspace = workspace, .before = before, .limit = limit};
    sessions_list_start(f->store, f->loop, &filter, on_answered, &answered);
    loop_run(f->loop);
    assert_int_equal(answered.failed.code, ERR_NONE);
    return answered;
}

static struct answered runs_of(struct fixture *f, const char *session) {
    struct answered answered = {.loop = f->loop};
    sessions_runs_start(f->store, f->loop, STR("w"), STR("u"), str_from(session), on_answered,
                        &answered);
    loop_run(f->loop);
    return answered;
}

static enum err_code erase(struct fixture *f, const char *session) {
    struct answered answered = {.loop = f->loop};
    sessions_erase_start(f->store, f->loop, STR("w"), STR("u"), str_from(session), on_answered,
                         &answered);
    loop_run(f->loop);
    return answered.failed.code;
}

/* --- what is written ---------------------------------------------------------------------- */

static char secret[] = "a-word-that-nobody-else-says";

/* A run of three rows: its own, one that it shares with a neighbour, its end. */
static void write_shared(struct fixture *f, uint64_t run, const char *session,
                         uint64_t neighbour) {
    struct row_text row;
    row_begin(&row);
    row_section(&row, run, 1);
    row_event(&row, started(session));
    fixture_write(f, row_end(&row, run));
    row_begin(&row);
    row_section(&row, neighbour, 1);
    row_event(&row, started("neighbour"));
    fixture_write(f, row_end(&row, neighbour));
    row_begin(&row);
    row_section(&row, run, 2);
    row_event(&row, text(secret));
    row_section(&row, neighbour, 2);
    row_event(&row, text("kept"));
    fixture_write(f, row_end(&row, 0));
    row_begin(&row);
    row_section(&row, neighbour, 3);
    row_event(&row, done());
    fixture_write(f, row_end(&row, neighbour));
    row_begin(&row);
    row_section(&row, run, 3);
    row_event(&row, text(secret));
    row_event(&row, done());
    fixture_write(f, row_end(&row, run));
}

static bool file_says(const struct fixture *f, const char *name, const char *word) {
    char path[128];
    struct stat info;
    snprintf(path, sizeof(path), "%s/%s", f->folder, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    assert_int_equal(fstat(file, &info), 0);
    char *bytes = mem_alloc((size_t)info.st_size + 1);
    ssize_t len =
        read(file, bytes, (size_t)info.st_size); /* less, if the store has cut it now */
    close(file);
    assert_in_range(len, 0, info.st_size);
    bool says = str_find(str_of(bytes, (size_t)len), str_from(word)) < (size_t)len;
    free(bytes);
    return says;
}

static bool files_say(const struct fixture *f, const char *word) {
    return file_says(f, "weir.db", word) || file_says(f, "weir.db-wal", word);
}

/* --- listing ------------------------------------------------------------------------------ */

static void sessions_are_listed_the_newest_first_page_by_page(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    assert_int_equal(list(f, (struct str){NULL, 0}, 0, 10).count, 0);
    for (uint64_t i = 1; i <= 9; i++) {
        char name[8];
        snprintf(name, sizeof(name), "s%llu", (unsigned long long)i);
        fixture_write(f, whole_run(i, name, "hi"));
    }
    fixture_write(f, whole_run(10, "s1", "again"));
    int64_t before = 0;
    size_t seen = 0;
    do {
        struct answered page = list(f, STR("w"), before, 4);
        for (size_t i = 0; i < page.count; i++) {
            char name[8];
            snprintf(name, sizeof(name), "s%zu", 9 - seen++);
            assert_string_equal(page.names[i], name);
        }
        before = page.next;
    } while (before);
    assert_int_equal(seen, 9);
    assert_int_equal(list(f, STR("other"), 0, 4).count, 0);
    struct answered runs = runs_of(f, "s1");
    assert_int_equal(runs.run_count, 2);
    assert_int_equal(runs.runs[0], 1);
    assert_int_equal(runs.runs[1], 10);
    assert_int_equal(runs_of(f, "s0").failed.code, ERR_NOT_FOUND);
}

/* --- erasing ------------------------------------------------------------------------------ */

static void an_erased_session_is_gone_and_its_neighbours_stay(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    fixture_write(f, whole_run(1, "before", "kept"));
    write_shared(f, 2, "doomed", 3);
    write_shared(f, 4, "doomed", 5);
    assert_int_equal(erase(f, "doomed"), ERR_NONE);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(runs_of(f, "doomed").failed.code, ERR_NOT_FOUND);
        struct store_load load = fixture_load(f, session_load("doomed"));
        assert_int_equal(load.section_count, 0);
        arena_free(load.arena);
        for (uint64_t run = 1; run <= 5; run++) {
            load = fixture_load(
                f, (struct store_load){.question = STORE_RUN, .run = run, .max_bytes = MIB});
            assert_int_equal(load.section_count, run == 1 ? 1 : run % 2 ? 3 : 0);
            arena_free(load.arena);
        }
        assert_int_equal(list(f, STR("w"), 0, 9).count, 2);
        fixture_close(f);
        fixture_open(f);
    }
    fixture_write(f, whole_run(9, "doomed", "anew"));
    assert_int_equal(runs_of(f, "doomed").run_count, 1);
}

/* Each answer fills the tables, so that the session is one that was written last. */
static void a_session_that_begins_again_has_only_its_new_runs(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    for (uint64_t run = 1; run <= 9; run += 3) {
        fixture_write(f, whole_run(run, "doomed", "gone"));
        assert_int_equal(runs_of(f, "doomed").run_count, 1);
        fixture_write(f, whole_run(run + 1, "doomed", "gone"));
        fixture_write(f, whole_run(run + 2, "other", "kept"));
        assert_int_equal(runs_of(f, "doomed").run_count, 2);
        assert_int_equal(runs_of(f, "other").run_count, 1 + run / 3);
        assert_int_equal(erase(f, "doomed"), ERR_NONE);
        assert_int_equal(runs_of(f, "doomed").failed.code, ERR_NOT_FOUND);
    }
}

/* Runs that were committed together are in one row, the newest of the log among them. */
static void an_erased_run_leaves_the_row_that_it_shared(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    struct store_row rows[6];
    for (uint64_t i = 0; i < 6; i++)
        rows[i] = i % 2 ? whole_run(i + 1, "neighbour", "kept")
                        : whole_run(i + 1, "doomed-name", secret);
    assert_true(fixture_try_write(f, rows, 6));
    fixture_write(f, whole_run(7, "doomed-name", secret));
    fixture_close(f);
    assert_sql(f, "SELECT count(*) FROM log", "2 ");
    assert_true(file_says(f, "weir.db", secret));
    fixture_open(f);
    assert_int_equal(erase(f, "doomed-name"), ERR_NONE);
    for (int round = 0; round < 2; round++) {
        assert_false(files_say(f, secret));
        assert_false(files_say(f, "doomed-name"));
        assert_answer(f, session_load("doomed-name"), "");
        assert_answer(f, session_load("neighbour"),
                      "2:1 started kept done;4:1 started kept done;6:1 started kept done");
        for (uint64_t run = 1; run <= 7; run += 2) assert_answer(f, run_load(run, 0), "");
        fixture_close(f);
        fixture_open(f);
    }
}

static void an_erased_text_is_not_in_the_files_any_more(void **state) {
    FIXTURE_SQLITE_ONLY();
    struct fixture *f = *state;
    fixture_open(f);
    fixture_write(f, whole_run(1, "doomed-name", secret));
    char *large = mem_alloc(300 * KIB);
    memset(large, 'x', 300 * KIB);
    for (size_t at = 0; at + sizeof(secret) < 300 * KIB; at += 5000)
        memcpy(large + at, secret, sizeof(secret) - 1);
    large[300 * KIB - 1] = '\0';
    fixture_write(f, whole_run(2, "doomed-name", large));
    free(large);
    write_shared(f, 3, "doomed-name", 4);
    assert_true(files_say(f, secret));
    fixture_close(f);
    fixture_open(f);
    assert_true(file_says(f, "weir.db", secret));
    assert_int_equal(erase(f, "doomed-name"), ERR_NONE);
    assert_false(files_say(f, secret));
    assert_false(files_say(f, "doomed-name"));
    assert_true(files_say(f, "kept") || runs_of(f, "neighbour").run_count == 1);
    fixture_close(f);
    assert_false(files_say(f, secret));
    fixture_open(f);
}

static int64_t kept_id;

static void kept_artifact(const struct artifact *artifact, const struct err *failed,
                          void *ctx) {
    struct fixture *f = ctx;
    kept_id = artifact->id;
    f->failed.code = failed ? failed->code : ERR_NONE;
    loop_stop(f->loop);
}

static char tokens[2][ARTIFACT_TOKEN_BYTES] = {{1}, {2}};

static int64_t put_artifact(struct fixture *f, uint64_t run) {
    static int64_t made;
    struct artifact artifact = {.run = run,
                                .name = STR("page"),
                                .content_type = STR("text/plain"),
                                .bytes = str_from(secret),
                                .token = str_of(tokens[made], ARTIFACT_TOKEN_BYTES)};
    struct artifact_ask *ask;
    struct err e;
    assert_true(
        artifact_put_start(f->store, f->loop, STR("w"), &artifact, kept_artifact, f, &ask, &e));
    loop_run(f->loop);
    return ++made;
}

static enum err_code get_artifact(struct fixture *f, int64_t id) {
    artifact_get_start(f->store, f->loop, STR("w"), id, 0, 100, kept_artifact, f);
    loop_run(f->loop);
    return f->failed.code;
}

static enum err_code find_artifact(struct fixture *f, int64_t id) {
    artifact_find_start(f->store, f->loop, str_of(tokens[id - 1], ARTIFACT_TOKEN_BYTES), 0, 100,
                        kept_artifact, f);
    loop_run(f->loop);
    return f->failed.code;
}

/* The audit log stays. What a turn failed with may be words of the model, or of an agent that is a
 * program, which repeats what it was asked. */
static void what_a_turn_failed_with_goes_with_it(void **state) {
    FIXTURE_SQLITE_ONLY();
    struct fixture *f = *state;
    struct row_text row;
    fixture_open(f);
    for (uint64_t run = 1; run <= 2; run++) {
        struct event end = {
            .kind = EVENT_FAILED,
            .failed = {.reason = STR_INIT("MODEL_REFUSED"), .message = str_from(secret)}};
        if (run == 2)
            end = (struct event){.kind = EVENT_CANCELLED,
                                 .cancelled = {.message = str_from(secret)}};
        row_begin(&row);
        row_section(&row, run, 1);
        row_event(&row, started("doomed-name"));
        row_event(&row, end);
        fixture_write(f, row_end(&row, run));
    }
    assert_true(files_say(f, secret));
    assert_int_equal(erase(f, "doomed-name"), ERR_NONE);
    assert_false(files_say(f, secret));
    fixture_close(f);
    assert_false(files_say(f, secret));
    assert_sql(f, "SELECT count(*) > 0 FROM audit", "1 ");
    fixture_open(f);
}

/* Sessions come and go, and SQLite moves rows from page to page meanwhile. Not even where a text
 * stood before it was moved is it found. */
static void an_erased_text_is_not_where_it_was_moved_from(void **state) {
    FIXTURE_SQLITE_ONLY();
    enum { SESSIONS = 400, TOGETHER = 4, LONGEST = 700 };
    struct fixture *f = *state;
    char name[24], said[LONGEST + 64];
    bool gone[SESSIONS] = {false};
    unsigned seed = 2; /* one of those whose rows are moved so */
    fixture_open(f);
    for (int i = 0; i < SESSIONS; i += TOGETHER) {
        struct store_row rows[TOGETHER];
        for (int j = 0; j < TOGETHER; j++) {
            int len = snprintf(said, sizeof(said), "said-%d-here ", i + j);
            for (int more = rand_r(&seed) % LONGEST; more > 0; more--) said[len++] = 'x';
            said[len] = '\0';
            snprintf(name, sizeof(name), "doomed-%d-name", i + j);
            rows[j] = whole_run((uint64_t)(i + j) + 1, name, said);
        }
        assert_true(fixture_try_write(f, rows, TOGETHER));
        for (int k = 0; k < 3; k++) {
            int doomed = rand_r(&seed) % (i + TOGETHER);
            if (gone[doomed]) continue;
            gone[doomed] = true;
            snprintf(name, sizeof(name), "doomed-%d-name", doomed);
            assert_int_equal(erase(f, name), ERR_NONE);
        }
    }
    int left = 0;
    for (int i = 0; i < SESSIONS; i++) {
        if (!gone[i]) continue;
        snprintf(said, sizeof(said), "said-%d-here", i);
        snprintf(name, sizeof(name), "doomed-%d-name", i);
        left += files_say(f, said) || files_say(f, name);
    }
    assert_int_equal(left, 0);
}

/* Another program that reads, such as one that makes a backup, keeps the text in the write-ahead
 * log. Nobody waits for that program, and the text goes soon after it. */
static void erasing_waits_for_no_program_that_reads(void **state) {
    FIXTURE_SQLITE_ONLY();
    enum { NOTES = 10, WAITS_MS = NOTES * 1000 }; /* half of what it takes if each waits */
    struct fixture *f = *state;
    char path[128];
    sqlite3 *reader;
    fixture_open(f);
    fixture_write(f, whole_run(1, "doomed", secret));
    snprintf(path, sizeof(path), "%s/weir.db", f->folder);
    assert_int_equal(sqlite3_open(path, &reader), SQLITE_OK);
    assert_int_equal(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM log", NULL, NULL, NULL),
                     SQLITE_OK);
    uint64_t began_ms = clock_mono_ms();
    for (int i = 0; i < NOTES; i++) {
        fixture_write(f, whole_run(2 + (uint64_t)i, "other", "kept"));
        assert_int_equal(erase(f, i == 0 ? "doomed" : "other"), ERR_NONE);
    }
    assert_in_range(clock_mono_ms() - began_ms, 0, WAITS_MS);
    assert_true(files_say(f, secret));
    sqlite3_exec(reader, "COMMIT", NULL, NULL, NULL);
    sqlite3_close(reader);
    while (files_say(f, secret)) usleep(1000);
}

static void its_artifacts_go_with_it(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    fixture_write(f, whole_run(1, "doomed", "x"));
    fixture_write(f, whole_run(2, "other", "x"));
    int64_t first = put_artifact(f, 1), second = put_artifact(f, 2);
    assert_int_equal(erase(f, "doomed"), ERR_NONE);
    assert_int_equal(get_artifact(f, first), ERR_NOT_FOUND);
    assert_int_equal(get_artifact(f, second), ERR_NONE);
    assert_int_equal(find_artifact(f, first), ERR_NOT_FOUND);
    assert_int_equal(find_artifact(f, second), ERR_NONE);
}

/* A turn of the session `of` asks for an id that its model names. */
static enum err_code read_artifact(struct fixture *f, const struct artifact_reader *of,
                                   int64_t id) {
    artifact_read_start(f->store, f->loop, of, id, 0, 100, kept_artifact, f);
    loop_run(f->loop);
    return f->failed.code;
}

static int64_t put_result(struct fixture *f, uint64_t run, struct str token) {
    const struct artifact artifact = {
        .run = run, .name = STR("t"), .bytes = str_from(secret), .token = token};
    struct artifact_ask *ask;
    struct err e;
    assert_true(
        artifact_put_start(f->store, f->loop, STR("w"), &artifact, kept_artifact, f, &ask, &e));
    loop_run(f->loop);
    return kept_id;
}

static void a_result_is_read_by_turns_of_its_session_alone(void **state) {
    struct fixture *f = *state;
    static const struct artifact_reader its_own = {STR_INIT("w"), STR_INIT("u"), STR_INIT("s"),
                                                   3};
    static const struct artifact_reader others[] = {
        {STR_INIT("w"), STR_INIT("v"), STR_INIT("s"), 4},
        {STR_INIT("w"), STR_INIT("u"), STR_INIT("t"), 4},
        {STR_INIT("w"), STR_INIT("us"), STR_INIT(""), 0},
        {STR_INIT("x"), STR_INIT("u"), STR_INIT("s"), 1},
    };
    fixture_open(f);
    fixture_write(f, whole_run(1, "s", "x"));
    fixture_write(f, whole_run(2, "t", "x"));
    int64_t result = put_result(f, 1, STR_EMPTY);
    int64_t made = put_result(f, 1, STR("one-token-of-24-bytes..."));
    assert_int_equal(read_artifact(f, &its_own, result), ERR_NONE);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_int_equal(read_artifact(f, &others[i], result), ERR_NOT_FOUND);
    assert_int_equal(read_artifact(f, &its_own, made), ERR_NOT_FOUND);
    int64_t unwritten = put_result(f, 3, STR_EMPTY);
    assert_int_equal(read_artifact(f, &its_own, unwritten), ERR_NONE);
    fixture_close(f);
    fixture_open(f);
    assert_int_equal(read_artifact(f, &its_own, result), ERR_NONE);
    assert_int_equal(read_artifact(f, &others[0], result), ERR_NOT_FOUND);
}

static uint64_t run_of_key(struct fixture *f, const char *key) {
    struct store_load load = fixture_load(f, (struct store_load){.question = STORE_KEY,
                                                                 .workspace = STR("w"),
                                                                 .user = STR("u"),
                                                                 .key = str_from(key)});
    uint64_t run = load.key_means.run;
    arena_free(load.arena);
    return run;
}

static void write_keyed(struct fixture *f, uint64_t run, const char *session, const char *key) {
    struct row_text row;
    struct event begins = started(session);
    begins.started.key = str_from(key);
    begins.started.print = STR("print");
    row_begin(&row);
    row_section(&row, run, 1);
    row_event(&row, begins);
    row_event(&row, done());
    fixture_write(f, row_end(&row, run));
}

static void its_keys_go_with_it(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    write_keyed(f, 1, "doomed", "a");
    write_keyed(f, 2, "other", "b");
    assert_int_equal(run_of_key(f, "a"), 1);
    assert_int_equal(erase(f, "doomed"), ERR_NONE);
    assert_int_equal(run_of_key(f, "a"), 0);
    assert_int_equal(run_of_key(f, "b"), 2);
}

static void a_session_whose_run_is_not_over_is_left_alone(void **state) {
    struct fixture *f = *state;
    struct row_text row;
    fixture_open(f);
    fixture_write(f, whole_run(1, "busy", "x"));
    row_begin(&row);
    row_section(&row, 2, 1);
    row_event(&row, started("busy"));
    fixture_write(f, row_end(&row, 2));
    assert_int_equal(erase(f, "busy"), ERR_FAILED_PRECONDITION);
    assert_int_equal(erase(f, "nobody"), ERR_NOT_FOUND);
    assert_int_equal(runs_of(f, "busy").run_count, 2);
    struct store_load load = fixture_load(f, session_load("busy"));
    assert_int_equal(load.section_count, 1);
    arena_free(load.arena);
}

static void tables_that_are_filled_anew_do_not_bring_it_back(void **state) {
    FIXTURE_SQLITE_ONLY();
    struct fixture *f = *state;
    fixture_open(f);
    fixture_write(f, whole_run(1, "a", "x"));
    write_shared(f, 2, "doomed", 3);
    fixture_write(f, whole_run(4, "b", "x"));
    assert_int_equal(erase(f, "doomed"), ERR_NONE);
    fixture_close(f);
    char path[128];
    sqlite3 *db;
    snprintf(path, sizeof(path), "%s/weir.db", f->folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "DELETE FROM session; DELETE FROM run; DELETE FROM usage;"
                                  "UPDATE meta SET value = 0 WHERE name = 'projected'",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    fixture_open(f);
    struct answered answered = list(f, STR("w"), 0, 9);
    assert_int_equal(answered.count, 3);
    assert_string_equal(answered.names[0], "b");
    assert_string_equal(answered.names[1], "neighbour");
    assert_string_equal(answered.names[2], "a");
}

/* --- death in the middle of it ------------------------------------------------------------ */

static const char *fatal_step;
static int lives;

static void die_at_step(const char *step, void *ctx) {
    (void)ctx;
    if (strcmp(step, fatal_step) == 0 && --lives == 0) raise(SIGKILL);
}

static int erase_and_die(struct fixture *f) {
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct fixture own = {.durability = f->durability, .at_step = die_at_step};
        memcpy(own.folder, f->folder, sizeof(own.folder));
        own.loop = loop_new();
        if (!fixture_try_open(&own)) _exit(1);
        if (erase(&own, "doomed") != ERR_NONE) _exit(2);
        fixture_close(&own);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void whenever_it_dies_the_session_is_whole_or_gone(void **state) {
    FIXTURE_SQLITE_ONLY();
    static const char *const steps[] = {
        "epoch",      "epoch noted", "tables filled", "projected", "runs erased",
        "tasks done", "committed",   "noted",         "purged",    "tasks answered"};
    struct fixture *f = *state;
    size_t died = 0;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        for (int nth = 1; nth <= 2; nth++) {
            fatal_step = steps[i];
            lives = nth;
            fixture_open(f);
            uint64_t base = 100 * (i + 1) + 10 * (uint64_t)nth;
            write_shared(f, base, "doomed", base + 1);
            write_shared(f, base + 2, "doomed", base + 3);
            size_t whole = runs_of(f, "doomed").run_count;
            fixture_close(f);
            int status = erase_and_die(f);
            died += WIFSIGNALED(status);
            assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
            fixture_open(f);
            struct answered after = runs_of(f, "doomed");
            bool gone = after.failed.code == ERR_NOT_FOUND;
            assert_true(gone || after.run_count == whole);
            assert_int_equal(runs_of(f, "neighbour").run_count, 4 * i + 2 * (size_t)nth);
            if (!gone) assert_int_equal(erase(f, "doomed"), ERR_NONE);
            fixture_close(f);
            assert_false(files_say(f, secret));
        }
    }
    assert_true(died >= ARRAY_LEN(steps));
    fixture_open(f);
}

/* The files were not purged when it died: the next start does it by itself. */
static void what_a_crash_left_in_the_log_is_purged_by_the_next_start(void **state) {
    FIXTURE_SQLITE_ONLY();
    struct fixture *f = *state;
    fixture_open(f);
    fixture_write(f, whole_run(1, "doomed", secret));
    fixture_close(f);
    fatal_step = "noted";
    lives = 1;
    assert_true(WIFSIGNALED(erase_and_die(f)));
    assert_true(files_say(f, secret)); /* not folded in yet */
    fixture_open(f);
    assert_int_equal(runs_of(f, "doomed").failed.code, ERR_NOT_FOUND);
    fixture_write(f, whole_run(2, "other", "x"));
    struct store_load load = fixture_load(f, session_load("other"));
    arena_free(load.arena);
    assert_false(files_say(f, secret));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(sessions_are_listed_the_newest_first_page_by_page),
        TEST(an_erased_session_is_gone_and_its_neighbours_stay),
        TEST(a_session_that_begins_again_has_only_its_new_runs),
        TEST(an_erased_run_leaves_the_row_that_it_shared),
        TEST(an_erased_text_is_not_in_the_files_any_more),
        TEST(what_a_turn_failed_with_goes_with_it),
        TEST(an_erased_text_is_not_where_it_was_moved_from),
        TEST(erasing_waits_for_no_program_that_reads),
        TEST(its_artifacts_go_with_it),
        TEST(a_result_is_read_by_turns_of_its_session_alone),
        TEST(its_keys_go_with_it),
        TEST(a_session_whose_run_is_not_over_is_left_alone),
        TEST(tables_that_are_filled_anew_do_not_bring_it_back),
        TEST(whenever_it_dies_the_session_is_whole_or_gone),
        TEST(what_a_crash_left_in_the_log_is_purged_by_the_next_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
