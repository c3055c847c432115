#include "store/costs.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/task.h"

#include <stdlib.h>

#define ANSWER_MAX_BYTES (16 * MIB)

/* --- put ---------------------------------------------------------------------------------- */

struct put {
    struct store_task task;
    struct buf texts;
    struct costs_entry entry; /* its texts are in `texts` */
};

static bool run_put(struct database *db, void *ctx, struct err *e) {
    const struct put *put = ctx;
    return database_run_with(
        db,
        "INSERT INTO usual(agent, model, samples) VALUES(?, ?, ?)"
        " ON CONFLICT(agent, model) DO UPDATE SET samples = excluded.samples",
        VALUES(sql_bytes(put->entry.agent), sql_bytes(put->entry.model),
               sql_bytes(put->entry.bytes)),
        e);
}

static void on_put(struct store_task *task, const struct err *failed, void *ctx) {
    struct put *put = ctx;
    (void)task;
    if (failed) log_debug("what calls usually cost is not kept: %s", failed->text);
    buf_done(&put->texts);
    free(put);
}

void costs_put(struct store *store, struct loop *loop, const struct costs_entry *entry) {
    struct put *put = MEM_NEW(struct put);
    struct str *texts[] = {&put->entry.agent, &put->entry.model, &put->entry.bytes};
    put->entry = *entry;
    buf_keep_texts(&put->texts, texts, ARRAY_LEN(texts));
    put->task = (struct store_task){.fn = run_put, .home = loop, .on_done = on_put, .ctx = put};
    store_run(store, &put->task);
}

/* --- read --------------------------------------------------------------------------------- */

struct costs_ask {
    struct store_task task;
    struct arena *arena;
    struct costs_entry *entries; /* room for COSTS_ENTRIES_MAX */
    size_t count;
    costs_read_fn *done; /* NULL: cancelled */
    void *ctx;
};

/* False: the array is full. */
static bool costs_take(struct costs_ask *ask, struct prepared *row) {
    struct costs_entry *entry = &ask->entries[ask->count];
    if (ask->count == COSTS_ENTRIES_MAX ||
        !arena_str(ask->arena, database_bytes(row, 0), &entry->agent) ||
        !arena_str(ask->arena, database_bytes(row, 1), &entry->model) ||
        !arena_str(ask->arena, database_bytes(row, 2), &entry->bytes))
        return false;
    ask->count++;
    return true;
}

static bool run_read(struct database *db, void *ctx, struct err *e) {
    struct costs_ask *ask = ctx;
    struct prepared *rows = NULL;
    bool row = false;
    ask->count = 0;
    bool ok = database_prepare(db, "SELECT agent, model, samples FROM usual", &rows, e);
    while (ok && (ok = database_row(db, rows, &row, e)) && row && costs_take(ask, rows))
        continue;
    database_finalize(rows);
    return ok;
}

static void on_read(struct store_task *task, const struct err *failed, void *ctx) {
    struct costs_ask *ask = ctx;
    (void)task;
    if (ask->done) ask->done(ask->entries, failed ? 0 : ask->count, failed, ask->ctx);
    arena_free(ask->arena);
    free(ask->entries);
    free(ask);
}

struct costs_ask *costs_read_start(struct store *store, struct loop *loop, costs_read_fn *done,
                                   void *ctx) {
    struct costs_ask *ask = MEM_NEW(struct costs_ask);
    ask->arena = arena_new(ANSWER_MAX_BYTES);
    ask->entries = mem_zero(COSTS_ENTRIES_MAX, sizeof(*ask->entries));
    ask->done = done;
    ask->ctx = ctx;
    ask->task = (struct store_task){
        .reads_only = true, .fn = run_read, .home = loop, .on_done = on_read, .ctx = ask};
    store_run(store, &ask->task);
    return ask;
}

void costs_forget(struct costs_ask *ask) {
    if (ask) ask->done = NULL;
}
