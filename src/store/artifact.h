/* artifact: bytes that a run produced or received, too large for its conversation.
 *
 * A tool's long result, a fetched page, a file: it is kept whole under its own id, and read
 * back piece by piece. Ids are counted, so an id alone gives no right: what a run made for its
 * session is read by turns of that session, everything else by code of ours that has the id from a
 * record of its own. An artifact kept with a token can also be found by the token alone, which goes
 * into a URL for a client to fetch.
 *
 * Reading a piece loads no more than that piece, however large the whole is. With a bucket
 * (store_bucket()) the bytes are there and not in the store; see artifact_object.h.
 *
 * Memory   requests are copied. An answer is borrowed during the callback.
 * Threads  requests and answers are on the caller's loop; the work is on the store's thread.
 */
#ifndef WEIR_STORE_ARTIFACT_H
#define WEIR_STORE_ARTIFACT_H

#include "base/units.h"
#include "store/store.h"

#define ARTIFACT_MAX_BYTES (16 * MIB)
#define ARTIFACT_PIECE_MAX_BYTES (1 * MIB) /* of one answer */
#define ARTIFACT_TOKEN_BYTES 24            /* random */

struct artifact {
    int64_t id; /* from 1 */
    uint64_t run;
    struct str name, content_type;
    int64_t created_ms; /* Unix time */
    struct str bytes;   /* of an answer: the piece asked for */
    size_t size;        /* of the whole */
    struct str token;   /* ARTIFACT_TOKEN_BYTES that cannot be guessed; empty: none */
};

/* Called once, on `loop`, never before the start function returns. failed is NULL on success:
 * ERR_NOT_FOUND      there is no such artifact for this caller
 * ERR_UNAVAILABLE    a full disk; nothing was kept
 * others             of the bucket, see artifact_object.h */
typedef void artifact_done_fn(const struct artifact *artifact, const struct err *failed,
                              void *ctx);

/* A request on its way; freed after `done` was called. */
struct artifact_ask;

/* Store `artifact` (its run, names and bytes); `done` gets its id.
 * errors  ERR_TOO_LARGE more than ARTIFACT_MAX_BYTES */
MUST_CHECK bool artifact_put_start(struct store *store, struct loop *loop, struct str workspace,
                                   const struct artifact *artifact, artifact_done_fn *done,
                                   void *ctx, struct artifact_ask **ret, struct err *e);

/* Read at most `limit` bytes from `offset` on: fewer at the end, none past it. The caller has the id
 * from where no model or user writes it. */
struct artifact_ask *artifact_get_start(struct store *store, struct loop *loop,
                                        struct str workspace, int64_t id, size_t offset,
                                        size_t limit, artifact_done_fn *done, void *ctx);

/* A turn that reads, and its session. */
struct artifact_reader {
    struct str workspace, user, session;
    uint64_t run; /* 0: unknown */
};

/* The same for an id that a model names: only of what this run, or another of its session, has kept
 * without a token; ERR_NOT_FOUND for any other id. */
struct artifact_ask *artifact_read_start(struct store *store, struct loop *loop,
                                         const struct artifact_reader *reader, int64_t id,
                                         size_t offset, size_t limit, artifact_done_fn *done,
                                         void *ctx);

/* The same for the artifact kept with this token, in any workspace. */
struct artifact_ask *artifact_find_start(struct store *store, struct loop *loop,
                                         struct str token, size_t offset, size_t limit,
                                         artifact_done_fn *done, void *ctx);

/* Stop waiting: `done` will not be called. An artifact whose bytes are on their way to a bucket
 * is not kept. NULL is fine. */
void artifact_forget(struct artifact_ask *ask);

#endif
