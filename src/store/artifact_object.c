#include "store/artifact_object.h"

#include "base/clock.h"
#include "base/mem.h"
#include "object/get.h"
#include "object/put.h"
#include "store/doomed.h"

#include <stdlib.h>
#include <sys/random.h>

struct artifact_move {
    struct object_put *put; /* of both at most one is out */
    struct object_get *get;
    struct str rest; /* of a put: what is still to be written */
    size_t size;     /* of a get: of the whole, as the row says */
    struct buf bytes;
    struct err failed; /* of a get: what its head says */
    struct task refused;
    artifact_moved_fn *done;
    void *ctx;
};

/* --- rows --------------------------------------------------------------------------------- */

void artifact_object_name(struct str workspace, struct buf *out) {
    unsigned char random[16];
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) abort();
    buf_append(out, STR("artifacts/"));
    size_t before = out->len;
    buf_append_percent(out, workspace, "-_");
    if (out->len - before > ARTIFACT_KEY_BYTES - 64) { /* the random part makes it unique */
        buf_drop(out, out->len - before);
        buf_append(out, STR("long"));
    }
    buf_append_byte(out, '/');
    for (size_t i = 0; i < sizeof(random); i++) buf_printf(out, "%02x", random[i]);
}

bool artifact_object_keep(struct database *db, int64_t artifact,
                          const struct artifact_place *place, struct err *e) {
    return doomed_take(db, place->object, clock_unix_ms(), e) &&
           database_run_with(db,
                             "INSERT INTO artifact_object(artifact, object, size, etag, sum)"
                             " VALUES(?, ?, ?, ?, ?)",
                             VALUES(sql_number(artifact), sql_bytes(place->object),
                                    sql_number((int64_t)place->size), sql_bytes(place->etag),
                                    sql_bytes(str_of(place->sum, DIGEST_BYTES))),
                             e);
}

/* --- both ways ---------------------------------------------------------------------------- */

static void refuse(void *ctx);

static struct artifact_move *move_new(artifact_moved_fn *done, void *ctx) {
    struct artifact_move *move = MEM_NEW(struct artifact_move);
    move->done = done;
    move->ctx = ctx;
    task_init(&move->refused, refuse, move);
    return move;
}

static void move_end(struct artifact_move *move, struct str etag, const struct err *failed) {
    move->done(failed ? STR_EMPTY : buf_str(&move->bytes), etag, failed, move->ctx);
    buf_done(&move->bytes);
    free(move);
}

/* --- put ---------------------------------------------------------------------------------- */

static void write_on(void *ctx) {
    struct artifact_move *move = ctx;
    move->rest = str_skip(move->rest, object_put_write(move->put, move->rest));
    if (move->rest.len == 0) object_put_end(move->put);
}

static void artifact_object_on_put(struct str etag, const struct err *failed, void *ctx) {
    move_end(ctx, etag, failed);
}

/* Written from the next turn on, so that `done` never comes before this returns. */
struct artifact_move *artifact_object_put(struct store *store, struct loop *loop,
                                          struct str object, struct str content_type,
                                          struct str bytes, artifact_moved_fn *done,
                                          void *ctx) {
    static const struct object_put_events events = {write_on, artifact_object_on_put};
    struct artifact_move *move = move_new(done, ctx);
    move->rest = bytes;
    move->put =
        object_put_start(store_bucket(store), loop, object, content_type, &events, move);
    write_on(move);
    return move;
}

/* --- get ---------------------------------------------------------------------------------- */

static void artifact_object_on_found(const struct object_found *found, void *ctx) {
    struct artifact_move *move = ctx;
    if (found->size == move->size) return;
    err_set(&move->failed, ERR_DATA_LOSS,
            "the object of this artifact has another size than was written; something else "
            "writes to the bucket");
}

static void on_bytes(struct lent bytes, void *ctx) {
    struct artifact_move *move = ctx;
    buf_append(&move->bytes, lent_read(bytes));
}

static void on_got(const struct err *failed, void *ctx) {
    struct artifact_move *move = ctx;
    struct err why;
    if (failed && (failed->code == ERR_NOT_FOUND || failed->code == ERR_ABORTED)) {
        why = *failed; /* the row says that it is there */
        why.code = ERR_DATA_LOSS;
        err_add(&why, "the bytes of this artifact are gone");
        failed = &why;
    }
    if (!failed && move->failed.code != ERR_NONE) failed = &move->failed;
    move_end(move, STR_EMPTY, failed);
}

static void refuse(void *ctx) {
    struct artifact_move *move = ctx;
    move_end(move, STR_EMPTY, &move->failed);
}

struct artifact_move *artifact_object_get(struct store *store, struct loop *loop,
                                          const struct artifact_place *place, size_t offset,
                                          size_t count, artifact_moved_fn *done, void *ctx) {
    static const struct object_reader reader = {artifact_object_on_found, on_bytes, on_got};
    struct artifact_move *move = move_new(done, ctx);
    struct bucket *bucket = store_bucket(store);
    move->size = place->size;
    buf_init(&move->bytes, count);
    if (bucket) {
        move->get =
            object_get_start(bucket, loop, place->object,
                             &(struct object_range){offset, count, place->etag}, &reader, move);
        return move;
    }
    err_set(
        &move->failed, ERR_FAILED_PRECONDITION,
        "this artifact is in object storage, and none is configured; set files.s3 as it was "
        "when the artifact was written");
    loop_defer(loop, &move->refused);
    return move;
}

void artifact_object_cancel(struct artifact_move *move) {
    if (move->put) object_put_cancel(move->put);
    if (move->get) object_get_cancel(move->get);
    task_cancel(&move->refused);
    buf_done(&move->bytes);
    free(move);
}
