/* upload: what somebody sent in pieces, kept for half an hour.
 *
 *     being sent ─▶ whole ─▶ over ─▶ gone     over: no longer found, and its pieces are
 *          └────────────────▲                 deleted one by one
 *
 * It comes piece by piece, so that no commit and no memory ever holds more than one; it is
 * found only when the last one has come, only by its owner, and only until its time is over.
 * What was left half sent by a caller, or by a process that died, is over as well. Whoever
 * keeps uploads prunes (upload_prune_start): then what is over is deleted, some pieces at a
 * time.
 *
 * Memory   what is asked is copied. An answer is borrowed during the callback.
 * Threads  a loop asks and is answered; the rest happens on the store's thread.
 * Source   contracts/nimi.md 6.2, last paragraph; checks.md L6, M1.
 */
#ifndef WEIR_STORE_UPLOAD_H
#define WEIR_STORE_UPLOAD_H

#include "base/units.h"
#include "store/store.h"

#define UPLOAD_MAX_BYTES (32 * MIB)
#define UPLOAD_PIECE_BYTES (1 * MIB) /* every piece but the last has exactly so many */
#define UPLOAD_KEPT_MS (INT64_C(30) * 60 * 1000)
#define UPLOAD_KEPT_MAX 1024 /* the oldest make room */
#define UPLOAD_NAMES_MAX_BYTES (64 * KIB)
#define UPLOAD_SUM_BYTES 32

struct upload {
    struct str id;           /* as it was named by who received it; unlike all others */
    struct str app, subject; /* whose it is; the subject may be empty: anybody of the app */
    struct str content_type, name;
    struct str sum;     /* SHA-256 of the whole, UPLOAD_SUM_BYTES */
    size_t size;        /* of the whole */
    int64_t created_ms; /* Unix time */
    struct str bytes;   /* of an answer: those that were asked for */
};

/* Once, on `loop`, never before the start returns. failed is NULL on success:
 * ERR_NOT_FOUND      no upload of this owner has that id, or its time is over
 * ERR_UNAVAILABLE    a full disk; nothing was kept */
typedef void upload_done_fn(const struct upload *upload, const struct err *failed, void *ctx);

/* On its way; gone when `done` has been called. */
struct upload_ask;

/* Nobody waits any more: `done` will not be called, and what is asked happens all the same.
 * NULL is fine. */
void upload_forget(struct upload_ask *ask);

/* --- sending ------------------------------------------------------------------------------ */

/* Keep the next piece: `upload` says whose it is, and its bytes are those from `place` on.
 * Pieces are put in their order, each when the one before has been answered; all that are not
 * `last` have UPLOAD_PIECE_BYTES. The last one, which may be empty, makes it whole: size and
 * sum are looked at only then, and its half hour begins. */
enum upload_piece { UPLOAD_GOES_ON, UPLOAD_LAST };

struct upload_ask *upload_put_start(struct store *store, struct loop *loop,
                                    const struct upload *upload, size_t place,
                                    enum upload_piece piece, int64_t now_ms,
                                    upload_done_fn *done, void *ctx);

/* It will not be finished, or not be wanted: it is over. Nobody is told. */
void upload_drop(struct store *store, struct loop *loop, struct str id);

/* --- finding ------------------------------------------------------------------------------ */

/* At most `limit` bytes from `offset` on: fewer at the end, none behind it. For all of them,
 * UPLOAD_MAX_BYTES from 0 on. */
struct upload_ask *upload_get_start(struct store *store, struct loop *loop, struct str app,
                                    struct str subject, struct str id, size_t offset,
                                    size_t limit, int64_t now_ms, upload_done_fn *done,
                                    void *ctx);

/* --- pruning ------------------------------------------------------------------------------ */

/* more      something that is over is still to be deleted: ask again
 * next_ms   when the next one's time is over, Unix time; 0: there is none */
typedef void upload_pruned_fn(bool more, int64_t next_ms, const struct err *failed, void *ctx);

/* Delete some of what is over. With nothing to delete, nothing is written. */
struct upload_ask *upload_prune_start(struct store *store, struct loop *loop, int64_t now_ms,
                                      upload_pruned_fn *done, void *ctx);

#endif
