#include "fake/store_fake.h"

#include "base/mem.h"
#include "store/changes.h"
#include "store/long_reader.h"
#include "store/schema.h"

#include <assert.h>
#include <stdlib.h>

#define WAITING_MAX 64
#define ROWS_MAX 4096
#define DAY_MS INT64_C(86400000)

struct store {
    struct store_write *writes[WAITING_MAX];
    struct store_load *loads[WAITING_MAX];
    struct store_task *tasks[WAITING_MAX];
    size_t write_count, load_count, task_count, sent;
    struct database db; /* opened by the first task */
    bool at_once;
    enum err_code loses;
    struct store_row rows[ROWS_MAX];
    size_t row_count;
    struct bucket *bucket;
    struct changes *changes; /* NULL: it is not shared */
};

struct bucket *store_bucket(const struct store *store) {
    return store->bucket;
}

void fake_store_bucket(struct store *store, struct bucket *bucket) {
    store->bucket = bucket;
}

struct store *fake_store_new(void) {
    return MEM_NEW(struct store);
}

void fake_store_free(struct store *store) {
    if (!store) return;
    assert(store->write_count == 0 && store->load_count == 0 && store->task_count == 0);
    database_close(&store->db);
    changes_free(store->changes);
    for (size_t i = 0; i < store->row_count; i++) buf_done(&store->rows[i].bytes);
    free(store);
}

/* --- writes ------------------------------------------------------------------------------- */

static void tell_written(void *ctx) {
    struct store_write *write = ctx;
    write->on_written(write, write->failed.code ? &write->failed : NULL, write->ctx);
}

static void keep_rows(struct store *store, const struct store_write *write) {
    for (size_t i = 0; i < write->row_count; i++) {
        assert(store->row_count < ROWS_MAX && write->rows[i].bytes.len);
        struct store_row *row = &store->rows[store->row_count++];
        row->run = write->rows[i].run;
        buf_init(&row->bytes, write->rows[i].bytes.len);
        buf_append(&row->bytes, buf_str(&write->rows[i].bytes));
    }
}

void fake_store_put(struct store *store, uint64_t run, uint64_t first_seq, struct str events) {
    struct store_row *row = &store->rows[store->row_count++];
    assert(store->row_count <= ROWS_MAX);
    row->run = run;
    buf_init(&row->bytes, 32 * MIB);
    bool fits = store_section_append(&row->bytes, run, first_seq, events);
    assert(fits);
}

void fake_store_erase_all(struct store *store) {
    for (size_t i = 0; i < store->row_count; i++) buf_done(&store->rows[i].bytes);
    store->row_count = 0;
}

static void end_write(struct store *store, struct store_write *write, enum err_code code) {
    write->failed.code = ERR_NONE;
    if (code) {
        err_set(&write->failed, code, "the fake store was told to fail");
    } else {
        keep_rows(store, write);
    }
    loop_post(write->home, &write->mail, tell_written, write);
}

void store_write(struct store *store, struct store_write *write) {
    store->sent++;
    if (store->at_once) {
        end_write(store, write, store->loses);
        return;
    }
    assert(store->write_count < WAITING_MAX);
    store->writes[store->write_count++] = write;
}

size_t fake_store_writes(const struct store *store) {
    return store->write_count;
}

const struct store_write *fake_store_write(const struct store *store, size_t index) {
    assert(index < store->write_count);
    return store->writes[index];
}

size_t fake_store_sent(const struct store *store) {
    return store->sent;
}

static void take_write(struct store *store, size_t index, enum err_code code) {
    assert(index < store->write_count);
    struct store_write *write = store->writes[index];
    store->write_count--;
    memmove(&store->writes[index], &store->writes[index + 1],
            (store->write_count - index) * sizeof(struct store_write *));
    end_write(store, write, code);
}

void fake_store_commit(struct store *store, size_t index) {
    take_write(store, index, ERR_NONE);
}

void fake_store_lose(struct store *store, size_t index, enum err_code code) {
    assert(code != ERR_NONE);
    take_write(store, index, code);
}

void fake_store_always_commit(struct store *store) {
    store->at_once = true;
    store->loses = ERR_NONE;
}

