#include "store/agents.h"

#include "base/clock.h"
#include "base/mem.h"
#include "store/audit.h"
#include "store/task.h"

#include <assert.h>
#include <stdlib.h>

#define EVENTS_MAX_BYTES (2 * AGENT_BODY_MAX_BYTES) /* of one change */

/* --- requests ----------------------------------------------------------------------------- */

struct agents_ask {
    struct store_task task;
    struct buf asked; /* owns the request's texts */
    struct agent_where where;
    struct agents_change change;
    struct agents_query query;
    int64_t now_us;
    struct arena *found; /* the answer's; each run of the task makes it again */
    struct agents_answer answer;
    agents_done_fn *done; /* NULL: cancelled */
    void *ctx;
};

static void agents_on_done(const struct err *failed, void *ctx) {
    struct agents_ask *ask = ctx;
    ask->done(&ask->answer, failed, ask->ctx);
    if (ask->change.free_ctx) ask->change.free_ctx(ask->change.ctx);
    buf_done(&ask->asked);
    arena_free(ask->found);
    free(ask);
}

static struct agents_ask *agents_ask_new(const struct agent_where *where,
                                         const struct agents_query *query, agents_done_fn *done,
                                         void *ctx,
                                         bool (*fn)(struct database *, void *, struct err *)) {
    struct agents_ask *ask = MEM_NEW(struct agents_ask);
    ask->task = (struct store_task){.fn = fn, .on_done = agents_on_done};
    ask->where = *where;
    if (query) ask->query = *query;
    struct str *const texts[] = {&ask->where.owner.app, &ask->where.owner.subject,
                                 &ask->where.name, &ask->query.after_name};
    buf_keep_texts(&ask->asked, texts, ARRAY_LEN(texts));
    ask->done = done;
    ask->ctx = ctx;
    return ask;
}

/* --- answers ------------------------------------------------------------------------------ */

static struct agent_item *agents_answer_begin(struct agents_ask *ask, size_t count,
                                              size_t max_bytes) {
    arena_free(ask->found);
    ask->found = arena_new(max_bytes + AGENT_BODY_MAX_BYTES +
                           (count + 1) * (sizeof(struct agent_item) + KIB));
    struct agent_item *items = arena_alloc(ask->found, (count + 1) * sizeof(*items));
    assert(items);
    ask->answer = (struct agents_answer){.items = items};
    return items;
}

static bool agents_find_text(struct agents_ask *ask, struct str text, struct str *ret,
                             struct err *e) {
    return arena_str(ask->found, text, ret) ||
           err_set(e, ERR_RESOURCE_EXHAUSTED, "agents: the answer is too large");
}

static bool take_agent(struct agents_ask *ask, struct prepared *row, struct agent_item *ret,
                       struct err *e) {
    ret->made_us = database_number_of(row, 2);
    return agents_find_text(ask, database_bytes(row, 0), &ret->name, e) &&
           agents_find_text(ask, database_bytes(row, 1), &ret->body, e);
}

/* --- get ---------------------------------------------------------------------------------- */

#define AGENT_HERE " WHERE app = ?1 AND subject = ?2 AND name = ?3"

/* answer.count is 0 if there is none. */
static bool read_agent(struct database *db, struct agents_ask *ask, struct err *e) {
    struct agent_item *item = agents_answer_begin(ask, 1, AGENT_BODY_MAX_BYTES);
    struct database_rows find =
        database_ask(db, "SELECT name, body, made_us FROM agent" AGENT_HERE,
                     VALUES(sql_bytes(ask->where.owner.app),
                            sql_bytes(ask->where.owner.subject), sql_bytes(ask->where.name)),
                     e);
    if (database_next(&find, e)) {
        ask->answer.count = 1;
        find.ok = take_agent(ask, find.row, item, e);
    }
    return database_end(&find);
}

static bool agents_run_get(struct database *db, void *ctx, struct err *e) {
    struct agents_ask *ask = ctx;
    if (!read_agent(db, ask, e)) return false;
    return ask->answer.count || err_set(e, ERR_NOT_FOUND, "agent not found");
}

