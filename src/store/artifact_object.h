/* artifact_object: the bytes of artifacts that are in the bucket.
 *
 *     put   listed as doomed ─▶ sent ─▶ a row, and off the list
 *     get   a range, of the version that the row names
 *
 * The store has only the object's key, size, tag and SHA-256. An artifact exists once the storage
 * has acknowledged its bytes and its row is durable.
 *
 * Memory   the texts of a move are borrowed until it has ended.
 * Threads  the loop's; the functions with a database: the store's.
 */
#ifndef WEIR_STORE_ARTIFACT_OBJECT_H
#define WEIR_STORE_ARTIFACT_OBJECT_H

#include "store/database.h"
#include "store/store.h"
#include "wire/digest.h"

#define ARTIFACT_UPLOAD_MS (INT64_C(60) * 60 * 1000) /* then it is given up */
#define ARTIFACT_KEY_BYTES 256

/* What a row says of an object. */
struct artifact_place {
    struct str object, etag; /* object empty: the bytes are in the store */
    size_t size;
    uint8_t sum[DIGEST_BYTES];
};

/* Append a new key, that no other artifact has: "artifacts/WORKSPACE/RANDOM". */
void artifact_object_name(struct str workspace, struct buf *out);

/* Insert the row, and take the object off the list of doomed ones. */
MUST_CHECK bool artifact_object_keep(struct database *db, int64_t artifact,
                                     const struct artifact_place *place, struct err *e);

struct artifact_move;

/* Called once, later. bytes: of a get, all that was asked for. etag: of a put. */
typedef void artifact_moved_fn(struct str bytes, struct str etag, const struct err *failed,
                               void *ctx);

struct artifact_move *artifact_object_put(struct store *store, struct loop *loop,
                                          struct str object, struct str content_type,
                                          struct str bytes, artifact_moved_fn *done, void *ctx);

/* errors  ERR_FAILED_PRECONDITION no bucket is configured; ERR_DATA_LOSS another version, or a
 *         part, is there; those of object/get.h */
struct artifact_move *artifact_object_get(struct store *store, struct loop *loop,
                                          const struct artifact_place *place, size_t offset,
                                          size_t count, artifact_moved_fn *done, void *ctx);

void artifact_object_cancel(struct artifact_move *move);

#endif
