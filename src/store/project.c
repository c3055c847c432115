#include "store/project.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdlib.h>

#define BATCH_BYTES (4 * MIB)   /* of rows; at least one row is taken */
#define ARENA_BYTES (256 * MIB) /* more than the largest row and its keys can need */
#define DAY_MS INT64_C(86400000)
#define KEY_BYTES (64 * MIB)

/* --- opening ------------------------------------------------------------------------------ */

bool project_open(struct project *project, struct database *db, struct rows *rows,
                  struct runs *runs, struct known *known, struct err *e) {
    *project = (struct project){.db = db, .rows = rows, .runs = runs, .known = known};
    bool ok = database_prepare(db,
                               "SELECT id, newest_run FROM session"
                               " WHERE workspace = ? AND user = ? AND name = ?",
                               &project->session_find, e) &&
              database_prepare(db, "INSERT INTO session VALUES(?, ?, ?, ?, ?)",
                               &project->session_insert, e) &&
              database_prepare(db, "UPDATE session SET newest_run = ? WHERE id = ?",
                               &project->session_update, e) &&
              database_prepare(db, "SELECT max(id) FROM session", &project->session_last, e) &&
              usage_open(&project->usage, db, e) && key_open(&project->keys, db, e) &&
              database_prepare(db, "UPDATE meta SET value = ? WHERE name = 'projected'",
                               &project->note, e) &&
              database_number(db, "SELECT value FROM meta WHERE name = 'projected'",
                              &project->done, e);
    project->reached = project->done;
    return ok;
}

void project_close(struct project *project) {
    project_forget(project);
    sqlite3_finalize(project->session_find);
    sqlite3_finalize(project->session_insert);
    sqlite3_finalize(project->session_update);
    sqlite3_finalize(project->session_last);
    usage_close(&project->usage);
    key_close(&project->keys);
    sqlite3_finalize(project->note);
}

void project_keep(struct project *project) {
    project->done = project->reached;
}

void project_drop(struct project *project) {
    project->reached = project->done;
}

/* --- a batch: what some rows change ------------------------------------------------------- */

struct session_change {
    struct session_change *next;
    int64_t id;
    uint64_t newest;
    struct str workspace, user, name;
    bool fresh;
};

struct run_change {
    struct run_change *next;
    struct run_entry entry;
    struct session_change *session; /* set by an EVENT_STARTED of this batch */
    struct str key, print;          /* of the request, by the same event */
    bool fresh;                     /* not in the table yet */
};

/* A key that came with a human's answer. */
struct key_change {
    struct key_change *next;
    struct key_entry entry;
};

struct usage_change {
    struct usage_change *next;
    struct usage_sum sum;
};

struct batch {
    struct project *project;
    struct arena *arena;
    struct map *run_map, *session_map, *usage_map;
    struct run_change *runs, **last_run;
    struct session_change *sessions, **last_session;
    struct usage_change *usages;
    struct key_change *keys, **last_key; /* in their order: the newest counts */
    struct buf key;
    int64_t session_last; /* highest id given so far */
    int64_t reached;
    size_t bytes;
    bool enough;
};

static struct batch *batch_new(struct project *project) {
    struct batch *batch = MEM_NEW(struct batch);
    *batch = (struct batch){
        .project = project,
        .arena = arena_new(ARENA_BYTES),
        .run_map = map_new(),
        .session_map = map_new(),
        .usage_map = map_new(),
        .reached = project->reached,
    };
    batch->last_run = &batch->runs;
    batch->last_session = &batch->sessions;
    batch->last_key = &batch->keys;
    buf_init(&batch->key, KEY_BYTES);
    return batch;
}

static void batch_free(struct batch *batch) {
    if (!batch) return;
    for (struct run_change *run = batch->runs; run; run = run->next) {
        run_entry_done(&run->entry);
    }
    buf_done(&batch->key);
    map_free(batch->run_map);
    map_free(batch->session_map);
    map_free(batch->usage_map);
    arena_free(batch->arena);
    free(batch);
}

static bool out_of_room(struct err *e) {
    return err_set(e, ERR_RESOURCE_EXHAUSTED, "store: the keys of one row take too much room");
}

static bool keep_text(struct batch *batch, struct str *text, struct err *e) {
    return arena_str(batch->arena, *text, text) || out_of_room(e);
}

