/* shared_webhooks: the webhooks of all tasks where several replicas share a store.
 *
 * All of them are in the store, and any replica puts, reads and removes them there. In memory are
 * those that this replica sends to, by its claim (store/webhook_claim.h): it follows their runs,
 * wherever those are, until they are over.
 *
 *     put ─▶ kept, with a claim ─▶ push, which looks before each post whether the claim stands
 *              │                     ├▶ over: kept as over, gone from memory
 *              │                     └▶ the claim is not there any more: gone from memory
 *     look ─▶ those of replicas that have ended are claimed: push, after what they were sent
 *
 * It looks at its start, and whenever a replica has ended or has changed a webhook of another one.
 *
 * Memory   owns the pushes: WEBHOOKS_MAX at all replicas together, as in webhooks.h.
 * Threads  any; one lock inside. serve() and leave() belong to the loop of their place.
 */
#ifndef WEIR_CONTRACT_A2A_SHARED_WEBHOOKS_H
#define WEIR_CONTRACT_A2A_SHARED_WEBHOOKS_H

#include "contract/a2a/webhooks.h"
#include "store/webhook_claim.h"

struct shared_webhooks;

struct shared_webhooks *shared_webhooks_new(void);
void shared_webhooks_free(
    struct shared_webhooks *shared); /* every place has left; accepts NULL */

/* The store is open. The first place to call looks for all. */
void shared_webhooks_serve(struct shared_webhooks *shared, const struct push_place *place);

/* No loop begins anything more; those of this place stop. What they still have to say, another
 * replica says. */
void shared_webhooks_leave(struct shared_webhooks *shared, const struct push_place *place);

/* Whether one more is taken now; the answer comes on the loop of its place.
 * errors  ERR_RESOURCE_EXHAUSTED */
struct webhook_claim_ask *shared_webhooks_room(const struct webhook_put *put,
                                               webhook_claim_fn *done, void *ctx);

/* Add a webhook, or replace the one of the same id. `done` is called once it is in the store, on the
 * loop of its place; NULL: no caller waits.
 * errors  those of shared_webhooks_room() */
struct shared_webhook;
struct shared_webhook *shared_webhooks_put(struct shared_webhooks *shared,
                                           const struct webhook_put *put,
                                           webhook_claim_fn *done, void *ctx);

/* `done` will not be called; the webhook is still put. NULL is fine. */
void shared_webhooks_forget(struct shared_webhook *webhook);

/* Read those of a task, ordered by their ids; a record's bytes are a struct webhook_record. */
struct kept_ask *shared_webhooks_read(const struct push_place *place, uint64_t run,
                                      kept_done_fn *done, void *ctx);

struct webhook_claim_ask *shared_webhooks_remove(const struct push_place *place, uint64_t run,
                                                 struct str id, webhook_claim_fn *done,
                                                 void *ctx);

#endif
