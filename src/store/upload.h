/* upload: a file sent in pieces, kept for half an hour.
 *
 *     being sent ─▶ whole ─▶ over ─▶ gone     over: no longer found, and its pieces are
 *          └────────────────▲                 deleted one by one
 *
 * It comes piece by piece, so that no commit and no buffer ever holds more than one piece. It
 * can be found only after the last piece has come, only by its owner, and only until it
 * expires. An upload that its caller, or a process that died, left unfinished expires as well.
 * upload_prune_start() must be called from time to time: it deletes expired uploads, some
 * pieces at a time.
 *
 * Memory   requests are copied. An answer is borrowed during the callback.
 * Threads  requests and answers are on the caller's loop; the work is on the store's thread.
 * Source   contracts/nimi.md 6.2, last paragraph; checks.md L6, M1.
 */
#ifndef WEIR_STORE_UPLOAD_H
#define WEIR_STORE_UPLOAD_H

#include "base/units.h"
#include "store/once_reply.h"
#include "store/store.h"

#define UPLOAD_MAX_BYTES (32 * MIB)
#define UPLOAD_PIECE_BYTES (1 * MIB) /* the size of every piece but the last */
#define UPLOAD_KEPT_MS (INT64_C(30) * 60 * 1000)
#define UPLOAD_KEPT_MAX 1024 /* beyond that the oldest are dropped */
#define UPLOAD_NAMES_MAX_BYTES (64 * KIB)
#define UPLOAD_SUM_BYTES 32

struct upload {
    struct str id;           /* chosen by the receiver; unique */
    struct str app, subject; /* the owner; an empty subject: everyone in the app */
    struct str content_type, name;
    struct str sum;                 /* SHA-256 of the whole, UPLOAD_SUM_BYTES */
    size_t size;                    /* of the whole */
    int64_t created_ms;             /* Unix time */
    struct str bytes;               /* of an answer: the ones asked for */
    const struct kept_reply *reply; /* kept with the last piece (once_reply.h); NULL: none */
};

/* Called once, on `loop`, never before the start function returns. failed is NULL on success:
 * ERR_NOT_FOUND      this owner has no upload with that id, or it has expired
 * ERR_UNAVAILABLE    a full disk; nothing was kept */
typedef void upload_done_fn(const struct upload *upload, const struct err *failed, void *ctx);

/* A request on its way; freed after `done` was called. */
struct upload_ask;

/* Stop waiting: `done` will not be called. The request is still carried out. NULL is fine. */
void upload_forget(struct upload_ask *ask);

/* --- sending ------------------------------------------------------------------------------ */

/* Store the next piece. `upload` names the owner, and its bytes belong at offset `place`. Put
 * pieces in order, each after the previous one was answered. Every piece but the last has
 * UPLOAD_PIECE_BYTES. The last one, which may be empty, completes the upload: only then size
 * and sum are used, and its half hour begins. */
enum upload_piece { UPLOAD_GOES_ON, UPLOAD_LAST };

struct upload_ask *upload_put_start(struct store *store, struct loop *loop,
                                    const struct upload *upload, size_t place,
                                    enum upload_piece piece, int64_t now_ms,
                                    upload_done_fn *done, void *ctx);

/* Drop an upload that will not be finished or is not wanted. There is no answer. */
void upload_drop(struct store *store, struct loop *loop, struct str id);

/* --- finding ------------------------------------------------------------------------------ */

/* Read at most `limit` bytes from `offset` on: fewer at the end, none past it. To read all of
 * it, ask for UPLOAD_MAX_BYTES from 0 on. */
struct upload_ask *upload_get_start(struct store *store, struct loop *loop, struct str app,
                                    struct str subject, struct str id, size_t offset,
                                    size_t limit, int64_t now_ms, upload_done_fn *done,
                                    void *ctx);

/* --- pruning ------------------------------------------------------------------------------ */

/* more      expired uploads are left to delete: ask again
 * next_ms   when the next upload expires, Unix time; 0: there is none */
typedef void upload_pruned_fn(bool more, int64_t next_ms, const struct err *failed, void *ctx);

/* Delete some of the expired uploads. With nothing to delete, nothing is written. */
struct upload_ask *upload_prune_start(struct store *store, struct loop *loop, int64_t now_ms,
                                      upload_pruned_fn *done, void *ctx);

#endif
