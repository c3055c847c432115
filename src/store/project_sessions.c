/* Projects the table of sessions: their owners and their newest runs. */
#include "store/projection.h"

#include "base/map.h"

struct session_table {
    struct database *db;
    struct prepared *find, *insert, *update, *last;
};

struct session_change {
    struct session_change *next;
    int64_t id;
    uint64_t newest;
    struct str workspace, user, name;
    bool fresh;
};

struct sessions_gathered {
    struct map *map;
    struct session_change *first, **end;
    int64_t last_id; /* the highest id given so far; 0: read it from the table */
};

static bool sessions_open(void *at, struct database *db, struct err *e) {
    struct session_table *table = at;
    table->db = db;
    return database_prepare(db,
                            "SELECT id, newest_run FROM session"
                            " WHERE workspace = ? AND user = ? AND name = ?",
                            &table->find, e) &&
           database_prepare(db, "INSERT INTO session VALUES(?, ?, ?, ?, ?)", &table->insert,
                            e) &&
           database_prepare(db, "UPDATE session SET newest_run = ? WHERE id = ?",
                            &table->update, e) &&
           database_prepare(db, "SELECT max(id) FROM session", &table->last, e);
}

static void sessions_close(void *at) {
    struct session_table *table = at;
    database_finalize(table->find);
    database_finalize(table->insert);
    database_finalize(table->update);
    database_finalize(table->last);
}

/* --- finding ------------------------------------------------------------------------------ */

bool project_session(struct project *project, struct str workspace, struct str user,
                     struct str name, int64_t *ret_id, uint64_t *ret_newest, struct err *e) {
    struct session_table *table = project_table(project, &project_sessions);
    database_bind(table->find, 1, workspace);
    database_bind(table->find, 2, user);
    database_bind(table->find, 3, name);
    bool found, ok = database_row(table->db, table->find, &found, e);
    *ret_id = ok && found ? database_number_of(table->find, 0) : 0;
    *ret_newest = ok && found ? (uint64_t)database_number_of(table->find, 1) : 0;
    database_reset(table->find);
    return ok;
}

static bool next_id(struct session_table *table, struct sessions_gathered *gathered,
                    int64_t *ret, struct err *e) {
    if (gathered->last_id == 0) {
        bool row, ok = database_row(table->db, table->last, &row, e);
        if (ok && row) gathered->last_id = database_number_of(table->last, 0);
        database_reset(table->last);
        if (!ok) return false;
    }
    *ret = ++gathered->last_id;
    return true;
}

/* --- gathering ---------------------------------------------------------------------------- */

static void sessions_begin(void *at) {
    struct sessions_gathered *gathered = at;
    gathered->map = map_new();
    gathered->end = &gathered->first;
}

static void sessions_end(void *at) {
    struct sessions_gathered *gathered = at;
    map_free(gathered->map);
}

static bool load_session(struct batch *batch, struct sessions_gathered *gathered,
                         struct session_change *session, struct err *e) {
    struct project *project = batch->project;
    struct session_table *table = project_table(project, &project_sessions);
    bool kept = batch_keep(batch, &session->workspace, e) &&
                batch_keep(batch, &session->user, e) && batch_keep(batch, &session->name, e) &&
                project_session(project, session->workspace, session->user, session->name,
                                &session->id, &session->newest, e);
    if (!kept) return false;
    session->fresh = session->id == 0;
    return !session->fresh || next_id(table, gathered, &session->id, e);
}

static struct session_change *session_of(struct batch *batch,
                                         struct sessions_gathered *gathered,
                                         const struct event *event, struct err *e) {
    buf_clear(&batch->key);
    projection_key_add(&batch->key, event->started.workspace);
    projection_key_add(&batch->key, event->started.user);
    projection_key_add(&batch->key, event->started.session);
    struct session_change *session = map_find(gathered->map, buf_str(&batch->key));
    if (session) return session;
    session = batch_alloc(batch, sizeof(*session), e);
    if (!session) return NULL;
    session->workspace = event->started.workspace;
    session->user = event->started.user;
    session->name = event->started.session;
    if (!load_session(batch, gathered, session, e)) return NULL;
    session_filter_add(batch->project->known, session->workspace, session->user, session->name);
    batch->cost += SESSION_COST;
    *gathered->end = session;
    gathered->end = &session->next;
    map_put(gathered->map, buf_str(&batch->key), session);
    return session;
}

/* Add the session of a run that begins. */
static bool sessions_take(struct batch *batch, void *gathered, struct run_change *run,
                          const struct event *event, struct err *e) {
    if (!run->fresh || run->started) return true; /* a run starts once */
    struct session_change *session = session_of(batch, gathered, event, e);
    if (!session) return false;
    run->started = run->begins = true;
    run->user = session->user;
    run->entry.session = session->id;
    run->entry.previous = session->newest;
    session->newest = run->entry.id;
    run->entry.parent = event->started.parent;
    run->entry.started_ms = event->started.unix_ms;
    run->entry.workspace = session->workspace;
    run->entry.contract = event->started.contract;
    return batch_keep(batch, &run->entry.contract, e);
}

/* --- writing ------------------------------------------------------------------------------ */

static bool write_session(struct session_table *table, const struct session_change *session,
                          struct err *e) {
    if (session->fresh) {
        database_bind_number(table->insert, 1, session->id);
        database_bind(table->insert, 2, session->workspace);
        database_bind(table->insert, 3, session->user);
        database_bind(table->insert, 4, session->name);
        database_bind_number(table->insert, 5, (int64_t)session->newest);
        return database_do(table->db, table->insert, e);
    }
    database_bind_number(table->update, 1, (int64_t)session->newest);
    database_bind_number(table->update, 2, session->id);
    return database_do(table->db, table->update, e);
}

static bool sessions_write(struct batch *batch, const void *at, void *table, struct err *e) {
    const struct sessions_gathered *gathered = at;
    (void)batch;
    for (const struct session_change *one = gathered->first; one; one = one->next) {
        if (!write_session(table, one, e)) return false;
    }
    return true;
}

const struct projection project_sessions = {
    .name = "sessions",
    .takes = TAKES(EVENT_STARTED),
    .table_bytes = sizeof(struct session_table),
    .batch_bytes = sizeof(struct sessions_gathered),
    .open = sessions_open,
    .close = sessions_close,
    .begin = sessions_begin,
    .take = sessions_take,
    .write = sessions_write,
    .end = sessions_end,
};
