#include "store/artifact.h"

#include "base/clock.h"
#include "base/mem.h"
#include "store/artifact_object.h"
#include "store/doomed.h"
#include "store/task.h"

#include <assert.h>
#include <stdlib.h>

struct artifact_ask {
    struct store_task task;
    struct buf asked;              /* owns the request's texts */
    struct buf found, bytes;       /* own the result's; each run of the task makes them again */
    struct str workspace, token;   /* from the request */
    struct artifact_reader reader; /* the same; all empty: any of the workspace */
    struct artifact artifact;      /* the request, then the result */
    struct artifact_place place;   /* where the bytes are */
    size_t offset, limit;
    struct store *store;
    struct artifact_move *move; /* NULL: none is out */
    artifact_done_fn *done;     /* NULL: cancelled */
    void *ctx;
};

static void ask_end(struct artifact_ask *ask, const struct err *failed) {
    if (ask->done) ask->done(&ask->artifact, failed, ask->ctx);
    buf_done(&ask->asked);
    buf_done(&ask->found);
    buf_done(&ask->bytes);
    free(ask);
}

static void artifact_on_done(const struct err *failed, void *ctx) {
    ask_end(ctx, failed);
}

void artifact_forget(struct artifact_ask *ask) {
    if (!ask) return;
    ask->done = NULL;
    if (!ask->move) return; /* the store still has it */
    artifact_object_cancel(ask->move);
    ask_end(ask, NULL);
}

static struct artifact_ask *
artifact_ask_new(struct store *store, artifact_done_fn *done, void *ctx,
                 bool (*fn)(struct database *, void *, struct err *)) {
    struct artifact_ask *ask = MEM_NEW(struct artifact_ask);
    ask->store = store;
    ask->place = (struct artifact_place){.object = STR_EMPTY, .etag = STR_EMPTY};
    ask->task = (struct store_task){.fn = fn, .on_done = artifact_on_done};
    ask->done = done;
    ask->ctx = ctx;
    return ask;
}

/* --- put ---------------------------------------------------------------------------------- */

static bool put_token(struct database *db, const struct artifact *artifact, struct err *e) {
    return database_run_with(db, "INSERT INTO artifact_token(token, artifact) VALUES(?, ?)",
                             VALUES(sql_bytes(artifact->token), sql_number(artifact->id)), e);
}

static bool artifact_run_put(struct database *db, void *ctx, struct err *e) {
    struct artifact_ask *ask = ctx;
    struct artifact *artifact = &ask->artifact;
    bool ok = database_run_with(
        db,
        "INSERT INTO artifact(workspace, run, name, content_type, created_ms, bytes)"
        " VALUES(?, ?, ?, ?, ?, ?)",
        VALUES(sql_bytes(ask->workspace), sql_number((int64_t)artifact->run),
               sql_bytes(artifact->name), sql_bytes(artifact->content_type),
               sql_number(artifact->created_ms),
               sql_bytes(ask->place.object.len ? STR_EMPTY : artifact->bytes)),
        e);
    ok = ok && database_new_id(db, &artifact->id, e);
    if (ok && ask->place.object.len)
        ok = artifact_object_keep(db, artifact->id, &ask->place, e);
    return ok && (artifact->token.len == 0 || put_token(db, artifact, e));
}

static bool run_doom(struct database *db, void *ctx, struct err *e) {
    struct artifact_ask *ask = ctx;
    return doomed_add(db, ask->place.object, ask->artifact.created_ms + ARTIFACT_UPLOAD_MS,
                      DOOMED_PARTS, e);
}

static void on_sent(struct str bytes, struct str etag, const struct err *failed, void *ctx) {
    struct artifact_ask *ask = ctx;
    (void)bytes;
    ask->move = NULL;
    if (failed) {
        struct err why = *failed;
        err_add(&why, "the artifact was not kept");
        ask_end(ask, &why);
        return;
    }
    ask->place.etag = etag;
    buf_keep_texts(&ask->found, (struct str *const[]){&ask->place.etag}, 1);
    ask->task.fn = artifact_run_put;
    ask->task.on_done = artifact_on_done;
    store_run(ask->store, ask->task.home, &ask->task, ask);
}

