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

/* Facts that are over, and the one that this one replaces. */
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

static void fact_on_put(const struct err *failed, void *ctx) {
    struct fact_put *put = ctx;
    put->on_done(put, failed, put->ctx);
}

void fact_tell(struct store *store, struct loop *home, struct fact_put *put) {
    put->task = (struct store_task){.fn = put_fact, .on_done = fact_on_put};
    store_run(store, home, &put->task, put);
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
    fact_list_done(list);
    list->arena = arena_new(READ_MAX_BYTES);
    struct database_rows rows = database_ask(
        db,
        "SELECT number, bytes FROM fact WHERE kind = ?1"
        " AND number > ?2 ORDER BY number LIMIT ?3",
        VALUES(sql_number(list->kind), sql_number(list->after), sql_number(FACT_READ_MAX)), e);
    while (!list->more && database_next(&rows, e))
        list->more = !copy_fact(list, rows.row) || list->count == FACT_READ_MAX;
    return database_end(&rows);
}

static void fact_on_read(const struct err *failed, void *ctx) {
    struct fact_list *list = ctx;
    list->on_done(list, failed, list->ctx);
}

void fact_read(struct store *store, struct loop *home, struct fact_list *list) {
    list->task =
        (struct store_task){.reads_only = true, .fn = read_facts, .on_done = fact_on_read};
    store_run(store, home, &list->task, list);
}

void fact_list_done(struct fact_list *list) {
    arena_free(list->arena);
    list->arena = NULL;
    list->count = 0;
    list->more = false;
}