void fake_store_always_lose(struct store *store, enum err_code code) {
    store->at_once = true;
    store->loses = code;
}

void fake_store_ask_me(struct store *store) {
    store->at_once = false;
}

/* --- loads -------------------------------------------------------------------------------- */

void store_load(struct store *store, struct store_load *load) {
    assert(store->load_count < WAITING_MAX);
    store->loads[store->load_count++] = load;
}

size_t fake_store_loads(const struct store *store) {
    return store->load_count;
}

static void tell_loaded(void *ctx) {
    struct store_load *load = ctx;
    load->on_loaded(load, load->failed.code ? &load->failed : NULL, load->ctx);
}

static struct store_load *take_load(struct store *store, size_t index) {
    assert(index < store->load_count);
    struct store_load *load = store->loads[index];
    store->load_count--;
    memmove(&store->loads[index], &store->loads[index + 1],
            (store->load_count - index) * sizeof(struct store_load *));
    load->failed.code = ERR_NONE;
    return load;
}

/* A walk through what was committed, section by section. */
struct walk {
    size_t row; /* of the section; counts from 1 */
    struct str rest;
    struct store_section section;
};

static bool walk_section(const struct store *store, struct walk *walk) {
    bool bad = false;
    while (!store_section_next(&walk->rest, &walk->section, &bad)) {
        assert(!bad);
        if (walk->row == store->row_count) return false;
        walk->rest = buf_str(&store->rows[walk->row++].bytes);
    }
    return true;
}

/* The next event of this run. */
static bool walk_event(const struct store *store, struct walk *walk, uint64_t run,
                       struct event *ret) {
    struct err e;
    while (walk->section.run != run || walk->section.events.len == 0 ||
           !event_decode(&walk->section.events, ret, &e)) {
        if (!walk_section(store, walk)) return false;
    }
    return true;
}

/* The first event of the next run, in the order in which the runs began. */
static bool walk_begun(const struct store *store, struct walk *walk, struct event *ret) {
    struct err e;
    while (walk_section(store, walk)) {
        struct str events = walk->section.events;
        if (walk->section.first_seq == 1 && event_decode(&events, ret, &e) &&
            ret->kind == EVENT_STARTED)
            return true;
    }
    return false;
}

static bool is_over(const struct store *store, uint64_t run) {
    struct walk walk = {0};
    struct event event = {0};
    bool over = false;
    while (walk_event(store, &walk, run, &event)) over |= event_is_terminal(event.kind);
    return over;
}

static void add_run(const struct store *store, struct store_load *load, uint64_t run) {
    struct walk walk = {0};
    while (walk_section(store, &walk)) {
        if (walk.section.run != run) continue;
        if (store->rows[walk.row - 1].run == 0) continue; /* shared rows are left out */
        walk.section.row = (int64_t)walk.row;
        load->sections[load->section_count++] = walk.section;
    }
}

static void walk_session(const struct store *store, struct store_load *load, bool ids_only) {
    struct walk walk = {0};
    struct event begun = {0};
    while (walk_begun(store, &walk, &begun)) {
        uint64_t run = walk.section.run;
        if (!str_equal(begun.started.workspace, load->workspace) ||
            !str_equal(begun.started.user, load->user) ||
            !str_equal(begun.started.session, load->session))
            continue;
        if (ids_only) {
            load->sections[load->section_count++] = (struct store_section){.run = run};
        } else if (is_over(store, run)) {
            add_run(store, load, run);
        }
    }
}

static void answer_session(const struct store *store, struct store_load *load) {
    walk_session(store, load, false);
}

static void answer_session_runs(const struct store *store, struct store_load *load) {
    walk_session(store, load, true);
}

/* Leave out events up to after_seq and events that do not fit; one event always does. */
static void cut_section(struct store_load *load, size_t *used, struct store_section section) {
    struct str rest = section.events;
    struct event event = {0};
    struct err e;
    while (section.first_seq <= load->after_seq && rest.len &&
           event_decode(&rest, &event, &e)) {
        section.events = rest;
        section.first_seq++;
    }
    size_t kept = 0;
    for (rest = section.events; rest.len && event_decode(&rest, &event, &e);) {
        size_t len = section.events.len - rest.len;
        load->more = *used + len > load->max_bytes && *used + kept > 0;
        if (load->more) break;
        kept = len;
    }
    section.events = str_head(section.events, kept);
    *used += kept;
    if (kept) load->sections[load->section_count++] = section;
}

