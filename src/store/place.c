#include "store/place.h"

#include "store/changes.h"
#include "store/single.h"

static const char take[] =
    "INSERT INTO place(run, workspace, holder) SELECT ?1, ?2, ?3 WHERE"
    " (SELECT count(*) FROM place WHERE workspace = ?2) < ?4 ON CONFLICT(run) DO NOTHING";

/* It may have been taken before, by a commit whose outcome was unknown. */
static bool take_place(struct database *db, void *ctx, struct err *e) {
    struct place_request *request = ctx;
    return database_run_with(db, take,
                             VALUES(sql_number((int64_t)request->run),
                                    sql_bytes(request->workspace), sql_number(db->replica),
                                    sql_number(request->max)),
                             e) &&
           database_has(db, "SELECT 1 FROM place WHERE run = ?1",
                        VALUES(sql_number((int64_t)request->run)), &request->taken, e);
}

static void on_taken(const struct err *failed, void *ctx) {
    struct place_request *request = ctx;
    request->on_done(request, failed, request->ctx);
}

void place_take(struct store *store, struct loop *home, struct place_request *request) {
    request->task = (struct store_task){
        .light = true, .takes = true, .fn = take_place, .on_done = on_taken};
    store_run(store, home, &request->task, request);
}

uint64_t place_change(struct str workspace) {
    return CHANGE_FREED | change_name(workspace);
}

/* A failure says that the store was closed before: what this replica has is free when it ends. */
void place_give_back(struct store *store, struct loop *home, uint64_t run,
                     struct str workspace) {
    store_run_single(store, home,
                     &(struct store_single){.sql = "DELETE FROM place WHERE run = ?1",
                                            .values = VALUES(sql_number((int64_t)run)),
                                            .changed = place_change(workspace),
                                            .light = true,
                                            .insists = true});
}