struct agents_ask *agents_get_start(struct store *store, struct loop *loop,
                                    const struct agent_where *where, agents_done_fn *done,
                                    void *ctx) {
    struct agents_ask *ask = agents_ask_new(where, NULL, done, ctx, agents_run_get);
    ask->task.reads_only = true;
    store_run(store, loop, &ask->task, ask);
    return ask;
}

/* --- list --------------------------------------------------------------------------------- */

static const char agents_sql[] =
    "SELECT name, body, made_us FROM agent WHERE app = ?1 AND subject = ?2"
    " AND (?3 = 0 OR status = ?3) AND (?4 < 0 OR autonomous = ?4)"
    " AND (?5 = 0 OR made_us < ?6 OR (made_us = ?6 AND name > ?7))"
    " ORDER BY made_us DESC, name LIMIT ?8";

static bool agents_run_list(struct database *db, void *ctx, struct err *e) {
    struct agents_ask *ask = ctx;
    const struct agents_query *query = &ask->query;
    struct agent_item *items = agents_answer_begin(ask, query->limit, query->max_bytes);
    size_t used = 0;
    struct database_rows rows = database_ask(
        db, agents_sql,
        VALUES(sql_bytes(ask->where.owner.app), sql_bytes(ask->where.owner.subject),
               sql_number(query->status), sql_number(query->autonomous),
               sql_number(query->after_name.len > 0), sql_number(query->after_us),
               sql_bytes(query->after_name), sql_number((int64_t)query->limit + 1)),
        e);
    while (database_next(&rows, e)) {
        used += database_bytes(rows.row, 0).len + database_bytes(rows.row, 1).len;
        ask->answer.more =
            ask->answer.count == query->limit || (ask->answer.count && used > query->max_bytes);
        if (ask->answer.more) break;
        rows.ok = take_agent(ask, rows.row, &items[ask->answer.count++], e);
    }
    return database_end(&rows);
}

struct agents_ask *agents_list_start(struct store *store, struct loop *loop,
                                     const struct store_owner *owner,
                                     const struct agents_query *query, agents_done_fn *done,
                                     void *ctx) {
    const struct agent_where where = {.owner = *owner};
    assert(query->limit > 0 && query->limit <= AGENTS_ANSWER_MAX);
    struct agents_ask *ask = agents_ask_new(&where, query, done, ctx, agents_run_list);
    ask->task.reads_only = true;
    store_run(store, loop, &ask->task, ask);
    return ask;
}

/* --- change ------------------------------------------------------------------------------- */

/* Forget an agent that is over, with its log. */
static bool forget_agent(struct database *db, const struct agents_ask *ask,
                         struct prepared *row, struct err *e) {
    const struct event_log_key log = {
        .kind = EVENT_LOG_AGENT, .owner = ask->where.owner, .name = database_bytes(row, 1)};
    return event_log_delete(db, &log, e) &&
           database_run_with(db, "DELETE FROM agent WHERE id = ?1",
                             VALUES(sql_number(database_number_of(row, 0))), e);
}

static bool store_agents_make_room(struct database *db, const struct agents_ask *ask,
                                   struct err *e) {
    struct database_rows over = database_ask(
        db,
        "SELECT id, name FROM agent WHERE app = ? AND subject = ?"
        " AND ended <> 0 ORDER BY made_us LIMIT 1",
        VALUES(sql_bytes(ask->where.owner.app), sql_bytes(ask->where.owner.subject)), e);
    bool any = database_next(&over, e);
    if (any) over.ok = forget_agent(db, ask, over.row, e);
    if (!database_end(&over)) return false;
    return any ||
           err_set(e, ERR_RESOURCE_EXHAUSTED,
                   "agents: an app and subject may have %d agents; terminate one", AGENTS_MAX);
}

static bool agents_owner_has_room(struct database *db, const struct agents_ask *ask,
                                  struct err *e) {
    int64_t count = 0;
    return database_number_with(
               db, "SELECT count(*) FROM agent WHERE app = ? AND subject = ?",
               VALUES(sql_bytes(ask->where.owner.app), sql_bytes(ask->where.owner.subject)),
               &count, e) &&
           (count < AGENTS_MAX || store_agents_make_room(db, ask, e));
}

