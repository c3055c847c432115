#include "store/kept.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/task.h"

#include <assert.h>
#include <stdlib.h>

#define RECORDS_FIRST 16

struct kept_ask {
    struct store_task task;
    struct arena *arena;         /* of the texts */
    struct kept_record *records; /* to write, or read */
    size_t count, room;
    enum kept_space first, last; /* of a read */
    struct str from, upto;       /* its keys; both empty: all */
    kept_done_fn *done;          /* NULL: no caller waits */
    void *ctx;
};

static struct kept_ask *kept_ask_new(size_t max_bytes, kept_done_fn *done, void *ctx) {
    struct kept_ask *ask = MEM_NEW(struct kept_ask);
    ask->arena = arena_new(max_bytes);
    ask->done = done;
    ask->ctx = ctx;
    return ask;
}

static void on_done(const struct err *failed, void *ctx) {
    struct kept_ask *ask = ctx;
    bool read = ask->task.reads_only;
    if (ask->done)
        ask->done(ask->records, failed || !read ? 0 : ask->count, failed, ask->ctx);
    else if (failed && !read)
        log_warning("store: records of a contract are not kept: %s", failed->text);
    arena_free(ask->arena);
    free(ask->records);
    free(ask);
}

/* --- write -------------------------------------------------------------------------------- */

static bool write_record(struct database *db, const struct kept_record *record, struct err *e) {
    return record->gone
               ? database_run_with(db, KEPT_REMOVE,
                                   VALUES(sql_number(record->space), sql_bytes(record->key)), e)
               : database_run_with(db, KEPT_PUT,
                                   VALUES(sql_number(record->space), sql_bytes(record->key),
                                          sql_bytes(record->bytes)),
                                   e);
}

static bool run_write(struct database *db, void *ctx, struct err *e) {
    const struct kept_ask *ask = ctx;
    for (size_t i = 0; i < ask->count; i++) {
        if (!write_record(db, &ask->records[i], e)) return false;
    }
    return true;
}

struct kept_ask *kept_write_start(struct store *store, struct loop *loop,
                                  const struct kept_record *records, size_t count,
                                  kept_done_fn *done, void *ctx) {
    struct kept_ask *ask = kept_ask_new(64 * MIB, done, ctx);
    ask->records = mem_zero(count + 1, sizeof(*ask->records));
    for (; ask->count < count; ask->count++) {
        struct kept_record *copy = &ask->records[ask->count];
        *copy = records[ask->count];
        bool fits = arena_str(ask->arena, records[ask->count].key, &copy->key) &&
                    arena_str(ask->arena, records[ask->count].bytes, &copy->bytes);
        assert(fits); /* records are small */
        (void)fits;
    }
    ask->task = (struct store_task){.fn = run_write, .on_done = on_done};
    store_run(store, loop, &ask->task, ask);
    return ask;
}

/* --- read --------------------------------------------------------------------------------- */

static bool kept_take_row(struct kept_ask *ask, struct prepared *row, struct err *e) {
    if (ask->count == ask->room) {
        ask->room = ask->room ? 2 * ask->room : RECORDS_FIRST;
        ask->records = mem_resize(ask->records, ask->room * sizeof(*ask->records));
    }
    struct kept_record *record = &ask->records[ask->count];
    *record = (struct kept_record){.space = (enum kept_space)database_number_of(row, 0)};
    if (!arena_str(ask->arena, database_bytes(row, 1), &record->key) ||
        !arena_str(ask->arena, database_bytes(row, 2), &record->bytes))
        return err_set(e, ERR_RESOURCE_EXHAUSTED, "the records have more than %zu bytes",
                       KEPT_READ_MAX_BYTES);
    ask->count++;
    return true;
}

static struct database_rows ask_for_rows(struct database *db, const struct kept_ask *ask,
                                         struct err *e) {
    if (!ask->upto.len)
        return database_ask(db,
                            "SELECT space, key, bytes FROM kept WHERE space BETWEEN ? AND ?"
                            " ORDER BY space, key",
                            VALUES(sql_number(ask->first), sql_number(ask->last)), e);
    return database_ask(
        db,
        "SELECT space, key, bytes FROM kept WHERE space = ? AND key >= ? AND key < ?"
        " ORDER BY key",
        VALUES(sql_number(ask->first), sql_bytes(ask->from), sql_bytes(ask->upto)), e);
}

static bool run_read(struct database *db, void *ctx, struct err *e) {
    struct kept_ask *ask = ctx;
    struct database_rows rows = ask_for_rows(db, ask, e);
    ask->count = 0;
    while (database_next(&rows, e)) rows.ok = kept_take_row(ask, rows.row, e);
    return database_end(&rows);
}

static struct kept_ask *read_start(struct store *store, struct loop *loop,
                                   struct kept_ask *ask) {
    ask->task = (struct store_task){.reads_only = true, .fn = run_read, .on_done = on_done};
    store_run(store, loop, &ask->task, ask);
    return ask;
}

struct kept_ask *kept_read_start(struct store *store, struct loop *loop, enum kept_space first,
                                 enum kept_space last, kept_done_fn *done, void *ctx) {
    struct kept_ask *ask = kept_ask_new(KEPT_READ_MAX_BYTES, done, ctx);
    ask->first = first;
    ask->last = last;
    return read_start(store, loop, ask);
}

struct kept_ask *kept_read_keys_start(struct store *store, struct loop *loop,
                                      enum kept_space space, struct str from, struct str upto,
                                      kept_done_fn *done, void *ctx) {
    struct kept_ask *ask = kept_ask_new(KEPT_READ_MAX_BYTES, done, ctx);
    ask->first = ask->last = space;
    bool fits =
        arena_str(ask->arena, from, &ask->from) && arena_str(ask->arena, upto, &ask->upto);
    assert(fits && upto.len > 0);
    (void)fits;
    return read_start(store, loop, ask);
}

void kept_forget(struct kept_ask *ask) {
    if (ask) ask->done = NULL;
}