static void answer_run(const struct store *store, struct store_load *load) {
    struct walk walk = {0};
    size_t used = 0;
    bool known = false;
    while (!load->more && walk_section(store, &walk)) {
        if (walk.section.run != load->run) continue;
        known = true;
        cut_section(load, &used, walk.section);
    }
    load->open = known && !is_over(store, load->run);
}

static void note_unfinished(struct store_load *load, const struct store_section *section) {
    struct str rest = section->events;
    struct event event = {0};
    struct err e;
    size_t at = 0, last = 0;
    while (rest.len && event_decode(&rest, &event, &e)) last++;
    while (at < load->section_count && load->sections[at].run != section->run) at++;
    if (event_is_terminal(event.kind)) {
        if (at < load->section_count)
            load->sections[at] = load->sections[--load->section_count];
        return;
    }
    if (at == load->section_count) load->section_count++;
    load->sections[at] =
        (struct store_section){.run = section->run, .first_seq = section->first_seq + last - 1};
}

static void answer_unfinished(const struct store *store, struct store_load *load) {
    struct walk walk = {0};
    while (walk_section(store, &walk)) {
        note_unfinished(load, &walk.section);
        if (walk.section.run > load->newest_run) load->newest_run = walk.section.run;
    }
}

/* One entry a call, which adds up to the same. A run's first row says whose it is. */
static void add_usage(struct store_load *load, const struct event *event, struct str workspace,
                      int64_t started_ms) {
    int64_t day = (started_ms + event->at_ms) / DAY_MS;
    const struct event_usage *said = &event->usage;
    if (!load->all_workspaces && !str_equal(workspace, load->workspace)) return;
    if (day < load->from_day || day > load->to_day) return;
    load->usages[load->usage_count++] =
        (struct store_usage){.workspace = workspace,
                             .agent = event->agent,
                             .day = day,
                             .calls = 1,
                             .tokens_unknown = said->total < 0,
                             .cost_unknown = said->cost_nano < 0,
                             .sums = {.model = said->model,
                                      .total = said->total < 0 ? 0 : said->total,
                                      .cost_nano = said->cost_nano < 0 ? 0 : said->cost_nano}};
}

static void answer_usage(const struct store *store, struct store_load *load) {
    struct walk runs = {0};
    struct event begun = {0};
    load->usages = arena_alloc(load->arena, ROWS_MAX * sizeof(struct store_usage));
    load->usage_count = 0;
    assert(load->usages);
    while (walk_begun(store, &runs, &begun)) {
        struct walk walk = {0};
        struct event event = {0};
        while (walk_event(store, &walk, runs.section.run, &event)) {
            if (event.kind == EVENT_USAGE)
                add_usage(load, &event, begun.started.workspace, begun.started.unix_ms);
        }
    }
}

/* How the run ended, as far as that decides about its key. */
static void read_end(const struct store *store, uint64_t run, struct store_key *ret) {
    struct walk walk = {0};
    struct event event = {0};
    while (walk_event(store, &walk, run, &event)) continue;
    ret->failed = event.kind == EVENT_FAILED;
    ret->left = event.kind == EVENT_CANCELLED && event.cancelled.left;
    ret->acted = (ret->failed && event.failed.acted) || (ret->left && event.cancelled.acted);
}

/* The newest run of each user's session of that name. */
static void answer_thread(const struct store *store, struct store_load *load) {
    struct walk walk = {0};
    struct event begun = {0};
    while (walk_begun(store, &walk, &begun)) {
        if (!str_equal(begun.started.session, load->session) ||
            !str_equal(begun.started.workspace, load->workspace) ||
            (load->user.at && !str_equal(begun.started.user, load->user)))
            continue;
        size_t at = 0;
        while (at < load->section_count &&
               !str_equal(load->sections[at].events, begun.started.user))
            at++;
        load->sections[at] =
            (struct store_section){.run = walk.section.run, .events = begun.started.user};
        if (at == load->section_count) load->section_count++;
    }
}

