/* once_reply: the reply to a write that is made once, over all replicas.
 *
 *     claim ─▶ NEW: this one makes it ─▶ kept (its reply), then answered; or dropped: the key is
 *         │                              free again
 *         ├──▶ MAKING: another one makes it; claim again when something was freed
 *         ├──▶ KEPT: its reply
 *         └──▶ OTHER: the key was used for another request
 *
 * A reply that is known before its effect is committed is kept in the same transaction
 * (once_reply_put).
 *
 * Kept replies are the share of their caller (share.h). Where an app's share or a caller's is full,
 * a new claim takes the place of its own oldest kept ones. Where all together have too many, the
 * caller with the most, rows and bytes counted alike, loses its oldest, so that no caller who
 * has few is shut out by those who have many. A claim is refused only where there is no kept
 * reply to forget.
 *
 * A row for each key; the rows of writes that a dead replica was making go when another one takes
 * over (takeover.h), for it is not known how far they came.
 *
 * Memory   the caller keeps a claim, and its texts, until on_done has run.
 * Threads  the caller's loop.
 */
#ifndef WEIR_STORE_ONCE_REPLY_H
#define WEIR_STORE_ONCE_REPLY_H

#include "base/buf.h"
#include "store/share.h"
#include "store/task.h"

#define ONCE_REPLY_KEY_BYTES 32 /* digests */
#define ONCE_REPLY_MAX_BYTES (4 * MIB)

/* Shares: of keys, made or being made, and their replies. */
#define ONCE_APP_MAX 2500
#define ONCE_APP_MAX_BYTES (64 * MIB)
#define ONCE_CALLER_MAX 5000
#define ONCE_CALLER_MAX_BYTES (128 * MIB)
#define ONCE_ALL_MAX 20000
#define ONCE_ALL_MAX_BYTES (512 * MIB)

#define ONCE_SWEPT_MAX 64 /* at a time, so that they go faster than they come */

enum once_claimed { ONCE_NEW, ONCE_MAKING, ONCE_KEPT, ONCE_OTHER };

struct once_claim;
typedef void once_claim_fn(struct once_claim *claim, const struct err *failed, void *ctx);

struct once_claim {
    struct store_task task;
    uint8_t key[ONCE_REPLY_KEY_BYTES], print[ONCE_REPLY_KEY_BYTES]; /* of the request */
    int64_t number;  /* the caller's own: no other claim of this process has it */
    int64_t unix_ms; /* some of the replies whose time is over are removed */
    struct share_owner owner;
    int64_t replica;
    once_claim_fn *on_done;
    void *ctx;
    /* The answer. */
    enum once_claimed found;
    struct buf reply; /* of KEPT; the caller's to end */
};

/* What a watcher hears when a claim of this key has ended (changes.h). */
uint64_t once_reply_change(const uint8_t key[ONCE_REPLY_KEY_BYTES]);

/* errors  ERR_RESOURCE_EXHAUSTED a share is full of writes that are being made */
void once_claim_start(struct store *store, struct loop *home, struct once_claim *claim);

/* What was claimed as NEW, and its reply, until then (Unix time). A plain value: it outlives the
 * claim. */
struct kept_reply {
    uint8_t key[ONCE_REPLY_KEY_BYTES];
    int64_t replica, number, until_ms;
    struct str reply; /* ONCE_REPLY_MAX_BYTES at most */
};

struct kept_reply kept_reply_of(const struct once_claim *claim, struct str reply,
                                int64_t until_ms);

/* Keep it as part of the transaction that makes it; it may be NULL: there is no claim. The store's
 * thread. */
MUST_CHECK bool once_reply_put(struct database *db, const struct kept_reply *made,
                               struct err *e);

/* It is made: keep its reply (copied). `kept` is called once, later: failed says that it is not kept,
 * because the store was closed. */
typedef void once_kept_fn(const struct err *failed, void *ctx);
void once_reply_keep(struct store *store, struct loop *home, const struct kept_reply *made,
                     once_kept_fn *kept, void *ctx);

/* What this reply of the key says is no longer so: the key is free. Frees itself. */
void once_reply_forget(struct store *store, struct loop *home,
                       const uint8_t key[ONCE_REPLY_KEY_BYTES], struct str reply);

/* It failed: the key is free. Also for a claim whose answer was not waited for. Frees itself. */
void once_reply_drop(struct store *store, struct loop *home, const struct once_claim *claim);

#endif
