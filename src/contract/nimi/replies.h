/* replies: what a write was answered, for everybody who asks it under the same key.
 *
 * A unary write with an idempotency key is made once. While it is being made, further askers
 * of the same request wait for the same outcome, on whichever loop they are; the last one who
 * leaves ends the making. Afterwards the stored reply is the answer. Another request under the
 * key is a conflict, at either time. Only successful replies are kept, for a day, 10,000 of
 * them and 64 MiB; the one that was asked for longest ago makes room. They are in memory only.
 *
 *     ask ─▶ NEW: make it ─────────────┐         replies_made()
 *         ─▶ WAITS: another makes it ──┴─ asks ───────┴─▶ mail to each asker; good: STORED
 *         ─▶ STORED, CONFLICT           └ all left ─▶ mail to the maker: nobody waits
 *
 * Memory   owns copies. An ask ends with its mail or with replies_leave(); a making with
 *          replies_made().
 * Threads  any; one lock. An ask and a making belong to the loops they name and are told there.
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
    REPLY_NEW,      /* nobody has asked that */
    REPLY_WAITS,    /* somebody has, and it is being made */
    REPLY_STORED,   /* the reply was appended to `out` */
    REPLY_CONFLICT, /* the key belongs to another request */
};

/* digest  of the request, REPLIES_DIGEST_BYTES */
enum reply_found replies_find(struct replies *replies, struct str key, const uint8_t *digest,
                              uint64_t now_ms, struct buf *out);

/* Keep a reply; one larger than everything may be is not kept. */
void replies_keep(struct replies *replies, struct str key, const uint8_t *digest,
                  uint64_t now_ms, struct str reply);

size_t replies_count(struct replies *replies);

/* --- while it is being made --------------------------------------------------------------- */

struct reply_ask;    /* one who waits */
struct reply_making; /* what they wait for */

/* How it came out, lent to each asker. */
struct write_outcome {
    const struct fault *fault; /* NULL: it was made */
    struct str reply;          /* what was made */
    bool granted;              /* it has had a slot of the scheduler, after this long: */
    uint64_t waited_ms;
};

/* Once, on the asker's loop, in a later turn; the ask is gone. */
typedef void reply_told_fn(const struct write_outcome *outcome, void *ctx);

/* Once at most, on the maker's loop, in a later turn, never after replies_made(). */
typedef void reply_left_fn(void *ctx);

struct reply_question {
    struct str key;        /* copied */
    const uint8_t *digest; /* of the request, REPLIES_DIGEST_BYTES */
    uint64_t now_ms;
    struct loop *loop;
    reply_told_fn *told;
    void *ctx;
};

/* REPLY_NEW: *ret waits, and whoever asked makes it, see reply_making_of(). REPLY_WAITS: *ret
 * waits. REPLY_STORED: as with replies_find(). */
enum reply_found replies_ask(struct replies *replies, const struct reply_question *question,
                             struct buf *out, struct reply_ask **ret);

/* Nobody listens to this ask any more. NULL is fine. */
void replies_leave(struct reply_ask *ask);

/* Who makes what the first asker waits for, on that asker's loop. */
struct reply_making *reply_making_of(struct reply_ask *ask, reply_left_fn *left, void *ctx);

/* It is made, or failed: all are told, a good reply is kept, the making is gone. */
void replies_made(struct reply_making *making, const struct write_outcome *outcome,
                  uint64_t now_ms);

#endif
