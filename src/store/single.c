#include "store/single.h"

#include "base/mem.h"
#include "store/changes.h"

#include <assert.h>
#include <stdlib.h>

struct single_task {
    struct store_task task;
    struct store_single single; /* its values are those below */
    struct sql_value values[SINGLE_VALUES_MAX];
    struct buf texts; /* of the values */
};

static bool single_run(struct database *db, void *ctx, struct err *e) {
    const struct store_single *single = &((struct single_task *)ctx)->single;
    db->changed = change_join(db->changed, single->changed);
    return database_run_with(db, single->sql, single->values, e);
}

static void single_on_done(const struct err *failed, void *ctx) {
    struct single_task *task = ctx;
    const struct store_single *single = &task->single;
    if (failed && single->lost && log_wants(single->level))
        log_line(single->level, "%s: %s", single->lost, failed->text);
    if (single->done) single->done(failed, single->ctx);
    buf_done(&task->texts);
    free(task);
}

void store_run_single(struct store *store, struct loop *home,
                      const struct store_single *single) {
    struct single_task *task = MEM_NEW(struct single_task);
    struct str *texts[SINGLE_VALUES_MAX];
    size_t count = single->values.count;
    assert(count <= SINGLE_VALUES_MAX);
    for (size_t i = 0; i < count; i++) {
        task->values[i] = single->values.at[i];
        texts[i] = &task->values[i].bytes; /* empty where it is a number */
    }
    buf_keep_texts(&task->texts, texts, count);
    task->single = *single;
    task->single.values.at = task->values;
    task->task = (struct store_task){.light = single->light,
                                     .insists = single->insists,
                                     .needs_tables = single->needs_tables,
                                     .fn = single_run,
                                     .on_done = single_on_done};
    store_run(store, home, &task->task, task);
}
