/* fixture: a store in a folder of its own, asked and answered in turn.
 *
 * With WEIR_TEST_POSTGRES it is in a schema of its own of that server (test/e2e/postgres.py); a
 * test that looks into SQLite's file skips itself then.
 *
 * Every helper runs the loop until its answer has come, so a test reads from top to bottom.
 */
#ifndef WEIR_TEST_STORE_FIXTURE_H
#define WEIR_TEST_STORE_FIXTURE_H

#include "base/mem.h"
#include "helper/test_folder.h"
#include "store/schema_postgres.h"
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these four first. */
#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the steps of the schema after 8 did, undone. */
#define FIXTURE_BACK_TO_8                                                                      \
    "DROP TABLE artifact_object; DROP TABLE object_doomed;"                                    \
    "DROP TABLE bank_vector; DROP TABLE bank_space;"                                           \
    "DROP TABLE agent; DROP TABLE bank_words; DROP TABLE bank_record; DROP TABLE bank;"        \
    "DROP TABLE event_log_entry; DROP TABLE event_log;"                                        \
    "ALTER TABLE keyed DROP COLUMN seq;"                                                       \
    "ALTER TABLE usage DROP COLUMN estimated;"                                                 \
    "ALTER TABLE usage DROP COLUMN estimate_tokens;"                                           \
    "ALTER TABLE usage DROP COLUMN estimate_cost_nano;"                                        \
    "DROP TABLE kept; DROP TABLE download;"                                                    \
    "DROP TABLE audit; DELETE FROM meta WHERE name IN ('audit', 'usage');"                     \
    "DROP TABLE usual;"                                                                        \
    "DROP TABLE artifact_token;"                                                               \
    "ALTER TABLE memory RENAME COLUMN created_us TO created_ms;"                               \
    "ALTER TABLE memory RENAME COLUMN updated_us TO updated_ms;"

#define FIXTURE_REPLICAS_MAX 8

struct fixture {
    char folder[64];
    char schema[32]; /* of PostgreSQL; empty: SQLite */
    struct loop *loop;
    struct store *store;
    struct store *replicas[FIXTURE_REPLICAS_MAX]; /* those that are open; replicas.h */
    struct err failed; /* of what was asked last; code ERR_NONE when it went well */
    enum store_durability durability;
    uint64_t doubt_ms;
    void (*at_step)(const char *step, void *ctx);
};

static struct str fixture_postgres(void) {
    return str_from(getenv("WEIR_TEST_POSTGRES")); /* NOLINT(concurrency-mt-unsafe) */
}

/* Tests of what only SQLite's store has begin with this. */
#define FIXTURE_SQLITE_ONLY()                                                                  \
    if (fixture_postgres().len) skip()

/* Run SQL on the server, after the tables are there. */
static void fixture_postgres_run(struct fixture *f, const char *sql) {
    struct database db = {0};
    struct err e;
    int64_t from;
    const struct postgres_session_options options = {
        .url = fixture_postgres(), .schema = str_from(f->schema), .timeout_ms = 20000};
    if (!database_open_postgres(&db, &options, &e) ||
        !schema_postgres_migrate(&db, str_from(f->schema), &from, &e) ||
        (sql && !database_run(&db, sql, &e)))
        fail_msg("%s", e.text);
    database_close(&db);
}

/* The closed store's database, as another program would open it. */
__attribute__((unused)) static void fixture_database(const struct fixture *f,
                                                     struct database *ret) {
    char path[96];
    struct err e;
    *ret = (struct database){0};
    snprintf(path, sizeof(path), "%s/weir.db", f->folder);
    const struct postgres_session_options options = {
        .url = fixture_postgres(), .schema = str_from(f->schema), .timeout_ms = 20000};
    bool ok =
        f->schema[0] ? database_open_postgres(ret, &options, &e) : database_open(ret, path, &e);
    if (!ok) fail_msg("%s", e.text);
}

static void fixture_postgres_begin(struct fixture *f) {
    static unsigned count;
    if (fixture_postgres().len == 0) return;
    snprintf(f->schema, sizeof(f->schema), "t%d_%u", (int)getpid(), ++count);
    fixture_postgres_run(f, NULL);
}

static void fixture_postgres_end(struct fixture *f) {
    char sql[80];
    if (!f->schema[0]) return;
    snprintf(sql, sizeof(sql), "DROP SCHEMA %s CASCADE", f->schema);
    fixture_postgres_run(f, sql);
}

__attribute__((unused)) static void fixture_init(struct fixture *f) {
    *f = (struct fixture){.durability = STORE_FULL};
    test_folder_make(f->folder);
    fixture_postgres_begin(f);
    f->loop = loop_new();
}

