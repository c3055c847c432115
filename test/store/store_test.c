/* What store.h promises, on a real file: write, acknowledge, restart and read. */
#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>

/* --- writing and reading back ------------------------------------------------------------- */

static void what_is_acknowledged_is_found_at_once(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    fixture_write(f, whole_run(7, "s", "one"));
    assert_answer(f, session_load("s"), "7:1 started one done");
    assert_answer(f, run_load(7, 0), "7:1 started one done");
    fixture_write(f, whole_run(8, "s", "two"));
    assert_answer(f, session_load("s"), "7:1 started one done;8:1 started two done");
}

static void an_empty_body_is_an_empty_answer(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    assert_answer(f, session_load("s"), "");
    assert_answer(f, run_load(1, 0), "");
    assert_answer(f, (struct store_load){.question = STORE_UNFINISHED}, "");
    fixture_write(f, whole_run(7, "s", "one"));
    assert_answer(f, session_load("S"), "");
    assert_answer(f, session_load(""), "");
    struct store_load other = session_load("s");
    other.workspace = STR("v");
    assert_answer(f, other, "");
    other = session_load("s");
    other.user = STR("");
    assert_answer(f, other, "");
}

static void a_restart_finds_everything_and_raises_the_epoch(void **state) {
    struct fixture *f = *state;
    for (uint64_t start = 1; start <= 4; start++) {
        fixture_open(f);
        assert_int_equal(store_epoch(f->store), start);
        fixture_write(f, whole_run(start, "s", "x"));
        fixture_close(f);
    }
    fixture_open(f);
    assert_answer(f, session_load("s"),
                  "1:1 started x done;2:1 started x done;3:1 started x done;"
                  "4:1 started x done");
}

static void a_run_may_be_spread_over_rows_of_its_own_and_shared_ones(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    struct row_text row;
    row_begin(&row);
    row_section(&row, 7, 1);
    row_event(&row, started("s"));
    fixture_write(f, row_end(&row, 7));
    fixture_write(f, whole_run(6, "other", "x"));
    row_begin(&row);
    row_section(&row, 9, 4);
    row_event(&row, text("not mine"));
    row_section(&row, 7, 2);
    row_event(&row, text("a"));
    row_event(&row, text("b"));
    row_section(&row, 7, 4);
    row_event(&row, text("c"));
    fixture_write(f, row_end(&row, 0));
    assert_answer(f, session_load("s"), "");
    assert_answer(f, run_load(7, 0), "7:1 started;7:2 a b;7:4 c");
    row_begin(&row);
    row_section(&row, 7, 5);
    row_event(&row, done());
    fixture_write(f, row_end(&row, 7));
    assert_answer(f, session_load("s"), "7:1 started;7:5 done");
    assert_answer(f, run_load(7, 0), "7:1 started;7:2 a b;7:4 c;7:5 done");
    assert_answer(f, run_load(7, 1), "7:2 a b;7:4 c;7:5 done");
    assert_answer(f, run_load(7, 2), "7:3 b;7:4 c;7:5 done");
    assert_answer(f, run_load(7, 3), "7:4 c;7:5 done");
    assert_answer(f, run_load(7, 4), "7:5 done");
    assert_answer(f, run_load(7, 5), "");
    assert_answer(f, run_load(7, UINT64_MAX), "");
}

static void several_rows_are_written_as_one_piece(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    struct store_row rows[] = {whole_run(1, "a", "x"), whole_run(2, "b", "y")};
    assert_true(fixture_try_write(f, rows, 2));
    assert_answer(f, session_load("a"), "1:1 started x done");
    assert_answer(f, session_load("b"), "2:1 started y done");
}

static void a_row_that_is_too_large_is_refused_alone(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    struct store_row row = {.run = 1};
    buf_init(&row.bytes, 80 * MIB);
    assert_non_null(buf_room(&row.bytes, 64 * MIB + 1));
    memset(row.bytes.at, 1, 64 * MIB + 1);
    buf_grew(&row.bytes, 64 * MIB + 1);
    assert_false(fixture_try_write(f, &row, 1));
    assert_int_equal(f->failed.code, ERR_TOO_LARGE);
    fixture_write(f, whole_run(2, "s", "x"));
    assert_answer(f, session_load("s"), "2:1 started x done");
}

