#include "store/cancelling.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "store/changes.h"

#include <stdlib.h>

/* --- wishing ------------------------------------------------------------------------------ */

struct cancelling_wish {
    struct store_task task;
    uint64_t run;
    bool wished;
    cancelling_wished_fn *done; /* NULL: nobody waits */
    void *ctx;
    struct str why; /* in `room` */
    char room[];
};

static bool remove_over(struct database *db, void *ctx, struct err *e) {
    (void)ctx;
    return database_run(
        db, "DELETE FROM cancelling WHERE run NOT IN (SELECT id FROM run WHERE state = 0)", e);
}

static bool has_wish(struct database *db, struct cancelling_wish *wish, struct err *e) {
    struct prepared *statement = NULL;
    bool ok =
        database_first(db, "SELECT 1 FROM cancelling WHERE run = ?1",
                       VALUES(sql_number((int64_t)wish->run)), &statement, &wish->wished, e);
    database_finalize(statement);
    return ok;
}

static bool put_wish(struct database *db, void *ctx, struct err *e) {
    struct cancelling_wish *wish = ctx;
    db->changed |= CHANGE_POSTED;
    return remove_over(db, NULL, e) &&
           database_run_with(db,
                             "INSERT INTO cancelling(run, why) SELECT id, ?2 FROM run"
                             " WHERE id = ?1 AND state = 0 ON CONFLICT(run) DO NOTHING",
                             VALUES(sql_number((int64_t)wish->run), sql_bytes(wish->why)), e) &&
           has_wish(db, wish, e);
}

static void on_wished(struct store_task *task, const struct err *failed, void *ctx) {
    struct cancelling_wish *wish = ctx;
    (void)task;
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
    wish->task = (struct store_task){.insists = true,
                                     .needs_tables = true,
                                     .fn = put_wish,
                                     .home = home,
                                     .on_done = on_wished,
                                     .ctx = wish};
    store_run(store, &wish->task);
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
    struct prepared *statement = NULL;
    bool row, ok = database_prepare(db, read_wishes, &statement, e);
    cancelling_list_done(list);
    list->arena = arena_new(CANCELLING_MAX * (CANCELLING_WHY_BYTES + KIB));
    if (ok) {
        database_bind_number(statement, 1, list->replica);
        database_bind_number(statement, 2, CANCELLING_MAX);
        database_bind_number(statement, 3, (int64_t)list->after);
    }
    while (ok && (ok = database_row(db, statement, &row, e)) && row) {
        if (!copy_row(list, statement)) break;
    }
    database_finalize(statement);
    return ok;
}

static bool look_for_over(struct database *db, struct cancelling_list *list, struct err *e) {
    struct prepared *statement = NULL;
    bool ok = database_first(db, find_over, (struct sql_values){0}, &statement, &list->over, e);
    database_finalize(statement);
    return ok;
}

static bool read_list(struct database *db, void *ctx, struct err *e) {
    struct cancelling_list *list = ctx;
    return read_rows(db, list, e) && look_for_over(db, list, e);
}

static void on_read(struct store_task *task, const struct err *failed, void *ctx) {
    struct cancelling_list *list = ctx;
    (void)task;
    list->on_done(list, failed, list->ctx);
}

void cancelling_read(struct store *store, struct loop *home, struct cancelling_list *list) {
    list->replica = (int64_t)store_epoch(store);
    list->task = (struct store_task){.reads_only = true,
                                     .needs_tables = true,
                                     .fn = read_list,
                                     .home = home,
                                     .on_done = on_read,
                                     .ctx = list};
    store_run(store, &list->task);
}

void cancelling_list_done(struct cancelling_list *list) {
    arena_free(list->arena);
    list->arena = NULL;
    list->count = 0;
}

/* --- tidying ------------------------------------------------------------------------------ */

struct cancelling_tidy {
    struct store_task task;
};

static void on_tidied(struct store_task *task, const struct err *failed, void *ctx) {
    (void)task;
    if (failed) log_debug("wishes for runs that are over stay: %s", failed->text);
    free(ctx);
}

void cancelling_tidy(struct store *store, struct loop *home) {
    struct cancelling_tidy *tidy = MEM_NEW(struct cancelling_tidy);
    tidy->task = (struct store_task){.needs_tables = true,
                                     .fn = remove_over,
                                     .home = home,
                                     .on_done = on_tidied,
                                     .ctx = tidy};
    store_run(store, &tidy->task);
}
