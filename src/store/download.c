#include "store/download.h"

#include "base/mem.h"
#include "store/single.h"

#include <stdlib.h>

#define TEXTS_MAX_BYTES (1 * MIB) /* of all rows that are read */

struct download_ask {
    struct store_task task;
    struct buf asked;          /* owns the request's texts */
    struct download_row row;   /* the request */
    struct arena *texts;       /* owns the result's; each run of the task makes them again */
    struct download_row *rows; /* NULL, or room for DOWNLOAD_ROWS_MAX */
    size_t count;
    download_put_fn *put; /* both NULL: no caller waits */
    download_rows_fn *list;
    void *ctx;
};

static void store_download_on_done(const struct err *failed, void *ctx) {
    struct download_ask *ask = ctx;
    if (ask->put) ask->put(failed, ask->ctx);
    if (ask->list) ask->list(ask->rows, failed ? 0 : ask->count, failed, ask->ctx);
    buf_done(&ask->asked);
    arena_free(ask->texts);
    free(ask->rows);
    free(ask);
}

void download_forget(struct download_ask *ask) {
    if (!ask) return;
    ask->put = NULL;
    ask->list = NULL;
}

static struct download_ask *store_download_ask_new(bool (*fn)(struct database *, void *,
                                                              struct err *)) {
    struct download_ask *ask = MEM_NEW(struct download_ask);
    ask->task = (struct store_task){.fn = fn, .on_done = store_download_on_done};
    return ask;
}

static void keep_row(struct download_ask *ask, const struct download_row *row) {
    ask->row = *row;
    struct str *texts[] = {&ask->row.id,    &ask->row.connector, &ask->row.model,
                           &ask->row.owner, &ask->row.reason,    &ask->row.message};
    buf_keep_texts(&ask->asked, texts, ARRAY_LEN(texts));
}

/* --- writing ------------------------------------------------------------------------------ */

static bool put_row(struct database *db, void *ctx, struct err *e) {
    const struct download_ask *ask = ctx;
    const struct download_row *row = &ask->row;
    return database_run_with(
        db,
        "INSERT INTO download(name, connector, model, owner, reason, message,"
        " state, received, total, created_ms, updated_ms, retryable)"
        " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT(name) DO UPDATE SET connector = excluded.connector,"
        " model = excluded.model, owner = excluded.owner, reason = excluded.reason,"
        " message = excluded.message, state = excluded.state, received = excluded.received,"
        " total = excluded.total, created_ms = excluded.created_ms,"
        " updated_ms = excluded.updated_ms, retryable = excluded.retryable",
        VALUES(sql_bytes(row->id), sql_bytes(row->connector), sql_bytes(row->model),
               sql_bytes(row->owner), sql_bytes(row->reason), sql_bytes(row->message),
               sql_number(row->state), sql_number(row->received), sql_number(row->total),
               sql_number(row->created_ms), sql_number(row->updated_ms),
               sql_number(row->retryable)),
        e);
}

struct download_ask *download_put_start(struct store *store, struct loop *loop,
                                        const struct download_row *row, download_put_fn *done,
                                        void *ctx) {
    struct download_ask *ask = store_download_ask_new(put_row);
    keep_row(ask, row);
    ask->put = done;
    ask->ctx = ctx;
    store_run(store, loop, &ask->task, ask);
    return ask;
}

void download_drop(struct store *store, struct loop *loop, struct str id) {
    store_run_single(store, loop,
                     &(struct store_single){.sql = "DELETE FROM download WHERE name = ?",
                                            .values = VALUES(sql_bytes(id))});
}

/* --- reading ------------------------------------------------------------------------------ */

static bool read_row(struct prepared *statement, struct arena *arena, struct download_row *ret,
                     struct err *e) {
    struct str *texts[] = {&ret->id,    &ret->connector, &ret->model,
                           &ret->owner, &ret->reason,    &ret->message};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (!arena_str(arena, database_bytes(statement, (int)i), texts[i]))
            return err_set(e, ERR_TOO_LARGE, "the downloads are more than can be read at once");
    }
    ret->state = database_number_of(statement, 6);
    ret->received = database_number_of(statement, 7);
    ret->total = database_number_of(statement, 8);
    ret->created_ms = database_number_of(statement, 9);
    ret->updated_ms = database_number_of(statement, 10);
    ret->retryable = database_number_of(statement, 11) != 0;
    return true;
}

static bool list_rows(struct database *db, void *ctx, struct err *e) {
    struct download_ask *ask = ctx;
    arena_free(ask->texts);
    ask->texts = arena_new(TEXTS_MAX_BYTES);
    ask->count = 0;
    struct database_rows list =
        database_ask(db,
                     "SELECT name, connector, model, owner, reason, message, state,"
                     " received, total, created_ms, updated_ms, retryable FROM download"
                     " ORDER BY created_ms, name LIMIT ?",
                     VALUES(sql_number(DOWNLOAD_ROWS_MAX)), e);
    while (database_next(&list, e))
        list.ok = read_row(list.row, ask->texts, &ask->rows[ask->count++], e);
    return database_end(&list);
}

struct download_ask *download_list_start(struct store *store, struct loop *loop,
                                         download_rows_fn *done, void *ctx) {
    struct download_ask *ask = store_download_ask_new(list_rows);
    ask->task.reads_only = true;
    ask->rows = mem_zero(DOWNLOAD_ROWS_MAX, sizeof(*ask->rows));
    ask->list = done;
    ask->ctx = ctx;
    store_run(store, loop, &ask->task, ask);
    return ask;
}
