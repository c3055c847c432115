/* webhooks: the webhooks of all tasks, and who keeps each up to date.
 *
 * A webhook lives on the loop that was asked for it; after a restart all live on the loop that
 * read them from the store. Any loop may find, list and remove it. One whose task is over stays
 * to be asked about until its room is needed. Where several replicas share the store, shared_webhooks.h
 * takes the place of this.
 *
 *     put ─▶ kept in the store ─▶ push ─▶ settled ─▶ gone when another needs the room
 *             └▶ read by the next process            or when it is removed
 *
 * Memory   owns the webhooks: WEBHOOKS_MAX, of a workspace WEBHOOKS_OF_WORKSPACE_MAX, of a task
 *          WEBHOOKS_OF_TASK_MAX.
 * Threads  any; one lock inside. serve() and leave() belong to the loop of their place.
 */
#ifndef WEIR_CONTRACT_A2A_WEBHOOKS_H
#define WEIR_CONTRACT_A2A_WEBHOOKS_H

#include "contract/a2a/push.h"
#include "store/kept.h"

#define WEBHOOKS_MAX 4096
#define WEBHOOKS_OF_WORKSPACE_MAX 1024
#define WEBHOOKS_OF_TASK_MAX 16

struct webhooks;

struct webhooks *webhooks_new(void);
void webhooks_free(struct webhooks *webhooks); /* every place has left; accepts NULL */

/* The store is open. The first place to call reads what was kept. */
void webhooks_serve(struct webhooks *webhooks, const struct push_place *place);

/* No loop begins anything more; those of this place stop. What they still have to say, the next
 * process says. */
void webhooks_leave(struct webhooks *webhooks, const struct push_place *place);

struct webhook_put {
    const struct push_place *place;
    uint64_t run;
    struct str workspace;
    enum a2a_dialect dialect;
    struct webhook webhook;
};

/* Fill it, but for its place, from what the store has. False: that cannot be read, and the log says so. */
MUST_CHECK bool webhook_put_read(struct str key, struct str bytes, struct arena *arena,
                                 struct webhook_put *ret);

/* Whether one more is taken now.
 * errors  ERR_UNAVAILABLE they are being read, or the daemon stops; ERR_RESOURCE_EXHAUSTED */
MUST_CHECK bool webhooks_have_room(struct webhooks *webhooks, const struct webhook_put *put,
                                   struct err *e);

/* Add a webhook, or replace the one of the same id. `kept` is called once it is on disk, or not
 * at all where there is no store (*ret_ask NULL); NULL: no caller waits.
 * errors  those of webhooks_have_room() */
MUST_CHECK bool webhooks_put(struct webhooks *webhooks, const struct webhook_put *put,
                             kept_done_fn *kept, void *ctx, struct kept_ask **ret_ask,
                             struct err *e);

/* The webhooks of a task, oldest first; with an id the one of that id. `each` runs under the lock.
 * Returns how many there are. */
typedef void webhook_each_fn(const struct webhook *webhook, void *ctx);
size_t webhooks_each(struct webhooks *webhooks, uint64_t run, struct str id,
                     webhook_each_fn *each, void *ctx);

/* No effect where there is none of that id. */
void webhooks_remove(struct webhooks *webhooks, uint64_t run, struct str id);

#endif
