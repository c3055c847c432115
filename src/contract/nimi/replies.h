/* replies: the replies to writes, kept for repeated calls with the same key.
 *
 * A unary write with an idempotency key is made once. While it is being made, further calls
 * with the same request wait for its outcome, on any loop; when the last of them leaves, the
 * write is cancelled. Afterwards they get the stored reply. At either time a different request
 * with the key is a conflict. Only successful replies are kept, for a day, at most 10,000 of
 * them and 64 MiB; the least recently used one is dropped first. They are in memory only.
 *
 *     ask ─▶ NEW: make it ─────────────┐         replies_made()
 *         ─▶ WAITS: another makes it ──┴─ asks ───────┴─▶ mail to each asker; good: STORED
 *         ─▶ STORED, CONFLICT           └ all left ─▶ mail to the maker: no one waits
 *
 * Memory   owns copies. An ask ends with its mail or with replies_leave(); a write with
 *          replies_made().
 * Threads  any; one lock. An ask and a write belong to the loops they name; their callbacks
 *          run there.
 * Source   contracts/nimi.md 3.2 K-DAEMON-006; checks.md K28.
 */
#ifndef WEIR_CONTRACT_NIMI_REPLIES_H
#define WEIR_CONTRACT_NIMI_REPLIES_H

#include "base/buf.h"
#include "contract/nimi/fault.h"
#include "loop/loop.h"

#define REPLIES_KEPT_MS (24ull * 60 * 60 * 1000)
#define REPLIES_MAX 10000
#define REPLIES_MAX_BYTES (64 * MIB)
#define REPLIES_DIGEST_BYTES 32

struct replies;

struct replies *replies_new(size_t count_max, size_t bytes_max);
void replies_free(struct replies *replies); /* NULL is fine */

enum reply_found {
    REPLY_NEW,      /* the key is new */
    REPLY_WAITS,    /* the same write is being made */
    REPLY_STORED,   /* the reply was appended to `out` */
    REPLY_CONFLICT, /* the key belongs to another request */
};

/* digest  of the request, REPLIES_DIGEST_BYTES */
enum reply_found replies_find(struct replies *replies, struct str key, const uint8_t *digest,
                              uint64_t now_ms, struct buf *out);

/* Keep a reply. One that exceeds the limit for all replies together is not kept. */
void replies_keep(struct replies *replies, struct str key, const uint8_t *digest,
                  uint64_t now_ms, struct str reply);

/* Forget this reply of the key: what it says is no longer so. */
void replies_forget(struct replies *replies, struct str key, struct str reply);

size_t replies_count(struct replies *replies);

/* --- writes in progress ------------------------------------------------------------------- */

struct reply_ask;   /* one waiting call */
struct reply_write; /* the write that calls wait for */

/* The outcome of a write, lent to each asker. */
struct write_outcome {
    const struct fault *fault; /* NULL: it succeeded */
    struct str reply;          /* of a success */
    bool granted;              /* it had a slot of the scheduler, after waited_ms */
    uint64_t waited_ms;
};

/* Called once, on the asker's loop, in a later turn. The ask is freed. */
typedef void reply_outcome_fn(const struct write_outcome *outcome, void *ctx);

/* All askers have left. Called at most once, on the maker's loop, in a later turn, never after
 * replies_made(). */
typedef void reply_left_fn(void *ctx);

struct reply_question {
    struct str key;        /* copied */
    const uint8_t *digest; /* of the request, REPLIES_DIGEST_BYTES */
    uint64_t now_ms;
    struct loop *loop;
    reply_outcome_fn *on_outcome;
    void *ctx;
};

/* REPLY_NEW: *ret waits, and the caller makes the write, see reply_write_of(). REPLY_WAITS:
 * *ret waits. REPLY_STORED: as in replies_find(). */
enum reply_found replies_ask(struct replies *replies, const struct reply_question *question,
                             struct buf *out, struct reply_ask **ret);

/* Withdraw an ask. NULL is fine. */
void replies_leave(struct reply_ask *ask);

/* The write that the first asker waits for. It belongs to that asker's loop. */
struct reply_write *reply_write_of(struct reply_ask *ask, reply_left_fn *left, void *ctx);

/* The write succeeded or failed. All askers get the outcome, a successful reply is kept, and
 * the write is freed. */
void replies_made(struct reply_write *pending, const struct write_outcome *outcome,
                  uint64_t now_ms);

#endif
