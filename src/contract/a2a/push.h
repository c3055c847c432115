/* push: keep one webhook of a task up to date.
 *
 * It follows the run and posts the task each time its state has changed. What is posted is the task
 * as it is then, so there is no queue: changes that come while a post is under way, or between two
 * attempts, are one post. A post that fails is repeated after growing, jittered pauses; a webhook
 * that refuses it (4xx), or fails PUSH_ATTEMPTS_MAX times, misses this state and gets the next.
 *
 *     watching ⇄ sending ─▶ pausing ─▶ watching
 *         └▶ settled                 the task is over, and that was posted or given up
 *
 * Where several replicas share a store, it asks before each post whether it still may (asking).
 *
 * A state may arrive twice: after a crash, or where an answer was lost. An older state never comes
 * after a newer one.
 *
 * Memory   inside its owner; push_init(), push_start(), push_done(). It owns its texts.
 * Threads  the loop of its place.
 * Source   A2A 1.0 4.3.3; A2A 0.3 9.5.
 */
#ifndef WEIR_CONTRACT_A2A_PUSH_H
#define WEIR_CONTRACT_A2A_PUSH_H

#include "base/states.h"
#include "client/http.h"
#include "contract/a2a/task.h"
#include "contract/a2a/webhook.h"
#include "stream/follow.h"
#include "turn/run.h"

#define PUSH_ATTEMPTS_MAX 15
#define PUSH_PAUSE_FIRST_MS 1000
#define PUSH_PAUSE_MAX_MS (5 * 60 * 1000)
#define PUSH_TEXT_MAX_BYTES MIB /* an answer or a history that is longer is left out */

enum push_state {
    PUSH_WATCHING,
    PUSH_ASKING,
    PUSH_SENDING,
    PUSH_PAUSING,
    PUSH_SETTLED,
    PUSH_STATE_COUNT
};

extern const struct state push_states[PUSH_STATE_COUNT];

/* What one loop's pushes work with; it outlives them. */
struct push_place {
    struct loop *loop;
    struct http_pool *pool;
    struct store *store; /* or NULL */
    struct run_host *host;
    enum http_reach reach; /* of webhooks; settings change it */
};

struct push {
    const struct push_place *place;
    uint64_t run;
    enum a2a_dialect dialect;
    struct webhook webhook;
    struct buf texts; /* of the webhook */
    /* Called when `sent` or `state` has changed for good; it may not end the push. */
    void (*progress)(struct push *push);
    /* Called before each post; push_allow() or push_wait() follows, later, unless the push is to
     * be ended. NULL: it may. */
    void (*ask)(struct push *push);

    enum push_state state;
    struct follow *follow;
    struct task go_on; /* at the end of the loop's turn: changes that come together are one */
    struct a2a_task task;
    bool long_history; /* it was too long to be posted: it is forgotten */
    bool over;         /* the run's last event is in the task, or there is none */
    bool gone;         /* there is no such run any more */
    uint64_t due;      /* seq of the event that last changed the task's state */
    uint64_t sent;     /* what the webhook has, or misses for good */
    uint64_t sending;
    struct http_call *http;
    struct buf body;
    struct timer pause;
    unsigned attempts, status;
    int64_t retry_after_ms;
};

/* Texts are copied. `sent`: what an earlier process has posted; 0: nothing. */
void push_init(struct push *push, const struct push_place *place, uint64_t run,
               enum a2a_dialect dialect, const struct webhook *webhook, uint64_t sent);

/* Begin. No callback before it returns. */
void push_start(struct push *push);

/* The answer to ask(): post what there is now; or try again in a moment. */
void push_allow(struct push *push);
void push_wait(struct push *push);

/* It is over, as an earlier process has found. */
void push_settle(struct push *push);

/* Stop whatever it does; texts stay readable until push_done(). */
void push_stop(struct push *push);
void push_done(struct push *push);

/* How long to wait after `attempts` failures, with `random` bits for the jitter. */
uint64_t push_pause_ms(unsigned attempts, uint64_t random);

#endif
