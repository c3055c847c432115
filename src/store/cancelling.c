#include "store/cancelling.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "store/changes.h"
#include "store/single.h"

#include <stdlib.h>

/* --- wishing ------------------------------------------------------------------------------ */

struct cancelling_wish {
    struct store_task task;
    uint64_t run;
    bool wished;
    cancelling_wished_fn *done; /* NULL: no caller waits */
    void *ctx;
    struct str why; /* in `room` */
    char room[];
};

static const char remove_over[] =
    "DELETE FROM cancelling WHERE run NOT IN (SELECT id FROM run WHERE state = 0)";

static bool put_wish(struct database *db, void *ctx, struct err *e) {
    struct cancelling_wish *wish = ctx;
    db->changed |= CHANGE_POSTED;
    return database_run(db, remove_over, e) &&
           database_run_with(db,
                             "INSERT INTO cancelling(run, why) SELECT id, ?2 FROM run"
                             " WHERE id = ?1 AND state = 0 ON CONFLICT(run) DO NOTHING",
                             VALUES(sql_number((int64_t)wish->run), sql_bytes(wish->why)), e) &&
           database_has(db, "SELECT 1 FROM cancelling WHERE run = ?1",
                        VALUES(sql_number((int64_t)wish->run)), &wish->wished, e);
}

static void on_wished(const struct err *failed, void *ctx) {
    struct cancelling_wish *wish = ctx;
    if (wish->done)
        wish->done(!failed && wish->wished, failed, wish->ctx);
    else if (failed)
        log_warning("the wish to cancel a run is lost: %s", failed->text);
    free(wish);
}

struct cancelling_wish *cancelling_wish(struct store *store, struct loop *home, uint64_t run,
                                        struct str why, cancelling_wished_fn *done, void *ctx) {
    struct str text = str_head(why, utf8_cut(why, CANCELLING_WHY_BYTES));
    struct cancelling_wish *wish = mem_zero(1, sizeof(*wish) + text.len);
    if (text.len) memcpy(wish->room, text.at, text.len);
    wish->run = run;
    wish->done = done;
    wish->ctx = ctx;
    wish->why = str_of(wish->room, text.len);
    wish->task = (struct store_task){
        .insists = true, .needs_tables = true, .fn = put_wish, .on_done = on_wished};
    store_run(store, home, &wish->task, wish);
    return wish;
}

void cancelling_forget(struct cancelling_wish *wish) {
    if (wish) wish->done = NULL;
}

/* --- reading ------------------------------------------------------------------------------ */

/* Whose a run is: as takeover.c has it. */
static const char read_wishes[] =
    "SELECT cancelling.run, why FROM cancelling JOIN run ON run.id = cancelling.run"
    " JOIN log ON log.id = run.last_log LEFT JOIN moved ON moved.run = cancelling.run"
    " WHERE run.state = 0 AND coalesce(moved.holder, log.replica) = ?1"
    " AND cancelling.run > ?3 ORDER BY cancelling.run LIMIT ?2";

static const char find_over[] =
    "SELECT 1 FROM cancelling WHERE NOT EXISTS"
    " (SELECT 1 FROM run WHERE run.id = cancelling.run AND run.state = 0) LIMIT 1";

static bool copy_row(struct cancelling_list *list, struct prepared *statement) {
    struct cancelling *one = &list->all[list->count];
    one->run = (uint64_t)database_number_of(statement, 0);
    if (!arena_str(list->arena, database_bytes(statement, 1), &one->why)) return false;
    list->count++;
    return true;
}

static bool read_rows(struct database *db, struct cancelling_list *list, struct err *e) {
    cancelling_list_done(list);
    list->arena = arena_new(CANCELLING_MAX * (CANCELLING_WHY_BYTES + KIB));
    struct database_rows rows =
        database_ask(db, read_wishes,
                     VALUES(sql_number(db->replica), sql_number(CANCELLING_MAX),
                            sql_number((int64_t)list->after)),
                     e);
    while (database_next(&rows, e) && copy_row(list, rows.row)) continue;
    return database_end(&rows);
}

static bool read_list(struct database *db, void *ctx, struct err *e) {
    struct cancelling_list *list = ctx;
    return read_rows(db, list, e) &&
           database_has(db, find_over, (struct sql_values){0}, &list->over, e);
}

static void cancelling_on_read(const struct err *failed, void *ctx) {
    struct cancelling_list *list = ctx;
    list->on_done(list, failed, list->ctx);
}

void cancelling_read(struct store *store, struct loop *home, struct cancelling_list *list) {
    list->task = (struct store_task){.reads_only = true,
                                     .needs_tables = true,
                                     .fn = read_list,
                                     .on_done = cancelling_on_read};
    store_run(store, home, &list->task, list);
}

void cancelling_list_done(struct cancelling_list *list) {
    arena_free(list->arena);
    list->arena = NULL;
    list->count = 0;
}

/* --- tidying ------------------------------------------------------------------------------ */

void cancelling_tidy(struct store *store, struct loop *home) {
    store_run_single(store, home,
                     &(struct store_single){.sql = remove_over,
                                            .needs_tables = true,
                                            .lost = "wishes for runs that are over stay"});
}
