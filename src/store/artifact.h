/* artifact: bytes that a run made or was given, too large for its conversation.
 *
 * A tool's long result, a fetched page, a file: kept whole under a number of its own, and read
 * back piece by piece by who has the number and belongs to the workspace. One that is kept
 * with a token is also found by that alone: it goes into an address that a client fetches.
 *
 * Reading a piece loads no more than that piece, however large the whole is.
 *
 * Memory   what is asked is copied. An answer is borrowed during the callback.
 * Threads  a loop asks and is answered; the rest happens on the store's thread.
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
    struct str bytes;   /* of an answer: the piece that was asked for */
    size_t size;        /* of the whole */
    struct str token;   /* ARTIFACT_TOKEN_BYTES that nobody can guess; empty: it has none */
};

/* Once, on `loop`, never before the start returns. failed is NULL on success:
 * ERR_NOT_FOUND      no artifact of this workspace has that id
 * ERR_UNAVAILABLE    a full disk; nothing was kept */
typedef void artifact_done_fn(const struct artifact *artifact, const struct err *failed,
                              void *ctx);

/* On its way; gone when `done` has been called. */
struct artifact_ask;

/* Keep `artifact` (its run, names and bytes); `done` is told its id.
 * errors  ERR_TOO_LARGE more than ARTIFACT_MAX_BYTES */
MUST_CHECK bool artifact_put_start(struct store *store, struct loop *loop, struct str workspace,
                                   const struct artifact *artifact, artifact_done_fn *done,
                                   void *ctx, struct artifact_ask **ret, struct err *e);

/* At most `limit` bytes from `offset` on: fewer at the end, none behind it. */
struct artifact_ask *artifact_get_start(struct store *store, struct loop *loop,
                                        struct str workspace, int64_t id, size_t offset,
                                        size_t limit, artifact_done_fn *done, void *ctx);

/* The same of the artifact that was kept with this token, in whichever workspace. */
struct artifact_ask *artifact_find_start(struct store *store, struct loop *loop,
                                         struct str token, size_t offset, size_t limit,
                                         artifact_done_fn *done, void *ctx);

/* Nobody waits any more: `done` will not be called. NULL is fine. */
void artifact_forget(struct artifact_ask *ask);

#endif