static void answer_key(const struct store *store, struct store_load *load) {
    struct walk walk = {0};
    struct event begun = {0};
    load->key_means = (struct store_key){.print = STR_EMPTY};
    while (walk_begun(store, &walk, &begun)) {
        if (!str_equal(begun.started.key, load->key) ||
            !str_equal(begun.started.user, load->user) ||
            !str_equal(begun.started.workspace, load->workspace))
            continue;
        load->key_means = (struct store_key){.run = walk.section.run,
                                             .started_ms = begun.started.unix_ms,
                                             .print = begun.started.print};
        read_end(store, walk.section.run, &load->key_means);
    }
}

void fake_store_answer(struct store *store, size_t index) {
    static void (*const answers[])(const struct store *store, struct store_load *load) = {
        [STORE_SESSION] = answer_session, [STORE_SESSION_RUNS] = answer_session_runs,
        [STORE_RUN] = answer_run,         [STORE_UNFINISHED] = answer_unfinished,
        [STORE_USAGE] = answer_usage,     [STORE_KEY] = answer_key,
        [STORE_THREAD] = answer_thread,
    };
    struct store_load *load = take_load(store, index);
    load->arena = arena_new(16 * MIB);
    load->sections = arena_alloc(load->arena, ROWS_MAX * sizeof(struct store_section));
    assert(load->sections);
    load->section_count = 0;
    load->more = false;
    answers[load->question](store, load);
    loop_post(load->home, &load->mail, tell_loaded, load);
}

void fake_store_refuse(struct store *store, size_t index, enum err_code code) {
    struct store_load *load = take_load(store, index);
    err_set(&load->failed, code, "the fake store was told not to answer");
    loop_post(load->home, &load->mail, tell_loaded, load);
}

/* --- tasks -------------------------------------------------------------------------------- */

static void open_tables(struct store *store) {
    struct err e;
    if (store->db.handle) return;
    bool ok = database_open(&store->db, ":memory:", &e) && schema_migrate(&store->db, 0, &e);
    assert(ok);
    (void)ok;
}

static void tell_done(void *ctx) {
    struct store_task *task = ctx;
    task->on_done(task->failed.code ? &task->failed : NULL, task->ctx);
}

/* Twice where the first commit would have failed: a task must bear that. */
static bool run_twice(struct store *store, struct store_task *task) {
    struct err e;
    struct database *db = &store->db;
    for (int attempt = 0; attempt < 2; attempt++) {
        bool ok = database_run(db, "BEGIN", &e) && task->fn(db, task->ctx, &e);
        if (!ok || attempt == 0) database_rollback(db);
        if (!ok) break;
        if (attempt == 1) return database_run(db, "COMMIT", &task->failed);
    }
    task->failed = e;
    return false;
}

static void end_task(struct store *store, struct store_task *task, enum err_code code) {
    task->failed.code = ERR_NONE;
    if (code) {
        err_set(&task->failed, code, "the fake store was told to fail");
    } else {
        open_tables(store);
        bool ok = run_twice(store, task);
        (void)ok; /* said in `failed` */
    }
    loop_post(task->home, &task->mail, tell_done, task);
}

uint64_t store_epoch(const struct store *store) {
    (void)store;
    return 1;
}

void store_run(struct store *store, struct loop *home, struct store_task *task, void *ctx) {
    task->home = home;
    task->ctx = ctx;
    if (store->at_once) {
        end_task(store, task, store->loses);
        return;
    }
    assert(store->task_count < WAITING_MAX);
    store->tasks[store->task_count++] = task;
}

static void tell_answered(void *ctx) {
    struct long_reader_task *task = ctx;
    task->on_done(task->failed.code ? &task->failed : NULL, task->ctx);
}

bool store_is_server(const struct store *store) {
    (void)store;
    return false;
}

bool store_is_shared(const struct store *store) {
    return store->changes != NULL;
}

size_t store_living(const struct store *store) {
    return store->changes ? 2 : 1;
}

unsigned store_slot(const struct store *store) {
    (void)store;
    return 0;
}