/* It is listed: a crash from here on leaves nothing in the bucket for good. */
static void on_doomed(const struct err *failed, void *ctx) {
    struct artifact_ask *ask = ctx;
    if (failed || !ask->done)
        ask_end(ask, failed);
    else
        ask->move =
            artifact_object_put(ask->store, ask->task.home, ask->place.object,
                                ask->artifact.content_type, ask->artifact.bytes, on_sent, ask);
}

static void put_object_first(struct artifact_ask *ask, struct buf *name) {
    artifact_object_name(ask->workspace, name);
    ask->place.object = buf_str(name);
    ask->place.size = ask->artifact.bytes.len;
    digest_text(ask->artifact.bytes, ask->place.sum);
    ask->task.fn = run_doom;
    ask->task.on_done = on_doomed;
}

bool artifact_put_start(struct store *store, struct loop *loop, struct str workspace,
                        const struct artifact *artifact, artifact_done_fn *done, void *ctx,
                        struct artifact_ask **ret, struct err *e) {
    size_t names =
        workspace.len + artifact->name.len + artifact->content_type.len + artifact->token.len;
    assert(workspace.len);
    assert(artifact->token.len == 0 || artifact->token.len == ARTIFACT_TOKEN_BYTES);
    if (artifact->bytes.len > ARTIFACT_MAX_BYTES || names > 64 * KIB)
        return err_set(e, ERR_TOO_LARGE, "an artifact may have at most %zu bytes",
                       (size_t)ARTIFACT_MAX_BYTES);
    struct artifact_ask *ask = artifact_ask_new(store, done, ctx, artifact_run_put);
    struct buf name;
    buf_init(&name, 2 * ARTIFACT_KEY_BYTES);
    struct artifact *kept = &ask->artifact;
    ask->workspace = workspace;
    *kept = *artifact;
    kept->created_ms = clock_unix_ms();
    kept->size = artifact->bytes.len;
    if (store_bucket(store)) put_object_first(ask, &name);
    struct str *const texts[] = {&ask->workspace, &kept->name,  &kept->content_type,
                                 &kept->bytes,    &kept->token, &ask->place.object};
    buf_keep_texts(&ask->asked, texts, ARRAY_LEN(texts));
    buf_done(&name);
    store_run(store, loop, &ask->task, ask);
    *ret = ask;
    return true;
}

/* --- get ---------------------------------------------------------------------------------- */

/* Read only the requested piece of the bytes; a statement would load the whole column. */
static bool copy_from_sqlite(struct database *db, int64_t id, size_t offset, size_t count,
                             char *room, struct err *e) {
    sqlite3_blob *blob = NULL;
    bool ok =
        sqlite3_blob_open(db->handle, "main", "artifact", "bytes", id, 0, &blob) == SQLITE_OK &&
        sqlite3_blob_read(blob, room, (int)count, (int)offset) == SQLITE_OK;
    if (!ok) database_fail(db, e);
    sqlite3_blob_close(blob);
    return ok;
}

static bool copy_from_postgres(struct database *db, int64_t id, size_t offset, size_t count,
                               char *room, struct err *e) {
    struct database_rows read = database_ask(
        db,
        "SELECT substr(bytes, CAST(?2 AS INTEGER), CAST(?3 AS INTEGER))"
        " FROM artifact WHERE id = ?1",
        VALUES(sql_number(id), sql_number((int64_t)offset + 1), sql_number((int64_t)count)), e);
    struct str bytes = database_next(&read, e) ? database_bytes(read.row, 0) : STR_EMPTY;
    if (bytes.len == count)
        memcpy(room, bytes.at, count);
    else if (read.ok)
        read.ok = err_set(e, ERR_DATA_LOSS,
                          "store %s: an artifact is shorter than it should be", db->path);
    return database_end(&read);
}