/* Texts of any bytes as one key: each behind its length. */
static void key_add(struct buf *key, struct str text) {
    uint64_t len = text.len;
    buf_append(key, str_of(&len, sizeof(len)));
    buf_append(key, text);
}

/* --- runs --------------------------------------------------------------------------------- */

static bool load_run(struct batch *batch, struct run_change *run, struct err *e) {
    bool found;
    if (!run_find(batch->project->runs, &run->entry, &found, e)) return false;
    run->fresh = !found;
    bool kept =
        keep_text(batch, &run->entry.workspace, e) && keep_text(batch, &run->entry.contract, e);
    run_release(batch->project->runs);
    return kept;
}

/* The gathered change of a run. One that begins here need not be looked for. */
static struct run_change *run_of(struct batch *batch, const struct store_section *section,
                                 struct err *e) {
    struct str key = str_of(&section->run, sizeof(section->run));
    struct run_change *run = map_find(batch->run_map, key);
    if (run) return run;
    run = ARENA_NEW(batch->arena, struct run_change);
    if (!run) {
        out_of_room(e);
        return NULL;
    }
    run_entry_init(&run->entry, section->run);
    run->fresh = true;
    *batch->last_run = run;
    batch->last_run = &run->next;
    if (section->first_seq > 1 && !load_run(batch, run, e)) return NULL;
    map_put(batch->run_map, key, run);
    return run;
}

/* --- sessions ----------------------------------------------------------------------------- */

bool project_session(struct project *project, struct str workspace, struct str user,
                     struct str name, int64_t *ret_id, uint64_t *ret_newest, struct err *e) {
    sqlite3_stmt *find = project->session_find;
    database_bind(find, 1, workspace);
    database_bind(find, 2, user);
    database_bind(find, 3, name);
    bool found, ok = database_row(project->db, find, &found, e);
    *ret_id = ok && found ? sqlite3_column_int64(find, 0) : 0;
    *ret_newest = ok && found ? (uint64_t)sqlite3_column_int64(find, 1) : 0;
    sqlite3_reset(find);
    return ok;
}

static bool next_session_id(struct batch *batch, int64_t *ret, struct err *e) {
    sqlite3_stmt *last = batch->project->session_last;
    if (batch->session_last == 0) {
        bool row, ok = database_row(batch->project->db, last, &row, e);
        if (ok && row) batch->session_last = sqlite3_column_int64(last, 0);
        sqlite3_reset(last);
        if (!ok) return false;
    }
    *ret = ++batch->session_last;
    return true;
}

static struct session_change *session_of(struct batch *batch, const struct event *event,
                                         struct err *e) {
    buf_clear(&batch->key);
    key_add(&batch->key, event->started.workspace);
    key_add(&batch->key, event->started.user);
    key_add(&batch->key, event->started.session);
    struct session_change *session = map_find(batch->session_map, buf_str(&batch->key));
    if (session) return session;
    session = ARENA_NEW(batch->arena, struct session_change);
    if (!session) {
        out_of_room(e);
        return NULL;
    }
    session->workspace = event->started.workspace;
    session->user = event->started.user;
    session->name = event->started.session;
    bool kept = keep_text(batch, &session->workspace, e) &&
                keep_text(batch, &session->user, e) && keep_text(batch, &session->name, e) &&
                project_session(batch->project, session->workspace, session->user,
                                session->name, &session->id, &session->newest, e);
    if (!kept) return NULL;
    session->fresh = session->id == 0;
    if (session->fresh && !next_session_id(batch, &session->id, e)) return NULL;
    known_add(batch->project->known, session->workspace, session->user, session->name);
    *batch->last_session = session;
    batch->last_session = &session->next;
    map_put(batch->session_map, buf_str(&batch->key), session);
    return session;
}

/* --- usage -------------------------------------------------------------------------------- */