struct changes *store_changes(struct store *store) {
    return store->changes;
}

/* PostgreSQL's; by this one all have time left. */
static void clock_timestamp(sqlite3_context *context, int count, sqlite3_value **values) {
    (void)count, (void)values;
    sqlite3_result_int(context, 0);
}

void fake_store_share(struct store *store) {
    struct err e;
    open_tables(store);
    store->db.replica = 1; /* as store_epoch() says */
    sqlite3_create_function(store->db.handle, "clock_timestamp", 0, SQLITE_UTF8, NULL,
                            clock_timestamp, NULL, NULL);
    bool ok = database_run(&store->db,
                           "CREATE TABLE replica(id INTEGER PRIMARY KEY, name BLOB,"
                           " until INTEGER, fenced INTEGER);"
                           "INSERT INTO replica VALUES(1, 'this', 1, 0), (2, 'other', 1, 0);"
                           "CREATE TABLE lease(key BLOB PRIMARY KEY, holder INTEGER NOT NULL);"
                           "ALTER TABLE log ADD COLUMN replica INTEGER NOT NULL DEFAULT 0;"
                           "CREATE TABLE place(run INTEGER PRIMARY KEY, workspace BLOB,"
                           " holder INTEGER);"
                           "CREATE TABLE moved(run INTEGER PRIMARY KEY, holder INTEGER);"
                           "CREATE TABLE posted(sender INTEGER, number INTEGER, run INTEGER,"
                           " seq INTEGER, words BLOB, key BLOB, key_user BLOB, print BLOB,"
                           " taken INTEGER NOT NULL DEFAULT 0, refused BLOB,"
                           " refusal INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(sender, number));"
                           "CREATE TABLE slot(place INTEGER PRIMARY KEY, holder INTEGER,"
                           " number INTEGER, pool BLOB, app BLOB, background INTEGER,"
                           " held INTEGER NOT NULL DEFAULT 0, UNIQUE(holder, number));"
                           "CREATE TABLE cancelling(run INTEGER PRIMARY KEY, why BLOB);"
                           "CREATE TABLE fact(number INTEGER PRIMARY KEY, kind INTEGER,"
                           " until_ms INTEGER, bytes BLOB, name BLOB, caller BLOB, app BLOB,"
                           " size INTEGER);"
                           "CREATE TABLE once_reply(key BLOB PRIMARY KEY, print BLOB,"
                           " holder INTEGER, number INTEGER, until_ms INTEGER, bytes BLOB,"
                           " caller BLOB, app BLOB, size INTEGER NOT NULL DEFAULT 0)",
                           &e);
    assert(ok);
    (void)ok;
    store->changes = changes_new();
}

void fake_store_sql(struct store *store, const char *sql) {
    struct err e;
    bool ok = database_run(&store->db, sql, &e);
    assert(ok);
    (void)ok;
}

/* At once, all steps of it. */
void store_ask(struct store *store, struct long_reader_task *task) {
    bool more = true, ok = true;
    task->failed.code = ERR_NONE;
    open_tables(store);
    while (ok && more) ok = task->step(&store->db, task->ctx, &more, &task->failed);
    loop_post(task->home, &task->mail, tell_answered, task);
}

int64_t fake_store_number(struct store *store, const char *sql) {
    int64_t number = -1;
    struct err e;
    open_tables(store);
    bool ok = database_number(&store->db, sql, &number, &e);
    assert(ok);
    (void)ok;
    return number;
}

size_t fake_store_tasks(const struct store *store) {
    return store->task_count;
}

static struct store_task *take_task(struct store *store, size_t index) {
    assert(index < store->task_count);
    struct store_task *task = store->tasks[index];
    store->task_count--;
    memmove(&store->tasks[index], &store->tasks[index + 1],
            (store->task_count - index) * sizeof(struct store_task *));
    return task;
}

void fake_store_run(struct store *store, size_t index) {
    end_task(store, take_task(store, index), ERR_NONE);
}

void fake_store_fail(struct store *store, size_t index, enum err_code code) {
    assert(code != ERR_NONE);
    end_task(store, take_task(store, index), code);
}
