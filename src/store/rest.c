#include "base/mem.h"
#include "store/task.h"

#include <sqlite3.h>
#include <stdlib.h>

static bool release(struct database *db, void *ctx, struct err *e) {
    (void)ctx, (void)e;
    sqlite3_db_release_memory(db->handle);
    return true;
}

static void on_done(struct store_task *task, const struct err *failed, void *ctx) {
    (void)failed, (void)ctx;
    free(task);
    mem_give_back();
}

void store_rest(struct store *store, struct loop *home) {
    struct store_task *task = MEM_NEW(struct store_task);
    *task = (struct store_task){
        .reads_only = true, .fn = release, .home = home, .on_done = on_done};
    store_run(store, task);
}
