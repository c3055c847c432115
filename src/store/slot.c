#include "store/slot.h"

#include "store/changes.h"
#include "store/single.h"

static const char enter[] =
    "INSERT INTO slot(holder, number, pool, app, background) VALUES(?1, ?2, ?3, ?4, ?5)"
    " ON CONFLICT(holder, number) DO NOTHING";

#define RUNNING(of)                                                                            \
    "(SELECT count(*) FROM slot AS r WHERE r.pool = ?3 AND r.held = 1 AND " of ")"

/* The calls that wait before this one. */
#define BEFORE "o.held = 0 AND o.place < mine.place"

/* Of those, the ones that could run themselves: the others delay no call. */
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

static const char is_held[] =
    "SELECT 1 FROM slot WHERE holder = ?1 AND number = ?2 AND held = 1";

/* It may have been taken before, by a commit whose outcome was unknown. Calls that wait after it
 * may have waited for it alone, so they hear of it. */
static bool ask_slot(struct database *db, void *ctx, struct err *e) {
    struct slot_request *request = ctx;
    bool ok = database_run_with(db, enter,
                                VALUES(sql_number(db->replica), sql_number(request->number),
                                       sql_bytes(request->pool), sql_bytes(request->app),
                                       sql_number(request->background)),
                                e) &&
              database_run_with(db, take,
                                VALUES(sql_number(db->replica), sql_number(request->number),
                                       sql_bytes(request->pool), sql_number(request->all_max),
                                       sql_number(request->app_max),
                                       sql_number(request->background_max)),
                                e);
    if (ok && database_changes(db) == 1) db->changed |= CHANGE_SLOTS;
    return ok && database_has(db, is_held,
                              VALUES(sql_number(db->replica), sql_number(request->number)),
                              &request->held, e);
}

static void on_asked(const struct err *failed, void *ctx) {
    struct slot_request *request = ctx;
    request->on_done(request, failed, request->ctx);
}

void slot_ask(struct store *store, struct loop *home, struct slot_request *request) {
    request->task =
        (struct store_task){.light = true, .takes = true, .fn = ask_slot, .on_done = on_asked};
    store_run(store, home, &request->task, request);
}

/* --- giving back -------------------------------------------------------------------------- */

/* A failure says that the store was closed before: what this replica has is free when it ends. */
void slot_give_back(struct store *store, struct loop *home, int64_t number) {
    store_run_single(
        store, home,
        &(struct store_single){
            .sql = "DELETE FROM slot WHERE holder = ?1 AND number = ?2",
            .values = VALUES(sql_number((int64_t)store_epoch(store)), sql_number(number)),
            .changed = CHANGE_SLOTS,
            .light = true,
            .insists = true});
}
