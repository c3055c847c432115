/* shared_once: the claim of one replica to make a write that is made once.
 *
 *     asking ─▶ mine ─▶ keeping ─▶ ended
 *       ▲ │ ─▶ ended               its reply is kept, the key is another request's, or the store
 *       │ ▼                        is away
 *     waiting                      another replica makes it
 *
 * A reply is kept before it is sent: else a replica that is killed in between has made a write that
 * another one makes again. The reply to a write whose effect is a transaction of the store is kept
 * in that transaction (shared_once_reply); else with shared_once_keep().
 *
 * Memory   opaque. What answers with anything but ONCE_NEW has ended itself, and so has what was
 *          kept; else shared_once_end() ends it, at any time but while it is being kept.
 * Threads  the loop of its call.
 */
#ifndef WEIR_CONTRACT_NIMI_SHARED_ONCE_H
#define WEIR_CONTRACT_NIMI_SHARED_ONCE_H

#include "base/states.h"
#include "store/once_reply.h"

struct shared_once;

enum shared_once_state {
    SHARED_ONCE_ASKING,
    SHARED_ONCE_WAITING,
    SHARED_ONCE_MINE,
    SHARED_ONCE_KEEPING, /* the write is made */
    SHARED_ONCE_ENDED,
    SHARED_ONCE_STATE_COUNT
};

extern const struct state shared_once_states[SHARED_ONCE_STATE_COUNT];

/* Called once, later. NEW, KEPT (with the reply, lent) or OTHER; or failed says why it is not
 * known. */
typedef void shared_once_fn(enum once_claimed found, struct str reply, const struct err *failed,
                            void *ctx);

struct shared_once_options {
    struct store *store; /* shared with other processes */
    struct loop *loop;
    struct str key;           /* of the write; borrowed during the call */
    const uint8_t *print;     /* of its request, ONCE_REPLY_KEY_BYTES */
    struct share_owner owner; /* borrowed during the call */
    shared_once_fn *on_answer;
    void *ctx;
};

struct shared_once *shared_once_start(const struct shared_once_options *options);

/* Of a claim that is mine: its reply (borrowed), for the transaction that makes the write.
 * until_ms  how long the reply is kept, Unix time */
struct kept_reply shared_once_reply(const struct shared_once *once, struct str reply,
                                    int64_t until_ms);

/* The write is made: keep its reply. `kept` is called once, later, and the claim has ended. */
void shared_once_keep(struct shared_once *once, struct str reply, int64_t until_ms,
                      void (*kept)(void *ctx));

/* The write is not made, and the key is free for others; or its reply was kept with it. No callback
 * follows. */
void shared_once_end(struct shared_once *once);

#endif