static bool put_agent(struct database *db, const struct agents_ask *ask,
                      const struct agent_after *after, int64_t made_us, struct err *e) {
    return database_run_with(
        db,
        "INSERT INTO agent(app, subject, name, status, autonomous, ended, made_us, body)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT(app, subject, name) DO UPDATE SET"
        " status = excluded.status, autonomous = excluded.autonomous, ended = excluded.ended,"
        " body = excluded.body",
        VALUES(sql_bytes(ask->where.owner.app), sql_bytes(ask->where.owner.subject),
               sql_bytes(ask->where.name), sql_number(after->status),
               sql_number(after->autonomous), sql_number(after->ended), sql_number(made_us),
               sql_bytes(buf_str(after->body))),
        e);
}

static bool audit_agent(struct database *db, const struct agents_ask *ask,
                        const struct agent_after *after, struct err *e) {
    const struct str texts[] = {ask->where.name, buf_str(after->body)};
    uint8_t digest[AUDIT_HASH_BYTES];
    struct audit_record record = {
        .texts = {[AUDIT_DOMAIN] = STR_INIT("runtime.agent"),
                  [AUDIT_OPERATION] = ask->change.operation,
                  [AUDIT_WORKSPACE] = ask->where.owner.app,
                  [AUDIT_USER] = ask->where.owner.subject,
                  [AUDIT_CONTRACT] = STR_INIT("nimi"),
                  [AUDIT_CAPABILITY] = ask->where.name,
                  [AUDIT_DIGEST] = {(const char *)digest, sizeof(digest)}}};
    audit_digest(texts, ARRAY_LEN(texts), digest);
    audit_set(&record, AUDIT_OUTCOME, ERR_NONE);
    return audit_note(db, &record, e);
}

static bool write_change(struct database *db, struct agents_ask *ask,
                         const struct agent_after *after, struct err *e) {
    const struct event_log_key log = {
        .kind = EVENT_LOG_AGENT, .owner = ask->where.owner, .name = ask->where.name};
    bool is_new = ask->answer.count == 0;
    struct agent_item *item = (struct agent_item *)(uintptr_t)ask->answer.items;
    if (is_new) item->made_us = ask->now_us;
    if (is_new && !agents_owner_has_room(db, ask, e)) return false;
    if (!put_agent(db, ask, after, item->made_us, e)) return false;
    if (after->event_count && !event_log_append(db, &log, after->events, after->event_count, e))
        return false;
    ask->answer.count = 1;
    ask->answer.changed = true;
    item->name = ask->where.name;
    return agents_find_text(ask, buf_str(after->body), &item->body, e) &&
           audit_agent(db, ask, after, e);
}

static bool run_change(struct database *db, void *ctx, struct err *e) {
    struct agents_ask *ask = ctx;
    struct agent_after *after = MEM_NEW(struct agent_after);
    struct buf body;
    if (!read_agent(db, ask, e)) {
        free(after);
        return false;
    }
    buf_init(&body, AGENT_BODY_MAX_BYTES);
    after->body = &body;
    after->arena = arena_new(EVENTS_MAX_BYTES);
    struct str before = ask->answer.count ? ask->answer.items[0].body : STR_EMPTY;
    bool ok = ask->change.fn(before, after, ask->change.ctx, e);
    if (ok && after->changed) ok = write_change(db, ask, after, e);
    arena_free(after->arena);
    buf_done(&body);
    free(after);
    return ok;
}

struct agents_ask *agents_change_start(struct store *store, struct loop *loop,
                                       const struct agent_where *where,
                                       const struct agents_change *change, agents_done_fn *done,
                                       void *ctx) {
    struct agents_ask *ask = agents_ask_new(where, NULL, done, ctx, run_change);
    ask->change = *change;
    ask->now_us = clock_unix_us();
    store_run(store, loop, &ask->task, ask);
    return ask;
}
