/* replays: one run for each idempotency key.
 *
 * The first request under a key runs; the same request under it meanwhile waits for its answer,
 * and a later one gets the answer again. Another request under the key is a conflict. A run that
 * provably had no effect gives its key back.
 *
 *     running ─▶ answered ─▶ gone (after its time, or for newer ones)
 *        └─────▶ gone             the key is given back
 *
 * Memory   owns answers, REPLAYS_MAX_BYTES in all; then the oldest one goes.
 * Threads  one loop's. The clock is an argument.
 * Source   contracts/agentbreeder.md 1.2; K28 of checks.md.
 */
#ifndef WEIR_SIDECAR_REPLAYS_H
#define WEIR_SIDECAR_REPLAYS_H

#include "base/err.h"
#include "base/list.h"
#include "base/text.h"

#define REPLAYS_MAX 10000
#define REPLAYS_MAX_BYTES (64 * MIB)
#define REPLAYS_KEY_MAX_BYTES 255

struct replays;
struct replay;

struct replay_answer {
    int status;
    struct str content_type;
    struct str trace_id; /* of the run */
    struct str body;
};

/* A request that waits for the answer of another one. answer: NULL: the run gave its key back;
 * then this request may claim it. Not called from inside replays_claim(). */
struct replay_waiter {
    struct list link;
    void (*on_answer)(const struct replay_answer *answer, void *ctx);
    void *ctx;
};

enum replay_claim {
    REPLAY_RUN,      /* the key is this request's: run */
    REPLAY_WAIT,     /* `waiter` is called later */
    REPLAY_ANSWERED, /* *ret_answer, borrowed until the next call */
    REPLAY_CONFLICT, /* another request has the key */
    REPLAY_FULL,     /* too many runs have keys */
};

struct replays *replays_new(uint64_t keep_ms);
void replays_free(struct replays *replays); /* no run is left; accepts NULL */

/* `request` are the bytes that make it the same request. The key has been checked. */
enum replay_claim replays_claim(struct replays *replays, struct str key, struct str request,
                                uint64_t now_ms, struct replay_waiter *waiter,
                                struct replay **ret_run, struct replay_answer *ret_answer);

/* The run has ended with this answer, or NULL: it gives its key back. */
void replays_end(struct replays *replays, struct replay *run,
                 const struct replay_answer *answer, uint64_t now_ms);

static inline void replay_waiter_init(struct replay_waiter *waiter) {
    list_init(&waiter->link);
}

/* Stop waiting; harmless when it does not. */
static inline void replay_waiter_leave(struct replay_waiter *waiter) {
    if (list_linked(&waiter->link)) list_remove(&waiter->link);
}

/* errors  ERR_MALFORMED empty, too long, or not printable ASCII */
MUST_CHECK bool replays_check_key(struct str key, struct err *e);

#endif
