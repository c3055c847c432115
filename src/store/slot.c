#include "store/slot.h"

#include "base/mem.h"
#include "store/changes.h"

#include <stdlib.h>

static const char enter[] =
    "INSERT INTO slot(holder, number, pool, app, background) VALUES(?1, ?2, ?3, ?4, ?5)"
    " ON CONFLICT(holder, number) DO NOTHING";

#define RUNNING(of)                                                                            \
    "(SELECT count(*) FROM slot AS r WHERE r.pool = ?3 AND r.held = 1 AND " of ")"

/* Those that wait before this call. */
#define BEFORE "o.held = 0 AND o.place < mine.place"

/* Of those, the ones that could run themselves: the others delay nobody. */
#define COULD_RUN                                                                              \
    RUNNING("r.app = o.app")                                                                   \
    " < ?5 AND (o.background = 0 OR " RUNNING("r.background = 1") " < ?6)"

static const char take[] =
    "UPDATE slot AS mine SET held = 1 WHERE mine.holder = ?1 AND mine.number = ?2 AND"
    " mine.held = 0 AND"
    " (SELECT count(*) FROM slot AS o WHERE o.pool = ?3 AND"
    "  (o.held = 1 OR (" BEFORE " AND " COULD_RUN "))) < ?4 AND"
    " (SELECT count(*) FROM slot AS o WHERE o.pool = ?3 AND o.app = mine.app AND"
    "  (o.held = 1 OR (" BEFORE " AND " COULD_RUN "))) < ?5 AND"
    " (mine.background = 0 OR (SELECT count(*) FROM slot AS o WHERE o.pool = ?3 AND"
    "  o.background = 1 AND (o.held = 1 OR (" BEFORE " AND " COULD_RUN "))) < ?6)";

static const char is_held[] = "SELECT held FROM slot WHERE holder = ?1 AND number = ?2";

static bool look(struct database *db, struct slot_request *request, struct err *e) {
    struct prepared *statement = NULL;
    bool row = false,
         ok = database_first(db, is_held,
                             VALUES(sql_number(request->replica), sql_number(request->number)),
                             &statement, &row, e);
    request->held = ok && row && database_number_of(statement, 0) == 1;
    database_finalize(statement);
    return ok;
}

/* It may have been taken before, by a commit whose outcome was unknown. Those that wait behind it
 * may have waited for it alone, so they hear of it. */
static bool ask_slot(struct database *db, void *ctx, struct err *e) {
    struct slot_request *request = ctx;
    bool ok =
        database_run_with(db, enter,
                          VALUES(sql_number(request->replica), sql_number(request->number),
                                 sql_bytes(request->pool), sql_bytes(request->app),
                                 sql_number(request->background)),
                          e) &&
        database_run_with(db, take,
                          VALUES(sql_number(request->replica), sql_number(request->number),
                                 sql_bytes(request->pool), sql_number(request->all_max),
                                 sql_number(request->app_max),
                                 sql_number(request->background_max)),
                          e);
    if (ok && database_changes(db) == 1) db->changed |= CHANGE_SLOTS;
    return ok && look(db, request, e);
}

static void on_asked(struct store_task *task, const struct err *failed, void *ctx) {
    struct slot_request *request = ctx;
    (void)task;
    request->on_done(request, failed, request->ctx);
}

void slot_ask(struct store *store, struct loop *home, struct slot_request *request) {
    request->replica = (int64_t)store_epoch(store);
    request->task = (struct store_task){.light = true,
                                        .takes = true,
                                        .fn = ask_slot,
                                        .home = home,
                                        .on_done = on_asked,
                                        .ctx = request};
    store_run(store, &request->task);
}

/* --- giving back -------------------------------------------------------------------------- */

struct returning {
    struct store_task task;
    int64_t replica, number;
};

static bool remove_slot(struct database *db, void *ctx, struct err *e) {
    const struct returning *returning = ctx;
    db->changed |= CHANGE_SLOTS;
    return database_run_with(
        db, "DELETE FROM slot WHERE holder = ?1 AND number = ?2",
        VALUES(sql_number(returning->replica), sql_number(returning->number)), e);
}

/* The store was closed before: what this replica has is free when it ends. */
static void on_returned(struct store_task *task, const struct err *failed, void *ctx) {
    (void)task, (void)failed;
    free(ctx);
}

void slot_give_back(struct store *store, struct loop *home, int64_t number) {
    struct returning *returning = MEM_NEW(struct returning);
    returning->replica = (int64_t)store_epoch(store);
    returning->number = number;
    returning->task = (struct store_task){.light = true,
                                          .insists = true,
                                          .fn = remove_slot,
                                          .home = home,
                                          .on_done = on_returned,
                                          .ctx = returning};
    store_run(store, &returning->task);
}