static int64_t add(int64_t a, int64_t b) {
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int64_t day_of(const struct run_change *run, const struct event *event) {
    int64_t at_ms = add(run->entry.started_ms, event->at_ms);
    return at_ms >= 0 ? at_ms / DAY_MS : -1 - (-1 - at_ms) / DAY_MS;
}

static struct usage_change *usage_of(struct batch *batch, const struct run_change *run,
                                     const struct event *event, struct err *e) {
    int64_t day = day_of(run, event);
    buf_clear(&batch->key);
    key_add(&batch->key, run->entry.workspace);
    key_add(&batch->key, event->agent);
    key_add(&batch->key, event->usage.model);
    buf_append(&batch->key, str_of(&day, sizeof(day)));
    struct usage_change *usage = map_find(batch->usage_map, buf_str(&batch->key));
    if (usage) return usage;
    usage = ARENA_NEW(batch->arena, struct usage_change);
    if (!usage) {
        out_of_room(e);
        return NULL;
    }
    usage->sum = (struct usage_sum){.workspace = run->entry.workspace,
                                    .agent = event->agent,
                                    .model = event->usage.model,
                                    .day = day};
    if (!keep_text(batch, &usage->sum.agent, e) || !keep_text(batch, &usage->sum.model, e))
        return NULL;
    usage->next = batch->usages;
    batch->usages = usage;
    map_put(batch->usage_map, buf_str(&batch->key), usage);
    return usage;
}

static bool add_usage(struct batch *batch, const struct run_change *run,
                      const struct event *event, struct err *e) {
    struct usage_change *usage = usage_of(batch, run, event, e);
    if (!usage) return false;
    usage_sum_add(&usage->sum, &event->usage);
    return true;
}

/* --- gathering ---------------------------------------------------------------------------- */

static bool add_started(struct batch *batch, struct run_change *run, const struct event *event,
                        struct err *e) {
    if (!run->fresh || run->session) return true; /* a run starts once */
    struct session_change *session = session_of(batch, event, e);
    if (!session) return false;
    run->session = session;
    run->entry.session = session->id;
    run->entry.previous = session->newest;
    session->newest = run->entry.id;
    run->entry.parent = event->started.parent;
    run->entry.started_ms = event->started.unix_ms;
    run->entry.workspace = session->workspace;
    run->entry.contract = event->started.contract;
    run->key = event->started.key;
    run->print = event->started.print;
    return keep_text(batch, &run->entry.contract, e) && keep_text(batch, &run->key, e) &&
           keep_text(batch, &run->print, e);
}

static bool add_key(struct batch *batch, const struct run_change *run,
                    const struct event *event, struct err *e) {
    struct key_item item;
    if (!str_equal(event->item.type, STR(KEY_ITEM)) || !key_item_read(event->item.bytes, &item))
        return true;
    struct key_change *change = ARENA_NEW(batch->arena, struct key_change);
    if (!change) return out_of_room(e);
    *change = (struct key_change){
        .entry = {.workspace = run->entry.workspace,
                  .user = item.user,
                  .key = item.key,
                  .means = {.run = run->entry.id,
                            .started_ms = add(run->entry.started_ms, event->at_ms),
                            .print = item.print,
                            .seq = item.seq}}};
    *batch->last_key = change;
    batch->last_key = &change->next;
    return keep_text(batch, &change->entry.user, e) &&
           keep_text(batch, &change->entry.key, e) &&
           keep_text(batch, &change->entry.means.print, e);
}

static bool add_event(struct batch *batch, struct run_change *run, const struct event *event,
                      struct err *e) {
    if (event->kind == EVENT_STARTED) return add_started(batch, run, event, e);
    if (event->kind == EVENT_USAGE) return add_usage(batch, run, event, e);
    if (event->kind == EVENT_ITEM) return add_key(batch, run, event, e);
    if (event_is_terminal(event->kind)) {
        run->entry.state = event->kind;
        run->entry.ended_ms = add(run->entry.started_ms, event->at_ms);
    }
    return true;
}

static bool add_section(struct batch *batch, const struct row *row,
                        const struct store_section *section, struct err *e) {
    struct run_change *run = run_of(batch, section, e);
    if (!run) return false;
    run_entry_add_place(&run->entry, row->id, row->run == 0);
    struct str rest = section->events;
    uint64_t seq = section->first_seq;
    for (;; seq++) {
        seq += event_skip_texts(&rest); /* most events, and nothing that a table keeps */
        if (!rest.len) break;
        struct event event = {.seq = seq};
        struct err unknown;
        if (!event_decode(&rest, &event, &unknown)) {
            log_warning("store %s: row %" PRId64 " holds an event that was left out: %s",
                        batch->project->db->path, row->id, unknown.text);
            break;
        }
        if (!add_event(batch, run, &event, e)) return false;
    }
    if (seq > 1 && seq - 1 > run->entry.last_seq) run->entry.last_seq = seq - 1;
    return true;
}

static bool add_row(struct batch *batch, const struct row *row, struct err *e) {
    struct str rest = row->bytes;
    struct store_section section;
    bool bad = false;
    while (store_section_next(&rest, &section, &bad)) {
        if (!add_section(batch, row, &section, e)) return false;
    }
    if (bad)
        log_warning("store %s: row %" PRId64 " of the log holds bytes that are no section",
                    batch->project->db->path, row->id);
    batch->reached = row->id;
    batch->bytes += row->bytes.len;
    return true;
}

static bool add_from_log(const struct row *row, void *ctx, struct err *e) {
    struct batch *batch = ctx;
    if (!add_row(batch, row, e)) return false;
    batch->enough = batch->bytes >= BATCH_BYTES;
    return !batch->enough;
}

/* --- gathering while the rows are written ------------------------------------------------- */

void project_watch(struct project *project) {
    if (!project->seen && project_pending(project) == 0) project->seen = batch_new(project);
}

void project_see(struct project *project, const struct row *row) {
    struct err e;
    if (add_row(project->seen, row, &e)) return;
    log_debug("the tables will be filled from the log: %s", e.text);
    project_forget(project);
}

size_t project_pending_bytes(const struct project *project) {
    return project->seen ? project->seen->bytes : 0;
}

void project_forget(struct project *project) {
    batch_free(project->seen);
    project->seen = NULL;
}

/* --- writing what was gathered ------------------------------------------------------------ */

static bool write_session(struct project *project, const struct session_change *session,
                          struct err *e) {
    if (session->fresh) {
        sqlite3_bind_int64(project->session_insert, 1, session->id);
        database_bind(project->session_insert, 2, session->workspace);
        database_bind(project->session_insert, 3, session->user);
        database_bind(project->session_insert, 4, session->name);
        sqlite3_bind_int64(project->session_insert, 5, (int64_t)session->newest);
        return database_do(project->db, project->session_insert, e);
    }
    sqlite3_bind_int64(project->session_update, 1, (int64_t)session->newest);
    sqlite3_bind_int64(project->session_update, 2, session->id);
    return database_do(project->db, project->session_update, e);
}

static bool write_key(struct project *project, const struct run_change *run, struct err *e) {
    if (!run->key.len) return true;
    const struct key_entry entry = {
        .workspace = run->session->workspace,
        .user = run->session->user,
        .key = run->key,
        .means = {.run = run->entry.id,
                  .started_ms = run->entry.started_ms,
                  .print = run->print},
    };
    return key_write(&project->keys, &entry, e);
}

static bool write_run(struct project *project, const struct run_change *run, struct err *e) {
    if (!run->fresh) return run_update(project->runs, &run->entry, e);
    bool is_new;
    if (!run_insert(project->runs, &run->entry, &is_new, e)) return false;
    if (!is_new)
        log_warning("store %s: run %" PRIu64 " started a second time; the first one counts",
                    project->db->path, run->entry.id);
    return !is_new || write_key(project, run, e);
}

static bool write_batch(struct batch *batch, struct err *e) {
    struct project *project = batch->project;
    for (struct session_change *session = batch->sessions; session; session = session->next) {
        if (!write_session(project, session, e)) return false;
    }
    for (struct run_change *run = batch->runs; run; run = run->next) {
        if (!write_run(project, run, e)) return false;
    }
    for (struct key_change *key = batch->keys; key; key = key->next) {
        if (!key_write(&project->keys, &key->entry, e)) return false;
    }
    for (struct usage_change *usage = batch->usages; usage; usage = usage->next) {
        if (!usage_write(&project->usage, &usage->sum, e)) return false;
    }
    sqlite3_bind_int64(project->note, 1, batch->reached);
    return database_do(project->db, project->note, e);
}

static bool gather(struct batch *batch, size_t count, struct err *e) {
    struct project *project = batch->project;
    int64_t from = batch->reached;
    bool ok = row_each(project->rows, from, count, add_from_log, batch, e) || batch->enough;
    /* Ids may have holes; a batch that finds no row has reached the end. */
    if (ok && batch->reached == from) batch->reached = project->rows->newest;
    return ok;
}

bool project_batch(struct project *project, size_t count, struct err *e) {
    struct batch *batch = project->seen;
    project->seen = NULL; /* whatever becomes of it: the log has it too */
    bool seen = batch != NULL;
    if (!seen) batch = batch_new(project);
    bool ok = (seen || gather(batch, count, e)) && write_batch(batch, e);
    if (ok) project->reached = batch->reached;
    batch_free(batch);
    return ok;
}