/* --- group commit ------------------------------------------------------------------------- */

static atomic_int commits;

static void count_commits(const char *step, void *ctx) {
    (void)ctx;
    if (strcmp(step, "committed") == 0) commits++;
}

struct crowd {
    struct fixture *f;
    int left, order;
    bool in_order;
};

struct member {
    struct store_write write;
    struct store_row row;
    struct crowd *crowd;
    int place;
};

static void member_written(struct store_write *write, const struct err *failed, void *ctx) {
    (void)write;
    struct member *member = ctx;
    struct crowd *crowd = member->crowd;
    assert_null(failed);
    if (member->place != crowd->order++) crowd->in_order = false;
    if (--crowd->left == 0) loop_stop(crowd->f->loop);
}

static void writes_that_wait_together_share_a_commit_and_are_answered_in_order(void **state) {
    struct fixture *f = *state;
    enum { COUNT = 300 };
    f->at_step = count_commits;
    commits = 0;
    struct crowd crowd = {.f = f, .left = COUNT, .in_order = true};
    struct member *members = mem_zero(COUNT, sizeof(*members));
    fixture_begin(f);
    for (int i = 0; i < COUNT; i++) {
        members[i] = (struct member){.crowd = &crowd, .place = i};
        members[i].row = whole_run((uint64_t)i + 1, "s", "x");
        members[i].write = (struct store_write){
            .rows = &members[i].row,
            .row_count = 1,
            .home = f->loop,
            .on_written = member_written,
            .ctx = &members[i],
        };
        store_write(f->store, &members[i].write);
    }
    while (crowd.left) loop_run(f->loop);
    assert_true(crowd.in_order);
    assert_true(commits < COUNT);
    struct store_load load = fixture_load(f, session_load("s"));
    assert_int_equal(load.section_count, 100);
    assert_true(load.more);
    arena_free(load.arena);
    for (int i = 0; i < COUNT; i++) buf_done(&members[i].row.bytes);
    free(members);
}

/* --- several loops ------------------------------------------------------------------------ */

enum { THREAD_WRITES = 200 };

struct worker {
    struct fixture f; /* its loop and the common store */
    uint64_t first;
    pthread_t thread;
};

static void *write_many(void *ctx) {
    struct worker *worker = ctx;
    worker->f.loop = loop_new();
    for (uint64_t i = 0; i < THREAD_WRITES; i++) {
        char session[16];
        snprintf(session, sizeof(session), "s%d", (int)(i % 7));
        struct store_row row = whole_run(worker->first + i, session, "x");
        if (!fixture_try_write(&worker->f, &row, 1)) abort();
        struct store_load load = run_load(worker->first + i, 0);
        if (!fixture_try_load(&worker->f, &load) || load.section_count != 1) abort();
        arena_free(load.arena);
        load = session_load("nobody's");
        if (!fixture_try_load(&worker->f, &load) || load.section_count != 0) abort();
        arena_free(load.arena);
    }
    loop_free(worker->f.loop);
    return NULL;
}

static void each_loop_gets_its_own_answers(void **state) {
    struct fixture *f = *state;
    f->durability = STORE_NORMAL;
    fixture_open(f);
    struct worker workers[3];
    for (size_t i = 0; i < ARRAY_LEN(workers); i++) {
        workers[i] = (struct worker){.f = {.store = f->store}, .first = 1 + i * 1000};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, write_many, &workers[i]), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(workers); i++) pthread_join(workers[i].thread, NULL);
    struct store_load load = session_load("s0");
    load.runs_max = 1000;
    load = fixture_load(f, load);
    assert_int_equal(load.section_count, 3 * ((THREAD_WRITES + 6) / 7));
    arena_free(load.arena);
}

/* --- questions ---------------------------------------------------------------------------- */