static void fixture_opened(const struct err *failed, void *ctx) {
    struct fixture *f = ctx;
    f->failed.code = ERR_NONE;
    if (failed) f->failed = *failed;
    loop_stop(f->loop);
}

/* One that opens nothing before store_begin(). */
__attribute__((unused)) static void fixture_new(struct fixture *f) {
    struct store_options options = {
        .folder = str_from(f->folder),
        .postgres = fixture_postgres(),
        .schema = str_from(f->schema),
        .durability = f->durability,
        .doubt_ms = f->doubt_ms,
        .loop = f->loop,
        .on_open = fixture_opened,
        .ctx = f,
        .at_step = f->at_step,
    };
    f->store = store_new(&options);
}

__attribute__((unused)) static void fixture_begin(struct fixture *f) {
    fixture_new(f);
    store_begin(f->store);
}

/* False: it was refused, and f->failed says why. */
__attribute__((unused)) static bool fixture_try_open(struct fixture *f) {
    fixture_begin(f);
    loop_run(f->loop);
    return f->failed.code == ERR_NONE;
}

__attribute__((unused)) static void fixture_open(struct fixture *f) {
    if (!fixture_try_open(f)) fail_msg("%s", f->failed.text);
}

__attribute__((unused)) static void fixture_close(struct fixture *f) {
    store_close(f->store);
    f->store = NULL;
}

/* A test that failed has left them open, and their threads would post to a loop that is gone. */
static void fixture_close_replicas(struct fixture *f) {
    for (size_t i = 0; i < FIXTURE_REPLICAS_MAX; i++) {
        if (f->store == f->replicas[i]) f->store = NULL;
        store_close(f->replicas[i]);
    }
}

__attribute__((unused)) static void fixture_done(struct fixture *f) {
    fixture_close_replicas(f);
    fixture_close(f);
    loop_free(f->loop);
    fixture_postgres_end(f);
    test_folder_remove(f->folder);
}

/* --- one for each test: cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)  */

/* Its store is not open yet. */
__attribute__((unused)) static int fixture_setup(void **state) {
    *state = MEM_NEW(struct fixture);
    fixture_init(*state);
    return 0;
}

__attribute__((unused)) static int fixture_setup_open(void **state) {
    fixture_setup(state);
    fixture_open(*state);
    return 0;
}

__attribute__((unused)) static int fixture_teardown(void **state) {
    fixture_done(*state);
    free(*state);
    return 0;
}

/* --- rows --------------------------------------------------------------------------------- */

struct row_text {
    struct buf bytes, events;
    uint64_t run, first_seq;
};

__attribute__((unused)) static void row_begin(struct row_text *row) {
    buf_init(&row->bytes, 80 * MIB);
    buf_init(&row->events, 80 * MIB);
}

__attribute__((unused)) static void row_section(struct row_text *row, uint64_t run,
                                                uint64_t first_seq) {
    if (row->events.len)
        assert_true(
            store_section_append(&row->bytes, row->run, row->first_seq, buf_str(&row->events)));
    buf_clear(&row->events);
    row->run = run;
    row->first_seq = first_seq;
}

__attribute__((unused)) static void row_event(struct row_text *row, struct event event) {
    assert_true(event_encode(&event, &row->events));
}

/* Close the last section; the bytes are whole now. */
__attribute__((unused)) static struct store_row row_end(struct row_text *row, uint64_t owner) {
    row_section(row, 0, 0);
    buf_done(&row->events);
    return (struct store_row){.run = owner, .bytes = row->bytes};
}

__attribute__((unused)) static struct event started(const char *session) {
    return (struct event){.kind = EVENT_STARTED,
                          .agent = STR("manager"),
                          .started = {.workspace = STR("w"),
                                      .user = STR("u"),
                                      .session = str_from(session),
                                      .text = STR("hello"),
                                      .contract = STR("cli"),
                                      .unix_ms = INT64_C(1700000000000)}};
}

__attribute__((unused)) static struct event text(const char *text) {
    return (struct event){
        .kind = EVENT_TEXT, .agent = STR("manager"), .text = {.text = str_from(text)}};
}

__attribute__((unused)) static struct event done(void) {
    return (struct event){.kind = EVENT_DONE, .at_ms = 5, .done = {.model = STR("m")}};
}

/* A whole run in one row: started, text, done. */
__attribute__((unused)) static struct store_row whole_run(uint64_t run, const char *session,
                                                          const char *says) {
    struct row_text row;
    row_begin(&row);
    row_section(&row, run, 1);
    row_event(&row, started(session));
    row_event(&row, text(says));
    row_event(&row, done());
    return row_end(&row, run);
}

/* --- asking ------------------------------------------------------------------------------- */