static size_t piece_bytes(const struct artifact_ask *ask) {
    size_t size = ask->artifact.size;
    size_t left = ask->offset < size ? size - ask->offset : 0;
    return left < ask->limit ? left : ask->limit;
}

static bool read_piece(struct artifact_ask *ask, struct database *db, struct err *e) {
    struct artifact *artifact = &ask->artifact;
    size_t count = piece_bytes(ask);
    artifact->bytes = STR_EMPTY;
    if (count == 0 || ask->place.object.len) return true;
    buf_done(&ask->bytes);
    buf_init(&ask->bytes, count);
    char *room = buf_room(&ask->bytes, count);
    assert(room);
    bool ok = database_is_postgres(db)
                  ? copy_from_postgres(db, artifact->id, ask->offset, count, room, e)
                  : copy_from_sqlite(db, artifact->id, ask->offset, count, room, e);
    buf_grew(&ask->bytes, count);
    artifact->bytes = buf_str(&ask->bytes);
    return ok;
}

static void artifact_take_row(struct artifact_ask *ask, struct prepared *row) {
    struct artifact *artifact = &ask->artifact;
    artifact->id = database_number_of(row, 0);
    artifact->run = (uint64_t)database_number_of(row, 1);
    artifact->name = database_bytes(row, 2);
    artifact->content_type = database_bytes(row, 3);
    artifact->created_ms = database_number_of(row, 4);
    artifact->size = (size_t)database_number_of(row, 5);
    artifact->token = database_bytes(row, 6);
    ask->place.object = database_bytes(row, 7);
    ask->place.etag = database_bytes(row, 8);
    ask->place.size = artifact->size;
    struct str *const texts[] = {&artifact->name, &artifact->content_type, &artifact->token,
                                 &ask->place.object, &ask->place.etag};
    buf_done(&ask->found);
    buf_keep_texts(&ask->found, texts, ARRAY_LEN(texts));
}

/* SQLite knows the length without reading the bytes. */
#define COLUMNS                                                                                \
    "a.id, a.run, a.name, a.content_type, a.created_ms, coalesce(o.size, length(a.bytes)),"    \
    " t.token, o.object, o.etag"

static const char by_id[] =
    "SELECT " COLUMNS " FROM artifact AS a LEFT JOIN artifact_token AS t ON t.artifact = a.id"
    " LEFT JOIN artifact_object AS o ON o.artifact = a.id"
    " WHERE a.id = ?1 AND a.workspace = ?2";
/* Where its run is another one of the session, the tables of runs and sessions tell. */
static const char by_session[] =
    "SELECT " COLUMNS " FROM artifact AS a LEFT JOIN artifact_token AS t ON t.artifact = a.id"
    " LEFT JOIN artifact_object AS o ON o.artifact = a.id"
    " WHERE a.id = ?1 AND a.workspace = ?2 AND t.token IS NULL AND (a.run = ?5 OR EXISTS("
    "SELECT 1 FROM run AS r JOIN session AS s ON s.id = r.session WHERE r.id = a.run"
    " AND s.workspace = ?2 AND s.user = ?3 AND s.name = ?4))";
static const char by_token[] =
    "SELECT " COLUMNS " FROM artifact_token AS t JOIN artifact AS a ON a.id = t.artifact"
    " LEFT JOIN artifact_object AS o ON o.artifact = a.id"
    " WHERE t.token = ?2";

static bool find_it(const struct artifact_ask *ask, struct database *db, struct prepared **ret,
                    struct err *e) {
    const struct artifact_reader *reader = &ask->reader;
    bool tokened = ask->token.len > 0, scoped = reader->workspace.len > 0;
    if (!database_prepare(db, tokened ? by_token : scoped ? by_session : by_id, ret, e))
        return false;
    if (!tokened) database_bind_number(*ret, 1, ask->artifact.id);
    database_bind(*ret, 2, tokened ? ask->token : ask->workspace);
    if (!scoped) return true;
    database_bind(*ret, 3, reader->user);
    database_bind(*ret, 4, reader->session);
    database_bind_number(*ret, 5, (int64_t)reader->run);
    return true;
}

