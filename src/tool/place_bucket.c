/* Files in a bucket: requests to the storage, on the loop. */
#include "tool/place.h"

#include "object/get.h"
#include "object/put.h"

/* --- reading ------------------------------------------------------------------------------ */

static void place_bucket_on_head(const struct object_found *found, void *ctx) {
    struct place_move *move = ctx;
    move->size = found->size;
    buf_append(&move->type, str_head(found->content_type, move->type.max_bytes));
    if (found->size <= PLACE_FILE_MAX_BYTES) return;
    move->failed = !err_set(&move->why, ERR_TOO_LARGE, "it is larger than %zu bytes",
                            (size_t)PLACE_FILE_MAX_BYTES);
}

static void place_bucket_on_body(struct lent bytes, void *ctx) {
    struct place_move *move = ctx;
    buf_append(&move->bytes, lent_read(bytes));
}

static void place_bucket_on_got(const struct err *failed, void *ctx) {
    struct place_move *move = ctx;
    move->get = NULL;
    if (!failed && move->failed) failed = &move->why;
    move->done(move, failed);
}

static void read_file(struct place_move *move) {
    static const struct object_reader reader = {place_bucket_on_head, place_bucket_on_body,
                                                place_bucket_on_got};
    move->get = object_get_start(move->place->bucket, move->loop, move->path,
                                 &(struct object_range){0, move->bytes.max_bytes, STR_EMPTY},
                                 &reader, move);
}

/* --- writing ------------------------------------------------------------------------------ */

static void write_on(void *ctx) {
    struct place_move *move = ctx;
    move->rest = str_skip(move->rest, object_put_write(move->put, move->rest));
    if (move->rest.len == 0) object_put_end(move->put);
}

static void place_bucket_on_put(struct str etag, const struct err *failed, void *ctx) {
    struct place_move *move = ctx;
    (void)etag;
    move->put = NULL;
    move->done(move, failed);
}

static void write_file(struct place_move *move) {
    static const struct object_put_events events = {write_on, place_bucket_on_put};
    move->put = object_put_start(move->place->bucket, move->loop, move->path,
                                 move->content_type, &events, move);
    move->rest = move->content;
    write_on(move);
}

/* --- the kind ----------------------------------------------------------------------------- */

static void place_bucket_start(struct place_move *move) {
    if (move->writes)
        write_file(move);
    else
        read_file(move);
}

static bool place_bucket_cancel(struct place_move *move) {
    if (move->get) object_get_cancel(move->get);
    if (move->put) object_put_cancel(move->put);
    return true;
}

const struct place_kind place_bucket = {place_bucket_start, place_bucket_cancel};
