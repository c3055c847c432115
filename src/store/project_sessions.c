/* Projects the table of sessions: their owners and their newest runs. */
#include "store/projection.h"

#include "base/map.h"
#include "store/session_cache.h"

#define BATCH_SLOTS 256

struct session_table {
    struct database *db;
    struct prepared *find, *insert, *update, *last;
    struct session_cache *cache; /* NULL: others may write the table */
};

struct session_change {
    struct session_change *next, *next_in_slot;
    struct str key;
    uint64_t hash; /* of the key */
    int64_t id;
    uint64_t newest;
    struct str workspace, user, name; /* within the key */
    bool fresh;
    struct usage_change *usage;
};

struct sessions_gathered {
    struct session_change *slots[BATCH_SLOTS];
    struct session_change *first, **end;
    int64_t last_id; /* the highest id given so far; 0: read it from the table */
};

static bool sessions_open(void *at, struct database *db, struct err *e) {
    struct session_table *table = at;
    table->db = db;
    if (!database_is_postgres(db)) table->cache = session_cache_new();
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
    session_cache_free(table->cache);
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

void project_forget_sessions(struct project *project) {
    struct session_table *table = project_table(project, &project_sessions);
    if (table->cache) session_cache_clear(table->cache);
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
    gathered->end = &gathered->first;
}

static void build_key(struct batch *batch, const struct event *event) {
    buf_clear(&batch->key);
    projection_key_add(&batch->key, event->started.workspace);
    projection_key_add(&batch->key, event->started.user);
    projection_key_add(&batch->key, event->started.session);
}

/* The next text of a key. */
static struct str take_text(struct str *key) {
    uint64_t len;
    memcpy(&len, key->at, sizeof(len));
    struct str text = str_of(key->at + sizeof(len), (size_t)len);
    *key = str_skip(*key, sizeof(len) + (size_t)len);
    return text;
}

static bool keep_key(struct batch *batch, struct session_change *session, struct err *e) {
    session->key = buf_str(&batch->key);
    if (!batch_keep(batch, &session->key, e)) return false;
    struct str rest = session->key;
    session->workspace = take_text(&rest);
    session->user = take_text(&rest);
    session->name = take_text(&rest);
    return true;
}

/* What is in the cache is known already. */
static bool load_session(struct batch *batch, struct sessions_gathered *gathered,
                         struct session_change *session, struct err *e) {
    struct project *project = batch->project;
    struct session_table *table = project_table(project, &project_sessions);
    if (table->cache && session_cache_find(table->cache, session->key, session->hash,
                                           &session->id, &session->newest))
        return true;
    if (!project_session(project, session->workspace, session->user, session->name,
                         &session->id, &session->newest, e))
        return false;
    session->fresh = session->id == 0;
    if (session->fresh && !next_id(table, gathered, &session->id, e)) return false;
    session_filter_add(project->known, session->workspace, session->user, session->name);
    return true;
}

static struct session_change *session_of(struct batch *batch,
                                         struct sessions_gathered *gathered,
                                         const struct event *event, struct err *e) {
    build_key(batch, event);
    struct str key = buf_str(&batch->key);
    uint64_t hash = map_hash(key);
    struct session_change **slot = &gathered->slots[hash % BATCH_SLOTS];
    struct session_change *session = *slot;
    while (session && (session->hash != hash || !str_equal(session->key, key)))
        session = session->next_in_slot;
    if (session) return session;
    session = batch_alloc(batch, sizeof(*session), e);
    if (!session || !keep_key(batch, session, e)) return NULL;
    session->hash = hash;
    if (!load_session(batch, gathered, session, e)) return NULL;
    batch->cost += SESSION_COST;
    *gathered->end = session;
    gathered->end = &session->next;
    session->next_in_slot = *slot;
    *slot = session;
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
    run->usage = &session->usage;
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

static bool sessions_write(struct batch *batch, const void *at, void *of, struct err *e) {
    const struct sessions_gathered *gathered = at;
    struct session_table *table = of;
    (void)batch;
    for (const struct session_change *one = gathered->first; one; one = one->next) {
        if (table->cache) session_cache_forget(table->cache, one->key, one->hash);
        if (!write_session(table, one, e)) return false;
    }
    return true;
}

static void sessions_keep(const struct batch *batch, const void *at, void *of) {
    const struct sessions_gathered *gathered = at;
    struct session_table *table = of;
    (void)batch;
    for (const struct session_change *one = gathered->first; one && table->cache;
         one = one->next)
        session_cache_put(table->cache, one->key, one->hash, one->id, one->newest);
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
    .keep = sessions_keep,
};
