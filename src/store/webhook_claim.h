/* webhook_claim: which of several replicas sends to a webhook.
 *
 * A webhook is up to three records of kept.h under one key, "<run>-<name>": what it is, what it was
 * sent, and while it is at work a claim: the replica that sends to it, and that replica's own number
 * for the claim.
 *
 *     put ─▶ claimed by the replica that was asked ─▶ over: the claim is gone, the webhook stays
 *              │ that replica has ended, or was fenced
 *              └─▶ claimed by another one, which goes on after what was sent
 *
 * To put a webhook again, at any replica, makes a new claim. What is kept for an older claim changes
 * nothing, so a replica that does not know yet that its webhook was replaced, removed, erased or
 * taken over does no harm. Before each post it looks whether its claim still stands.
 *
 * Memory   requests are copied; answers are borrowed during the callback.
 * Threads  the caller's loop.
 */
#ifndef WEIR_STORE_WEBHOOK_CLAIM_H
#define WEIR_STORE_WEBHOOK_CLAIM_H

#include "store/task.h"

#define WEBHOOK_CLAIM_OVER " over" /* of what was sent: "12", "12 over" */
#define WEBHOOK_CLAIMS_MAX 64      /* taken at a time */

struct webhook_claim_ask; /* freed after its callback was called */

/* The callback will not be called; what is asked is still done. NULL is fine. */
void webhook_claim_forget(struct webhook_claim_ask *ask);

/* Called once, never before the start function returns. After ERR_OUTCOME_UNKNOWN it may have been
 * done. `stands`: of webhook_claim_check(). */
typedef void webhook_claim_fn(bool stands, const struct err *failed, void *ctx);

/* --- putting and removing ----------------------------------------------------------------- */

struct webhook_claim_limits {
    size_t of_task, of_workspace, all;
};

struct webhook_claim_put {
    uint64_t run;
    struct str key, bytes;
    struct str peers; /* with this the records of the same workspace begin, and no others */
    uint64_t number;  /* of the claim: this replica has no other one of it */
    struct webhook_claim_limits limits;
};

/* Add a webhook, or replace the one of the same key, and claim it. One that is over makes room for
 * another.
 * errors  ERR_RESOURCE_EXHAUSTED there are too many that are not over */
struct webhook_claim_ask *webhook_claim_put(struct store *store, struct loop *home,
                                            const struct webhook_claim_put *put,
                                            webhook_claim_fn *done, void *ctx);

/* The same errors, and nothing is put. */
struct webhook_claim_ask *webhook_claim_room(struct store *store, struct loop *home,
                                             const struct webhook_claim_put *put,
                                             webhook_claim_fn *done, void *ctx);

/* No effect where there is none of this key. */
struct webhook_claim_ask *webhook_claim_remove(struct store *store, struct loop *home,
                                               struct str key, webhook_claim_fn *done,
                                               void *ctx);

/* --- the replica that has the claim ------------------------------------------------------- */

struct webhook_claim_ask *webhook_claim_check(struct store *store, struct loop *home,
                                              struct str key, uint64_t number,
                                              webhook_claim_fn *done, void *ctx);

enum webhook_claim_end { WEBHOOK_CLAIM_GOES_ON, WEBHOOK_CLAIM_IS_OVER, WEBHOOK_CLAIM_IS_GONE };

/* Keep that events up to `sent` were. GONE: there is no such run; the webhook is removed. Nothing
 * happens unless the claim stands. */
void webhook_claim_sent(struct store *store, struct loop *home, struct str key, uint64_t number,
                        uint64_t sent, enum webhook_claim_end end);

/* --- all of them -------------------------------------------------------------------------- */

struct webhook_claim {
    struct str key;
    uint64_t number;
    struct str bytes, sent; /* of one that was taken now; else empty */
    bool taken;
};

typedef void webhook_claims_fn(const struct webhook_claim *claims, size_t count,
                               const struct err *failed, void *ctx);

/* Take, under `number`, up to WEBHOOK_CLAIMS_MAX webhooks that are not over and that no living
 * replica sends to, and read all claims of this replica. Harmless if it is asked again. */
struct webhook_claim_ask *webhook_claims_take(struct store *store, struct loop *home,
                                              uint64_t number, webhook_claims_fn *done,
                                              void *ctx);

#endif