static void the_runs_of_a_session_are_listed_whatever_their_size_and_state(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    struct store_load load = session_load("s");
    load.question = STORE_SESSION_RUNS;
    assert_answer(f, load, "");
    for (uint64_t run = 1; run <= 3; run++) fixture_write(f, whole_run(run, "s", "x"));
    struct row_text row;
    row_begin(&row);
    row_section(&row, 4, 1);
    row_event(&row, started("s"));
    fixture_write(f, row_end(&row, 4));
    load.max_bytes = 1;
    assert_answer(f, load, "1:0;2:0;3:0;4:0");
    load.runs_max = 2;
    assert_answer(f, load, "3:0;4:0 +");
}

static void a_session_is_cut_at_whole_runs_newest_kept(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    for (uint64_t run = 1; run <= 4; run++) fixture_write(f, whole_run(run, "s", "x"));
    struct store_load load = session_load("s");
    load.runs_max = 2;
    assert_answer(f, load, "3:1 started x done;4:1 started x done +");
    load.runs_max = 4;
    assert_answer(f, load,
                  "1:1 started x done;2:1 started x done;3:1 started x done;"
                  "4:1 started x done");
    load.runs_max = 0;
    assert_answer(f, load, " +");
    struct store_load whole = fixture_load(f, session_load("s"));
    size_t one_bytes = whole.sections[0].events.len;
    arena_free(whole.arena);
    for (size_t max_bytes = 0; max_bytes <= 4 * one_bytes; max_bytes++) {
        load = session_load("s");
        load.max_bytes = max_bytes;
        load = fixture_load(f, load);
        size_t fit = max_bytes < one_bytes ? 1 : max_bytes / one_bytes; /* the newest always */
        assert_int_equal(load.section_count, fit);
        assert_int_equal(load.more, fit < 4);
        arena_free(load.arena);
    }
}

/* Read run 7 to its end. Its events say their numbers. `place`: where each page is said to begin;
 * SIZE_MAX: where the one before it ended. */
static void read_in_pages(struct fixture *f, size_t max_bytes, size_t place, uint64_t last) {
    size_t ended = 0;
    uint64_t next = 1;
    bool more = true;
    while (more) {
        struct store_load load = run_load(7, next - 1);
        load.max_bytes = max_bytes;
        load.place = place == SIZE_MAX ? ended : place;
        load = fixture_load(f, load);
        assert_true(load.section_count > 0);
        for (size_t i = 0; i < load.section_count; i++) {
            struct str rest = load.sections[i].events;
            assert_int_equal(load.sections[i].first_seq, next);
            while (rest.len) {
                struct event event = {0};
                struct err e;
                uint64_t says;
                assert_true(event_decode(&rest, &event, &e));
                assert_true(str_to_u64(event.text.text, &says));
                assert_int_equal(says, next++);
            }
        }
        more = load.more;
        ended = load.place;
        arena_free(load.arena);
    }
    assert_int_equal(next, last + 1);
}

static void a_run_can_be_read_in_pages_of_any_size(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    struct row_text row;
    uint64_t seq = 1, last = 40;
    while (seq <= last) {
        row_begin(&row);
        row_section(&row, 7, seq);
        for (int i = 0; i < 3 && seq <= last; i++, seq++) {
            char says[16];
            snprintf(says, sizeof(says), "%llu", (unsigned long long)seq);
            row_event(&row, text(says));
        }
        fixture_write(f, row_end(&row, seq % 2 ? 7 : 0));
    }
    /* However wrong the place is, nothing is missing. */
    static const size_t places[] = {0, SIZE_MAX, 1, 5, 12, 13, 14, 1000};
    for (size_t max_bytes = 0; max_bytes < 200; max_bytes += 7) {
        for (size_t i = 0; i < ARRAY_LEN(places); i++)
            read_in_pages(f, max_bytes, places[i], last);
    }
}

