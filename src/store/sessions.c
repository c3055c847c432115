#include "store/sessions.h"

#include "base/mem.h"
#include "store/audit.h"
#include "store/erase.h"
#include "store/task.h"

#include <assert.h>
#include <stdlib.h>

#define TEXT_MAX_BYTES (256 * MIB)

struct sessions_ask {
    struct store_task task;
    struct buf asked; /* owns the request's texts */
    struct str workspace, user, session;
    struct sessions_filter filter;
    struct arena *arena; /* holds the answer; rebuilt each time the task runs */
    struct stored_session *sessions;
    struct erase_runs runs;
    struct sessions_answer answer;
    sessions_done_fn *done; /* NULL: cancelled */
    void *ctx;
};

static void store_sessions_on_done(const struct err *failed, void *ctx) {
    struct sessions_ask *ask = ctx;
    ask->answer.runs = ask->runs.ids;
    ask->answer.run_count = ask->runs.count;
    if (ask->done) ask->done(&ask->answer, failed, ask->ctx);
    buf_done(&ask->asked);
    arena_free(ask->arena);
    erase_runs_done(&ask->runs);
    free(ask->sessions);
    free(ask);
}

void sessions_forget(struct sessions_ask *ask) {
    if (ask) ask->done = NULL;
}

static struct sessions_ask *store_sessions_ask_new(struct str workspace, struct str user,
                                                   struct str session, sessions_done_fn *done,
                                                   void *ctx) {
    struct sessions_ask *ask = MEM_NEW(struct sessions_ask);
    struct str *const texts[] = {&ask->workspace, &ask->user, &ask->session};
    ask->workspace = workspace;
    ask->user = user;
    ask->session = session;
    buf_keep_texts(&ask->asked, texts, ARRAY_LEN(texts));
    ask->task = (struct store_task){.needs_tables = true, .on_done = store_sessions_on_done};
    ask->done = done;
    ask->ctx = ctx;
    return ask;
}

/* --- list --------------------------------------------------------------------------------- */

static bool store_sessions_is_wanted(const struct sessions_ask *ask, struct prepared *row) {
    return (!ask->workspace.at || str_equal(database_bytes(row, 1), ask->workspace)) &&
           (!ask->user.at || str_equal(database_bytes(row, 2), ask->user));
}

static bool take_session(struct sessions_ask *ask, struct prepared *row) {
    struct stored_session session = {
        .id = database_number_of(row, 0),
        .newest_run = (uint64_t)database_number_of(row, 4),
        .state = database_number_of(row, 5),
        .started_ms = database_number_of(row, 6),
        .ended_ms = database_number_of(row, 7),
    };
    if (!arena_str(ask->arena, database_bytes(row, 1), &session.workspace) ||
        !arena_str(ask->arena, database_bytes(row, 2), &session.user) ||
        !arena_str(ask->arena, database_bytes(row, 3), &session.session))
        return false;
    ask->sessions[ask->answer.count++] = session;
    return true;
}

/* A page ends when it is full or enough rows were scanned. The next page continues there. */
static void walk_sessions(struct sessions_ask *ask, struct database_rows *list, struct err *e) {
    size_t looked = 0;
    while (database_next(list, e)) {
        bool full = ask->answer.count == ask->filter.limit || looked == SESSIONS_LOOK_MAX;
        if (full || (store_sessions_is_wanted(ask, list->row) && !take_session(ask, list->row)))
            return;
        ask->answer.next = database_number_of(list->row, 0);
        looked++;
    }
    ask->answer.next = 0;
}

static bool run_list(struct database *db, void *ctx, struct err *e) {
    struct sessions_ask *ask = ctx;
    arena_free(ask->arena);
    ask->arena = arena_new(TEXT_MAX_BYTES);
    ask->answer = (struct sessions_answer){.sessions = ask->sessions};
    struct database_rows list = database_ask(
        db,
        "SELECT session.id, workspace, user, name, newest_run, state,"
        " started_ms, ended_ms FROM session"
        " LEFT JOIN run ON run.id = newest_run"
        " WHERE session.id < ? ORDER BY session.id DESC",
        VALUES(sql_number(ask->filter.before ? ask->filter.before : INT64_MAX)), e);
    walk_sessions(ask, &list, e);
    return database_end(&list);
}

struct sessions_ask *sessions_list_start(struct store *store, struct loop *loop,
                                         const struct sessions_filter *filter,
                                         sessions_done_fn *done, void *ctx) {
    assert(filter->limit > 0 && filter->limit <= SESSIONS_LIST_MAX);
    struct sessions_ask *ask =
        store_sessions_ask_new(filter->workspace, filter->user, STR_EMPTY, done, ctx);
    ask->filter = *filter;
    ask->sessions = mem_zero(filter->limit, sizeof(*ask->sessions));
    ask->task.fn = run_list;
    ask->task.reads_only = true;
    store_run(store, loop, &ask->task, ask);
    return ask;
}

/* --- one session -------------------------------------------------------------------------- */

static bool run_runs(struct database *db, void *ctx, struct err *e) {
    struct sessions_ask *ask = ctx;
    erase_runs_done(&ask->runs);
    return erase_find(db, ask->workspace, ask->user, ask->session, &ask->runs, e);
}

/* The name of the session goes with it; the audit log keeps a digest of it. */
static bool audit_erased(const struct sessions_ask *ask, struct database *db, struct err *e) {
    uint8_t digest[AUDIT_HASH_BYTES];
    struct audit_record record = {
        .texts = {[AUDIT_DOMAIN] = STR_INIT("runtime.session"),
                  [AUDIT_OPERATION] = STR_INIT("erase"),
                  [AUDIT_WORKSPACE] = ask->workspace,
                  [AUDIT_USER] = ask->user,
                  [AUDIT_CONTRACT] = STR_INIT("weir"),
                  [AUDIT_DIGEST] = {(const char *)digest, sizeof(digest)}}};
    audit_digest(&ask->session, 1, digest);
    audit_set(&record, AUDIT_COUNT, ask->runs.count);
    audit_set(&record, AUDIT_OUTCOME, ERR_NONE);
    return audit_note(db, &record, e);
}

static bool run_erase(struct database *db, void *ctx, struct err *e) {
    struct sessions_ask *ask = ctx;
    return run_runs(db, ask, e) && erase_session(db, &ask->runs, e) && audit_erased(ask, db, e);
}

struct sessions_ask *sessions_runs_start(struct store *store, struct loop *loop,
                                         struct str workspace, struct str user,
                                         struct str session, sessions_done_fn *done,
                                         void *ctx) {
    struct sessions_ask *ask = store_sessions_ask_new(workspace, user, session, done, ctx);
    ask->task.fn = run_runs;
    ask->task.reads_only = true;
    store_run(store, loop, &ask->task, ask);
    return ask;
}

struct sessions_ask *sessions_erase_start(struct store *store, struct loop *loop,
                                          struct str workspace, struct str user,
                                          struct str session, sessions_done_fn *done,
                                          void *ctx) {
    struct sessions_ask *ask = store_sessions_ask_new(workspace, user, session, done, ctx);
    ask->task.fn = run_erase;
    ask->task.purges = true;
    store_run(store, loop, &ask->task, ask);
    return ask;
}