static void fixture_written(struct store_write *write, const struct err *failed, void *ctx) {
    (void)write;
    struct fixture *f = ctx;
    f->failed.code = ERR_NONE;
    if (failed) f->failed = *failed;
    loop_stop(f->loop);
}

/* Write the rows as one piece, and free them. */
__attribute__((unused)) static bool fixture_try_write(struct fixture *f, struct store_row *rows,
                                                      size_t count) {
    struct store_write write = {
        .rows = rows,
        .row_count = count,
        .home = f->loop,
        .on_written = fixture_written,
        .ctx = f,
    };
    store_write(f->store, &write);
    loop_run(f->loop);
    for (size_t i = 0; i < count; i++) buf_done(&rows[i].bytes);
    return f->failed.code == ERR_NONE;
}

__attribute__((unused)) static void fixture_write(struct fixture *f, struct store_row row) {
    if (!fixture_try_write(f, &row, 1)) fail_msg("%s", f->failed.text);
}

static void fixture_loaded(struct store_load *load, const struct err *failed, void *ctx) {
    (void)load;
    struct fixture *f = ctx;
    f->failed.code = ERR_NONE;
    if (failed) f->failed = *failed;
    loop_stop(f->loop);
}

__attribute__((unused)) static bool fixture_try_load(struct fixture *f,
                                                     struct store_load *load) {
    load->home = f->loop;
    load->on_loaded = fixture_loaded;
    load->ctx = f;
    store_load(f->store, load);
    loop_run(f->loop);
    return f->failed.code == ERR_NONE;
}

/* Free the answer with arena_free(load.arena). */
__attribute__((unused)) static struct store_load fixture_load(struct fixture *f,
                                                              struct store_load load) {
    if (!fixture_try_load(f, &load)) fail_msg("%s", f->failed.text);
    return load;
}

__attribute__((unused)) static struct store_load session_load(const char *session) {
    return (struct store_load){.question = STORE_SESSION,
                               .workspace = STR("w"),
                               .user = STR("u"),
                               .session = str_from(session),
                               .runs_max = 100,
                               .max_bytes = 1 * MIB};
}

__attribute__((unused)) static struct store_load run_load(uint64_t run, uint64_t after_seq) {
    return (struct store_load){
        .question = STORE_RUN, .run = run, .after_seq = after_seq, .max_bytes = 1 * MIB};
}

/* "run:seq text,text;run:seq text": what an answer holds, other kinds as their names. */
__attribute__((unused)) static void describe(const struct store_load *load, struct buf *ret) {
    for (size_t i = 0; i < load->section_count; i++) {
        struct str rest = load->sections[i].events;
        buf_printf(ret, "%s%llu:%llu", i ? ";" : "", (unsigned long long)load->sections[i].run,
                   (unsigned long long)load->sections[i].first_seq);
        while (rest.len) {
            struct event event = {0};
            struct err e;
            assert_true(event_decode(&rest, &event, &e));
            buf_append_byte(ret, ' ');
            buf_append(ret, event.kind == EVENT_TEXT ? event.text.text
                                                     : event_kind_name(event.kind));
        }
    }
    if (load->more) buf_append(ret, STR(" +"));
}

__attribute__((unused)) static void assert_answer(struct fixture *f, struct store_load load,
                                                  const char *expected) {
    load = fixture_load(f, load);
    struct buf seen;
    buf_init(&seen, 4 * MIB);
    describe(&load, &seen);
    buf_append_byte(&seen, '\0');
    assert_string_equal(seen.at, expected);
    buf_done(&seen);
    arena_free(load.arena);
}

/* Run SQL on the closed store's file, as another program would. */
__attribute__((unused)) static void fixture_sql(const struct fixture *f, const char *sql) {
    char path[96];
    sqlite3 *db;
    FIXTURE_SQLITE_ONLY();
    snprintf(path, sizeof(path), "%s/weir.db", f->folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    char *error = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK) fail_msg("%s", error);
    sqlite3_close(db);
}

static int fixture_column(void *ctx, int count, char **values, char **names) {
    (void)names;
    for (int i = 0; i < count; i++) buf_printf(ctx, "%s ", values[i] ? values[i] : "-");
    return 0;
}

/* All values that `sql` gives, each followed by a space. */
__attribute__((unused)) static void assert_sql(const struct fixture *f, const char *sql,
                                               const char *expected) {
    char path[96];
    sqlite3 *db;
    struct buf seen;
    FIXTURE_SQLITE_ONLY();
    buf_init(&seen, 4 * MIB);
    snprintf(path, sizeof(path), "%s/weir.db", f->folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, fixture_column, &seen, NULL), SQLITE_OK);
    sqlite3_close(db);
    buf_append_byte(&seen, '\0');
    assert_string_equal(seen.at, expected);
    buf_done(&seen);
}

#endif