static void a_run_longer_than_its_list_of_places_is_read_whole(void **state) {
    struct fixture *f = *state;
    enum { ROWS = 4500 };
    f->durability = STORE_OFF;
    fixture_open(f);
    struct store_row *rows = mem_alloc(ROWS * sizeof(*rows));
    for (uint64_t i = 0; i < ROWS; i++) {
        struct row_text row;
        row_begin(&row);
        row_section(&row, 7, i + 1);
        row_event(&row, i == 0 ? started("s") : i == ROWS - 1 ? done() : text("x"));
        row_section(&row, 8, i + 1);
        row_event(&row, text("another"));
        rows[i] = row_end(&row, i % 2 ? 0 : 7);
    }
    for (size_t at = 0; at < ROWS; at += 500) assert_true(fixture_try_write(f, rows + at, 500));
    free(rows);
    for (uint64_t after = 0; after <= ROWS; after += 250) {
        struct store_load load = fixture_load(f, run_load(7, after));
        assert_int_equal(load.section_count, ROWS - after);
        for (size_t i = 0; i < load.section_count; i++) {
            assert_int_equal(load.sections[i].first_seq, after + i + 1);
        }
        arena_free(load.arena);
    }
}

/* A row that says its text twice is shorter on disk, and no reader sees that. */
static void a_row_that_says_its_text_twice_takes_half_the_room(void **state) {
    struct fixture *f = *state;
    static const char piece[] = "and the water goes on over the weir ";
    struct row_text row;
    struct buf replies, reply, bytes;
    struct event end = done();
    buf_init(&reply, MIB);
    buf_init(&replies, MIB);
    buf_init(&bytes, MIB);
    row_begin(&row);
    row_section(&row, 1, 1);
    row_event(&row, started("s"));
    for (int i = 0; i < 60; i++) {
        row_event(&row, text(piece));
        buf_append(&reply, str_from(piece));
    }
    event_turn_append(&replies, STR("manager"), buf_str(&reply));
    end.done.turns = buf_str(&replies);
    row_event(&row, end);
    buf_append(&bytes, buf_str(&row.events));
    fixture_open(f);
    fixture_write(f, row_end(&row, 1));
    for (int life = 0; life < 2; life++) {
        struct store_load load = fixture_load(f, session_load("s"));
        assert_int_equal(load.section_count, 1);
        assert_true(str_equal(load.sections[0].events, buf_str(&bytes)));
        arena_free(load.arena);
        load = fixture_load(f, run_load(1, 60));
        assert_int_equal(load.section_count, 1);
        assert_int_equal(load.sections[0].first_seq, 61);
        assert_true(str_ends(buf_str(&bytes), load.sections[0].events));
        arena_free(load.arena);
        fixture_close(f);
        fixture_open(f);
    }
    fixture_close(f);
    assert_true(bytes.len > 5000);
    assert_sql(f, "SELECT count(*) FROM log WHERE length(bytes) < 2800", "1 ");
    buf_done(&reply);
    buf_done(&replies);
    buf_done(&bytes);
}

static void unfinished_runs_are_listed_with_their_last_number(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    struct row_text row;
    for (uint64_t run = 1; run <= 3; run++) {
        row_begin(&row);
        row_section(&row, run, 1);
        row_event(&row, started("s"));
        fixture_write(f, row_end(&row, run));
    }
    row_begin(&row);
    row_section(&row, 3, 2);
    row_event(&row, text("a"));
    row_event(&row, text("b"));
    row_section(&row, 1, 2);
    row_event(&row, text("c"));
    fixture_write(f, row_end(&row, 0));
    row_begin(&row);
    row_section(&row, 2, 2);
    row_event(&row, (struct event){.kind = EVENT_CANCELLED});
    fixture_write(f, row_end(&row, 2));
    fixture_close(f);
    fixture_open(f);
    struct store_load load = fixture_load(f, (struct store_load){.question = STORE_UNFINISHED});
    assert_int_equal(load.section_count, 2);
    assert_int_equal(load.sections[0].run, 1);
    assert_int_equal(load.sections[0].first_seq, 2);
    assert_int_equal(load.sections[1].run, 3);
    assert_int_equal(load.sections[1].first_seq, 3);
    arena_free(load.arena);
}

/* --- projections -------------------------------------------------------------------------- */

