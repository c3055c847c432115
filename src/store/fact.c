#include "store/fact.h"

#include "base/arena.h"
#include "store/changes.h"

#define READ_MAX_BYTES (4 * MIB) /* one that has no room comes with the next page */

/* --- telling ------------------------------------------------------------------------------ */

static const struct share_table facts = {
    .name = "fact",
    .what = "apps, sessions and tokens",
    .max = {[SHARE_OF_APP] = {FACT_APP_MAX, FACT_APP_MAX_BYTES},
            [SHARE_OF_CALLER] = {FACT_CALLER_MAX, FACT_CALLER_MAX_BYTES},
            [SHARE_OF_ALL] = {FACT_ALL_MAX, FACT_ALL_MAX_BYTES}}};

/* Those that are over, and the one that this one replaces. */
static bool remove_some(struct database *db, const struct fact_put *put, struct err *e) {
    return database_run_with(db,
                             "DELETE FROM fact WHERE number IN (SELECT number FROM fact"
                             " WHERE until_ms <= ?1 ORDER BY until_ms LIMIT ?2)",
                             VALUES(sql_number(put->unix_ms), sql_number(FACT_SWEPT_MAX)), e) &&
           (!put->name.len ||
            database_run_with(
                db, "DELETE FROM fact WHERE kind = ?1 AND name = ?2 AND length(name) > 0",
                VALUES(sql_number(put->kind), sql_bytes(put->name)), e));
}

static bool insert_fact(struct database *db, const struct fact_put *put, struct err *e) {
    return database_run_with(db,
                             "INSERT INTO fact(kind, until_ms, bytes, name, caller, app, size)"
                             " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                             VALUES(sql_number(put->kind), sql_number(put->until_ms),
                                    sql_bytes(put->bytes), sql_bytes(put->name),
                                    sql_bytes(put->owner.caller), sql_bytes(put->owner.app),
                                    sql_number((int64_t)put->bytes.len)),
                             e);
}

/* After it was put in, so that one that only replaces another always has room. */
static bool has_room(struct database *db, const struct fact_put *put, struct err *e) {
    enum share_of full = SHARE_COUNT;
    if (!put->owner.caller.len) return true;
    if (!share_look(db, &facts, &put->owner, put->unix_ms, &full, e)) return false;
    return full == SHARE_COUNT || share_refuse(&facts, full, e);
}

static bool put_fact(struct database *db, void *ctx, struct err *e) {
    const struct fact_put *put = ctx;
    db->changed |= CHANGE_FACTS;
    return remove_some(db, put, e) && insert_fact(db, put, e) && has_room(db, put, e) &&
           once_reply_put(db, put->made, e);
}

static void on_put(struct store_task *task, const struct err *failed, void *ctx) {
    struct fact_put *put = ctx;
    (void)task;
    put->on_done(put, failed, put->ctx);
}

void fact_tell(struct store *store, struct loop *home, struct fact_put *put) {
    put->task =
        (struct store_task){.fn = put_fact, .home = home, .on_done = on_put, .ctx = put};
    store_run(store, &put->task);
}

/* --- reading ------------------------------------------------------------------------------ */

static bool copy_fact(struct fact_list *list, struct prepared *statement) {
    struct fact *fact = &list->all[list->count];
    fact->number = database_number_of(statement, 0);
    if (!arena_str(list->arena, database_bytes(statement, 1), &fact->bytes)) return false;
    list->count++;
    return true;
}

static bool read_facts(struct database *db, void *ctx, struct err *e) {
    struct fact_list *list = ctx;
    struct prepared *statement = NULL;
    bool row, ok = database_prepare(db,
                                    "SELECT number, bytes FROM fact WHERE kind = ?1"
                                    " AND number > ?2 ORDER BY number LIMIT ?3",
                                    &statement, e);
    fact_list_done(list);
    list->arena = arena_new(READ_MAX_BYTES);
    if (ok) {
        database_bind_number(statement, 1, list->kind);
        database_bind_number(statement, 2, list->after);
        database_bind_number(statement, 3, FACT_READ_MAX);
    }
    while (ok && (ok = database_row(db, statement, &row, e)) && row) {
        list->more = !copy_fact(list, statement) || list->count == FACT_READ_MAX;
        if (list->more) break;
    }
    database_finalize(statement);
    return ok;
}

static void on_read(struct store_task *task, const struct err *failed, void *ctx) {
    struct fact_list *list = ctx;
    (void)task;
    list->on_done(list, failed, list->ctx);
}

void fact_read(struct store *store, struct loop *home, struct fact_list *list) {
    list->task = (struct store_task){
        .reads_only = true, .fn = read_facts, .home = home, .on_done = on_read, .ctx = list};
    store_run(store, &list->task);
}

void fact_list_done(struct fact_list *list) {
    arena_free(list->arena);
    list->arena = NULL;
    list->count = 0;
    list->more = false;
}
