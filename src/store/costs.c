#include "store/costs.h"

#include "base/arena.h"
#include "base/mem.h"
#include "store/single.h"

#include <stdlib.h>

#define ANSWER_MAX_BYTES (16 * MIB)

/* --- put ---------------------------------------------------------------------------------- */

void costs_put(struct store *store, struct loop *loop, const struct costs_entry *entry) {
    store_run_single(
        store, loop,
        &(struct store_single){
            .sql = "INSERT INTO usual(agent, model, samples) VALUES(?, ?, ?)"
                   " ON CONFLICT(agent, model) DO UPDATE SET samples = excluded.samples",
            .values = VALUES(sql_bytes(entry->agent), sql_bytes(entry->model),
                             sql_bytes(entry->bytes)),
            .lost = "what calls usually cost is not kept"});
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
    struct database_rows rows =
        database_ask(db, "SELECT agent, model, samples FROM usual", (struct sql_values){0}, e);
    ask->count = 0;
    while (database_next(&rows, e) && costs_take(ask, rows.row)) continue;
    return database_end(&rows);
}

static void costs_on_read(const struct err *failed, void *ctx) {
    struct costs_ask *ask = ctx;
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
    ask->task =
        (struct store_task){.reads_only = true, .fn = run_read, .on_done = costs_on_read};
    store_run(store, loop, &ask->task, ask);
    return ask;
}

void costs_forget(struct costs_ask *ask) {
    if (ask) ask->done = NULL;
}