static struct event usage(const char *model, int64_t prompt, int64_t total, int64_t at_ms) {
    return (struct event){.kind = EVENT_USAGE,
                          .at_ms = at_ms,
                          .agent = STR("manager"),
                          .usage = {.model = str_from(model),
                                    .prompt = prompt,
                                    .completion = 1,
                                    .total = total,
                                    .tool_use = TOKENS_UNKNOWN,
                                    .thoughts = 0,
                                    .cached = TOKENS_UNKNOWN}};
}

/* K21: unknown counts are counted, never added. */
static void usage_is_summed_by_day_and_unknown_counts_apart(void **state) {
    struct fixture *f = *state;
    fixture_open(f);
    struct row_text row;
    row_begin(&row);
    row_section(&row, 1, 1);
    row_event(&row, started("s"));
    row_event(&row, usage("a", 10, 11, 1));
    fixture_write(f, row_end(&row, 1));
    assert_answer(f, run_load(1, 2), "");
    row_begin(&row);
    row_section(&row, 1, 3);
    row_event(&row, usage("a", TOKENS_UNKNOWN, 5, 2));
    row_event(&row, usage("a", 1, INT64_MAX, 86400000));
    row_event(&row, usage("a", 1, INT64_MAX, 86400000));
    row_event(&row, usage("b", 1, 2, 3));
    fixture_write(f, row_end(&row, 0));
    fixture_close(f);
    assert_sql(f,
               "SELECT CAST(workspace AS TEXT), CAST(agent AS TEXT), CAST(model AS TEXT), day,"
               " calls, prompt, completion, total, tool_use, thoughts, cached, prompt_unknown,"
               " completion_unknown, total_unknown, tool_use_unknown, thoughts_unknown,"
               " cached_unknown FROM usage ORDER BY model, day",
               "w manager a 19675 2 10 2 16 0 0 0 1 0 0 2 0 2 "
               "w manager a 19676 2 2 2 9223372036854775807 0 0 0 0 0 0 2 0 2 "
               "w manager b 19675 1 1 1 2 0 0 0 0 0 0 1 0 1 ");
}

static const char dump[] =
    "SELECT hex(workspace), hex(user), hex(name), newest_run FROM session ORDER BY id;"
    "SELECT id, session, previous, parent, state, hex(contract), started_ms, ended_ms,"
    " first_log, last_log, last_seq, hex(places) FROM run ORDER BY id;"
    "SELECT hex(model), day, calls, prompt, prompt_unknown FROM usage ORDER BY model, day";

static void collect(const struct fixture *f, struct buf *ret) {
    char path[96];
    sqlite3 *db;
    snprintf(path, sizeof(path), "%s/weir.db", f->folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, dump, fixture_column, ret, NULL), SQLITE_OK);
    sqlite3_close(db);
    buf_append_byte(ret, '\0');
}

static void tables_that_were_emptied_are_filled_again_from_the_log(void **state) {
    FIXTURE_SQLITE_ONLY();
    struct fixture *f = *state;
    f->durability = STORE_NORMAL;
    fixture_open(f);
    for (uint64_t run = 1; run <= 1500; run++) {
        char session[16];
        snprintf(session, sizeof(session), "s%d", (int)(run % 13));
        struct row_text row;
        row_begin(&row);
        row_section(&row, run, 1);
        row_event(&row, started(session));
        row_event(&row, usage("a", (int64_t)run, -1, 1));
        if (run % 3) row_event(&row, done());
        if (run > 5) {
            row_section(&row, run - 5, 4);
            row_event(&row, usage("b", 1, 1, 1));
        }
        fixture_write(f, row_end(&row, run));
    }
    fixture_close(f);
    struct buf before, after;
    buf_init(&before, 16 * MIB);
    buf_init(&after, 16 * MIB);
    collect(f, &before);
    fixture_sql(f, "DELETE FROM session; DELETE FROM run; DELETE FROM usage;"
                   "UPDATE meta SET value = 0 WHERE name = 'projected'");
    fixture_open(f);
    assert_answer(f, session_load("nobody"), "");
    struct store_load load = fixture_load(f, session_load("s1"));
    assert_true(load.section_count > 50);
    arena_free(load.arena);
    fixture_close(f);
    collect(f, &after);
    assert_string_equal(before.at, after.at);
    buf_done(&before);
    buf_done(&after);
}