static bool run_get(struct database *db, void *ctx, struct err *e) {
    struct artifact_ask *ask = ctx;
    struct prepared *get = NULL;
    bool row = false;
    bool ok = find_it(ask, db, &get, e) && database_row(db, get, &row, e);
    if (row) artifact_take_row(ask, get);
    database_finalize(get);
    if (!ok) return false;
    if (!row) return err_set(e, ERR_NOT_FOUND, "there is no such artifact");
    return read_piece(ask, db, e);
}

static void on_fetched(struct str bytes, struct str etag, const struct err *failed, void *ctx) {
    struct artifact_ask *ask = ctx;
    (void)etag;
    ask->move = NULL;
    ask->artifact.bytes = bytes;
    ask_end(ask, failed);
}

static void on_row(const struct err *failed, void *ctx) {
    struct artifact_ask *ask = ctx;
    size_t count = failed || !ask->done ? 0 : piece_bytes(ask);
    if (count == 0 || !ask->place.object.len)
        ask_end(ask, failed);
    else
        ask->move = artifact_object_get(ask->store, ask->task.home, &ask->place, ask->offset,
                                        count, on_fetched, ask);
}

static struct artifact_ask *get_new(struct store *store, size_t offset, size_t limit,
                                    artifact_done_fn *done, void *ctx) {
    struct artifact_ask *ask = artifact_ask_new(store, done, ctx, run_get);
    ask->task.on_done = on_row;
    ask->task.reads_only = true;
    ask->offset = offset < ARTIFACT_MAX_BYTES ? offset : ARTIFACT_MAX_BYTES;
    ask->limit = limit < ARTIFACT_PIECE_MAX_BYTES ? limit : ARTIFACT_PIECE_MAX_BYTES;
    return ask;
}

struct artifact_ask *artifact_get_start(struct store *store, struct loop *loop,
                                        struct str workspace, int64_t id, size_t offset,
                                        size_t limit, artifact_done_fn *done, void *ctx) {
    struct artifact_ask *ask = get_new(store, offset, limit, done, ctx);
    assert(workspace.len);
    ask->workspace = workspace;
    buf_keep_texts(&ask->asked, (struct str *const[]){&ask->workspace}, 1);
    ask->artifact.id = id;
    store_run(store, loop, &ask->task, ask);
    return ask;
}

struct artifact_ask *artifact_read_start(struct store *store, struct loop *loop,
                                         const struct artifact_reader *reader, int64_t id,
                                         size_t offset, size_t limit, artifact_done_fn *done,
                                         void *ctx) {
    struct artifact_ask *ask = get_new(store, offset, limit, done, ctx);
    struct artifact_reader *kept = &ask->reader;
    assert(reader->workspace.len);
    *kept = *reader;
    struct str *const texts[] = {&kept->workspace, &kept->user, &kept->session};
    buf_keep_texts(&ask->asked, texts, ARRAY_LEN(texts));
    ask->workspace = kept->workspace;
    ask->artifact.id = id;
    ask->task.needs_tables = true;
    store_run(store, loop, &ask->task, ask);
    return ask;
}

struct artifact_ask *artifact_find_start(struct store *store, struct loop *loop,
                                         struct str token, size_t offset, size_t limit,
                                         artifact_done_fn *done, void *ctx) {
    struct artifact_ask *ask = get_new(store, offset, limit, done, ctx);
    assert(token.len == ARTIFACT_TOKEN_BYTES);
    ask->token = token;
    buf_keep_texts(&ask->asked, (struct str *const[]){&ask->token}, 1);
    store_run(store, loop, &ask->task, ask);
    return ask;
}
