#include "store/place.h"

#include "base/mem.h"
#include "store/changes.h"

#include <stdlib.h>

static const char take[] =
    "INSERT INTO place(run, workspace, holder) SELECT ?1, ?2, ?3 WHERE"
    " (SELECT count(*) FROM place WHERE workspace = ?2) < ?4 ON CONFLICT(run) DO NOTHING";

/* It may have been taken before, by a commit whose outcome was unknown. */
static bool take_place(struct database *db, void *ctx, struct err *e) {
    struct place_request *request = ctx;
    struct prepared *statement = NULL;
    bool row = false,
         ok = database_run_with(db, take,
                                VALUES(sql_number((int64_t)request->run),
                                       sql_bytes(request->workspace),
                                       sql_number(request->replica), sql_number(request->max)),
                                e) &&
              database_first(db, "SELECT 1 FROM place WHERE run = ?1",
                             VALUES(sql_number((int64_t)request->run)), &statement, &row, e);
    database_finalize(statement);
    request->taken = ok && row;
    return ok;
}

static void on_taken(struct store_task *task, const struct err *failed, void *ctx) {
    struct place_request *request = ctx;
    (void)task;
    request->on_done(request, failed, request->ctx);
}

void place_take(struct store *store, struct loop *home, struct place_request *request) {
    request->replica = (int64_t)store_epoch(store);
    request->task = (struct store_task){.light = true,
                                        .takes = true,
                                        .fn = take_place,
                                        .home = home,
                                        .on_done = on_taken,
                                        .ctx = request};
    store_run(store, &request->task);
}

uint64_t place_change(struct str workspace) {
    return CHANGE_FREED | change_name(workspace);
}

struct giving {
    struct store_task task;
    uint64_t run, change;
};

static bool remove_place(struct database *db, void *ctx, struct err *e) {
    const struct giving *giving = ctx;
    db->changed = change_join(db->changed, giving->change);
    return database_run_with(db, "DELETE FROM place WHERE run = ?1",
                             VALUES(sql_number((int64_t)giving->run)), e);
}

/* The store was closed before: what this replica has is free when it ends. */
static void on_given(struct store_task *task, const struct err *failed, void *ctx) {
    (void)task, (void)failed;
    free(ctx);
}

void place_give_back(struct store *store, struct loop *home, uint64_t run,
                     struct str workspace) {
    struct giving *giving = MEM_NEW(struct giving);
    giving->run = run;
    giving->change = place_change(workspace);
    giving->task = (struct store_task){.light = true,
                                       .insists = true,
                                       .fn = remove_place,
                                       .home = home,
                                       .on_done = on_given,
                                       .ctx = giving};
    store_run(store, &giving->task);
}