/* Among many that are written together: the first start counts, and the others are there. */
static void a_run_that_starts_again_changes_nothing(void **state) {
    FIXTURE_SQLITE_ONLY();
    struct fixture *f = *state;
    enum { COUNT = 50 };
    fixture_open(f);
    fixture_write(f, whole_run(5, "first", "x"));
    fixture_write(f, whole_run(40, "first", "y"));
    fixture_close(f);
    fixture_open(f);
    struct store_row rows[COUNT];
    for (uint64_t i = 0; i < COUNT; i++) rows[i] = whole_run(i + 1, "second", "z");
    assert_true(fixture_try_write(f, rows, COUNT));
    assert_answer(f, session_load("first"), "5:1 started x done;40:1 started y done");
    fixture_close(f);
    assert_sql(f, "SELECT count(*), sum(first_log = 1), sum(first_log = 2) FROM run",
               "50 1 1 ");
}

static void sessions_of_an_earlier_start_are_known_again(void **state) {
    struct fixture *f = *state;
    enum { COUNT = 2500 };
    f->durability = STORE_OFF;
    fixture_open(f);
    struct store_row *rows = mem_alloc(COUNT * sizeof(*rows));
    for (uint64_t i = 0; i < COUNT; i++) {
        char session[16];
        snprintf(session, sizeof(session), "s%d", (int)i);
        rows[i] = whole_run(i + 1, session, "x");
    }
    assert_true(fixture_try_write(f, rows, COUNT));
    free(rows);
    fixture_close(f);
    fixture_open(f);
    for (uint64_t i = 0; i < COUNT; i += 50) {
        char session[16], expected[64];
        snprintf(session, sizeof(session), "s%d", (int)i);
        snprintf(expected, sizeof(expected), "%d:1 started x done", (int)i + 1);
        assert_answer(f, session_load(session), expected);
        assert_answer(f, session_load("nobody"), "");
    }
}

/* T8 */
static void texts_of_any_bytes_come_back_as_they_were(void **state) {
    struct fixture *f = *state;
    static const struct str pieces[] = {
        STR_INIT("'"),
        STR_INIT("''"),
        STR_INIT("\""),
        STR_INIT(";"),
        STR_INIT("--"),
        STR_INIT("/*"),
        STR_INIT("\\"),
        STR_INIT("%"),
        STR_INIT("_"),
        STR_INIT("\0"),
        STR_INIT("\n"),
        STR_INIT("\xFF"),
        STR_INIT("\xC3"),
        STR_INIT("?1"),
        STR_INIT(":a"),
        STR_INIT("$x"),
        STR_INIT("NULL"),
        STR_INIT("0x41"),
        STR_INIT("1 OR 1=1"),
        STR_INIT("`"),
        STR_INIT("{\"a\":"),
        STR_INIT("\xE2\x80\xAE"),
        STR_INIT("DROP TABLE log"),
    };
    enum { COUNT = 2000 };
    f->durability = STORE_NORMAL;
    fixture_open(f);
    unsigned random = 12345;
    for (uint64_t run = 1; run <= COUNT; run++) {
        struct buf key;
        buf_init(&key, 4096);
        for (int i = 0; i < 4; i++) {
            random = random * 1103515245 + 12345;
            buf_append(&key, pieces[(random >> 16) % ARRAY_LEN(pieces)]);
        }
        struct str all = buf_str(&key);
        size_t third = all.len / 3;
        struct event event = started("");
        event.agent = all;
        event.started.workspace = str_head(all, third);
        event.started.user = str_head(str_skip(all, third), third);
        event.started.session = all;
        event.started.text = all;
        event.started.contract = all;
        struct event use = usage("", 1, 1, 1), end = done();
        use.agent = use.usage.model = end.done.model = all;
        struct row_text row;
        row_begin(&row);
        row_section(&row, run, 1);
        row_event(&row, event);
        row_event(&row, use);
        row_event(&row, end);
        fixture_write(f, row_end(&row, run));
        struct store_load load = session_load("");
        load.workspace = event.started.workspace;
        load.user = event.started.user;
        load.session = all;
        load.runs_max = 1;
        load = fixture_load(f, load);
        assert_int_equal(load.section_count, 1);
        assert_int_equal(load.sections[0].run, run);
        struct str rest = load.sections[0].events;
        struct event back = {0};
        struct err e;
        assert_true(event_decode(&rest, &back, &e));
        assert_true(str_equal(back.started.workspace, event.started.workspace));
        assert_true(str_equal(back.started.user, event.started.user));
        assert_true(str_equal(back.started.session, all));
        assert_true(str_equal(back.started.text, all));
        assert_true(str_equal(back.started.contract, all));
        assert_true(str_equal(back.agent, all));
        arena_free(load.arena);
        buf_done(&key);
    }
    fixture_close(f);
    assert_sql(f,
               "SELECT count(*), sum(name = (SELECT contract FROM run WHERE session ="
               " session.id)) = count(*) FROM run JOIN session ON session.id = session",
               "2000 1 ");
}

