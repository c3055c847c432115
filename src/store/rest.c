#include "store/rest.h"

#include "base/mem.h"
#include "store/task.h"

#include <sqlite3.h>
#include <stdlib.h>

struct rest {
    struct store_task task;
    task_fn *fn;
    void *ctx;
};

static bool release(struct database *db, void *ctx, struct err *e) {
    struct rest *rest = ctx;
    (void)e;
    sqlite3_db_release_memory(db->handle);
    rest->fn(rest->ctx);
    return true;
}

static void on_done(const struct err *failed, void *ctx) {
    (void)failed;
    free(ctx);
}

void store_rest(struct store *store, struct loop *home, task_fn *fn, void *ctx) {
    struct rest *rest = MEM_NEW(struct rest);
    *rest = (struct rest){
        .task = {.reads_only = true, .fn = release, .on_done = on_done}, .fn = fn, .ctx = ctx};
    store_run(store, home, &rest->task, rest);
}