/* --- opening ------------------------------------------------------------------------------ */

static void a_second_store_on_the_folder_is_refused_with_the_process_id(void **state) {
    FIXTURE_SQLITE_ONLY();
    struct fixture *f = *state;
    fixture_open(f);
    fixture_write(f, whole_run(1, "s", "x"));
    struct fixture second = {.loop = loop_new()};
    memcpy(second.folder, f->folder, sizeof(second.folder));
    assert_false(fixture_try_open(&second));
    assert_int_equal(second.failed.code, ERR_FAILED_PRECONDITION);
    char pid[32];
    snprintf(pid, sizeof(pid), "process %ld", (long)getpid());
    assert_non_null(strstr(second.failed.text, pid));
    assert_non_null(strstr(second.failed.text, f->folder));
    /* What is asked of a store that never opened fails the same way. */
    struct store_row row = whole_run(2, "s", "x");
    assert_false(fixture_try_write(&second, &row, 1));
    assert_int_equal(second.failed.code, ERR_FAILED_PRECONDITION);
    struct store_load load = session_load("s");
    assert_false(fixture_try_load(&second, &load));
    assert_int_equal(second.failed.code, ERR_FAILED_PRECONDITION);
    arena_free(load.arena);
    fixture_close(&second);
    loop_free(second.loop);
    fixture_write(f, whole_run(3, "s", "x"));
    assert_answer(f, session_load("s"), "1:1 started x done;3:1 started x done");
}

static void a_folder_that_cannot_be_made_is_refused(void **state) {
    FIXTURE_SQLITE_ONLY();
    struct fixture *f = *state;
    struct fixture other = {.loop = f->loop};
    snprintf(other.folder, sizeof(other.folder), "/proc/none/such");
    assert_false(fixture_try_open(&other));
    assert_int_equal(other.failed.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(other.failed.text, "/proc/none/such"));
    fixture_close(&other);
}

static void stop(void *ctx) {
    loop_stop(ctx);
}

static void a_store_may_be_closed_before_it_has_opened(void **state) {
    struct fixture *f = *state;
    fixture_begin(f);
    fixture_close(f);
    struct mail mail;
    loop_post(f->loop, &mail, stop, f->loop);
    loop_run(f->loop);
    fixture_open(f);
    assert_int_equal(store_epoch(f->store), 2);
}

static void on_waited(struct store_load *load, const struct err *failed, void *ctx) {
    (void)load;
    *(enum err_code *)ctx = failed ? failed->code : ERR_NONE;
}

static bool has_database(const struct fixture *f) {
    char path[96];
    snprintf(path, sizeof(path), "%s/weir.db", f->folder);
    return access(path, F_OK) == 0;
}

static void what_is_asked_before_a_store_begins_is_answered_when_it_is_open(void **state) {
    struct fixture *f = *state;
    enum err_code waited = ERR_INTERNAL;
    struct store_load load = session_load("s");
    load.home = f->loop;
    load.on_loaded = on_waited;
    load.ctx = &waited;
    fixture_new(f);
    store_load(f->store, &load);
    assert_false(has_database(f));
    store_begin(f->store);
    loop_run(f->loop); /* until on_open */
    assert_int_equal(f->failed.code, ERR_NONE);
    assert_answer(f, session_load("s"), ""); /* after it */
    assert_int_equal(waited, ERR_NONE);
    arena_free(load.arena);
}

static void a_store_that_never_began_refuses_what_waits_and_opens_nothing(void **state) {
    struct fixture *f = *state;
    enum err_code waited = ERR_INTERNAL;
    struct mail mail;
    struct store_load load = session_load("s");
    load.home = f->loop;
    load.on_loaded = on_waited;
    load.ctx = &waited;
    fixture_new(f);
    store_load(f->store, &load);
    fixture_close(f);
    loop_post(f->loop, &mail, stop, f->loop);
    loop_run(f->loop);
    assert_int_equal(waited, ERR_UNAVAILABLE);
    assert_false(has_database(f));
    arena_free(load.arena);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

/* Each with a commit of its own, so that their list takes more room than they do. */
static void a_run_of_a_million_short_pieces_is_read_in_parts(void **state) {
    struct fixture *f = *state;
    const struct event piece = {.kind = EVENT_TEXT, .text = {.text = STR_INIT("x")}};
    struct store_load load = run_load(7, 0);
    struct row_text row;
    uint64_t seq = 1;
    bool more = true;
    fixture_open(f);
    row_begin(&row);
    row_section(&row, 7, seq++);
    row_event(&row, started("s"));
    for (; seq <= 1200000; seq++) {
        row_section(&row, 7, seq);
        row_event(&row, piece);
    }
    fixture_write(f, row_end(&row, 7));
    for (uint64_t next = 1; more; arena_free(load.arena)) {
        load = run_load(7, next - 1);
        load.max_bytes = 16 * MIB;
        load = fixture_load(f, load);
        assert_true(load.section_count > 0);
        assert_int_equal(load.sections[0].first_seq, next);
        next += load.section_count;
        more = load.more;
        assert_int_equal(more, next < seq);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_is_acknowledged_is_found_at_once),
        TEST(an_empty_body_is_an_empty_answer),
        TEST(a_restart_finds_everything_and_raises_the_epoch),
        TEST(a_run_may_be_spread_over_rows_of_its_own_and_shared_ones),
        TEST(several_rows_are_written_as_one_piece),
        TEST(a_row_that_is_too_large_is_refused_alone),
        TEST(writes_that_wait_together_share_a_commit_and_are_answered_in_order),
        TEST(each_loop_gets_its_own_answers),
        TEST(the_runs_of_a_session_are_listed_whatever_their_size_and_state),
        TEST(a_session_is_cut_at_whole_runs_newest_kept),
        TEST(a_run_can_be_read_in_pages_of_any_size),
        TEST(a_run_of_a_million_short_pieces_is_read_in_parts),
        TEST(a_run_longer_than_its_list_of_places_is_read_whole),
        TEST(a_row_that_says_its_text_twice_takes_half_the_room),
        TEST(unfinished_runs_are_listed_with_their_last_number),
        TEST(usage_is_summed_by_day_and_unknown_counts_apart),
        TEST(tables_that_were_emptied_are_filled_again_from_the_log),
        TEST(a_run_that_starts_again_changes_nothing),
        TEST(sessions_of_an_earlier_start_are_known_again),
        TEST(texts_of_any_bytes_come_back_as_they_were),
        TEST(a_second_store_on_the_folder_is_refused_with_the_process_id),
        TEST(a_folder_that_cannot_be_made_is_refused),
        TEST(a_store_may_be_closed_before_it_has_opened),
        TEST(what_is_asked_before_a_store_begins_is_answered_when_it_is_open),
        TEST(a_store_that_never_began_refuses_what_waits_and_opens_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
