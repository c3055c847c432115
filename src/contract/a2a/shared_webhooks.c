#include "contract/a2a/shared_webhooks.h"

#include "base/log.h"
#include "base/mem.h"
#include "store/changes.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define RECORD_MAX_BYTES (64 * KIB)
#define LOOK_AGAIN_MS 1000 /* after the store failed */

struct shared_webhook {
    struct push push;
    struct list link; /* in `putting`, `all` or `removed` */
    struct shared_webhooks *shared;
    uint64_t number; /* of its claim */
    uint64_t look;   /* what had been looked for when it came into `all` */
    bool removed;
    struct webhook_claim_ask *ask; /* it is put; or its claim is looked at */
    struct mail mail;              /* to its loop, once it is removed */
    webhook_claim_fn *done;        /* who waits until it is put, or NULL */
    void *ctx;
};

struct shared_webhooks {
    pthread_mutex_t lock;
    struct list putting;
    struct list all;
    struct list removed; /* on the way to their loops */
    uint64_t numbers;    /* that claims have had */
    bool closed;
    /* The reader's. */
    const struct push_place *reader;
    struct changes_watcher *watcher;
    struct webhook_claim_ask *looking;
    uint64_t look;   /* how many have begun; under the lock */
    uint64_t number; /* for what this look takes */
    bool changed;    /* since it began */
    struct timer again;
};

struct shared_webhooks *shared_webhooks_new(void) {
    struct shared_webhooks *shared = MEM_NEW(struct shared_webhooks);
    pthread_mutex_init(&shared->lock, NULL);
    list_init(&shared->putting);
    list_init(&shared->all);
    list_init(&shared->removed);
    return shared;
}

void shared_webhooks_free(struct shared_webhooks *shared) {
    if (!shared) return;
    assert(list_empty(&shared->putting) && list_empty(&shared->all) &&
           list_empty(&shared->removed));
    pthread_mutex_destroy(&shared->lock);
    free(shared);
}

static struct shared_webhook *webhook_of(struct list *link) {
    return CONTAINER_OF(link, struct shared_webhook, link);
}

static uint64_t next_number(struct shared_webhooks *shared) {
    pthread_mutex_lock(&shared->lock);
    uint64_t number = ++shared->numbers;
    pthread_mutex_unlock(&shared->lock);
    return number;
}

/* --- one of them -------------------------------------------------------------------------- */

static void shared_webhook_free(struct shared_webhook *webhook) {
    webhook_claim_forget(webhook->ask);
    push_done(&webhook->push);
    free(webhook);
}

/* On its loop. */
static void shared_on_removed(void *ctx) {
    struct shared_webhook *webhook = ctx;
    struct shared_webhooks *shared = webhook->shared;
    pthread_mutex_lock(&shared->lock);
    list_remove(&webhook->link);
    pthread_mutex_unlock(&shared->lock);
    shared_webhook_free(webhook);
}

/* Under the lock: have its loop end it. */
static void shared_take_out(struct shared_webhook *webhook) {
    if (webhook->removed) return;
    webhook->removed = true;
    list_remove(&webhook->link);
    list_append(&webhook->shared->removed, &webhook->link);
    loop_post(webhook->push.place->loop, &webhook->mail, shared_on_removed, webhook);
}

static void shared_drop(struct shared_webhook *webhook) {
    pthread_mutex_lock(&webhook->shared->lock);
    shared_take_out(webhook);
    pthread_mutex_unlock(&webhook->shared->lock);
}

/* What the store holds of one whose claim is gone does not change. */
static void shared_on_progress(struct push *push) {
    struct shared_webhook *webhook = CONTAINER_OF(push, struct shared_webhook, push);
    bool over = push->state == PUSH_SETTLED;
    enum webhook_claim_end end = push->gone ? WEBHOOK_CLAIM_IS_GONE : WEBHOOK_CLAIM_IS_OVER;
    struct buf key;
    webhook_key_begin(push->run, push->webhook.id, &key);
    webhook_claim_sent(push->place->store, push->place->loop, buf_str(&key), webhook->number,
                       push->sent, over ? end : WEBHOOK_CLAIM_GOES_ON);
    buf_done(&key);
    if (over) shared_drop(webhook);
}

static bool is_removed(struct shared_webhook *webhook) {
    pthread_mutex_lock(&webhook->shared->lock);
    bool removed = webhook->removed;
    pthread_mutex_unlock(&webhook->shared->lock);
    return removed;
}

/* While the store cannot say, nothing is posted: another replica may be at it. */
static void on_checked(bool stands, const struct err *failed, void *ctx) {
    struct shared_webhook *webhook = ctx;
    webhook->ask = NULL;
    if (is_removed(webhook)) return; /* its mail ends it */
    if (failed) {
        push_wait(&webhook->push);
    } else if (stands) {
        push_allow(&webhook->push);
    } else {
        shared_drop(webhook);
    }
}

static void shared_on_ask(struct push *push) {
    struct shared_webhook *webhook = CONTAINER_OF(push, struct shared_webhook, push);
    struct buf key;
    webhook_key_begin(push->run, push->webhook.id, &key);
    webhook->ask = webhook_claim_check(push->place->store, push->place->loop, buf_str(&key),
                                       webhook->number, on_checked, webhook);
    buf_done(&key);
}

static struct shared_webhook *shared_webhook_new(struct shared_webhooks *shared,
                                                 const struct webhook_put *put, uint64_t number,
                                                 uint64_t sent) {
    struct shared_webhook *webhook = MEM_NEW(struct shared_webhook);
    webhook->shared = shared;
    webhook->number = number;
    list_init(&webhook->link);
    push_init(&webhook->push, put->place, put->run, put->dialect, &put->webhook, sent);
    webhook->push.progress = shared_on_progress;
    webhook->push.ask = shared_on_ask;
    return webhook;
}

/* Under the lock, on the loop of its place. */
static void shared_begin(struct shared_webhook *webhook) {
    webhook->look = webhook->shared->look;
    list_append(&webhook->shared->all, &webhook->link);
    push_start(&webhook->push);
}

/* --- putting ------------------------------------------------------------------------------ */

/* What the store has to know. */
struct kept_put {
    struct webhook_claim_put claim;
    struct buf key, bytes, peers;
};

static void kept_put_init(struct kept_put *kept, const struct webhook_put *put,
                          uint64_t number) {
    const struct webhook_record record = {put->webhook, put->workspace, put->dialect};
    webhook_key_begin(put->run, put->webhook.id, &kept->key);
    buf_init(&kept->bytes, RECORD_MAX_BYTES);
    buf_init(&kept->peers, RECORD_MAX_BYTES);
    webhook_record_write(&record, &kept->bytes);
    webhook_record_write_workspace(put->workspace, &kept->peers);
    kept->claim = (struct webhook_claim_put){
        .run = put->run,
        .key = buf_str(&kept->key),
        .bytes = buf_str(&kept->bytes),
        .peers = buf_str(&kept->peers),
        .number = number,
        .limits = {WEBHOOKS_OF_TASK_MAX, WEBHOOKS_OF_WORKSPACE_MAX, WEBHOOKS_MAX}};
}

static void kept_put_done(struct kept_put *kept) {
    buf_done(&kept->key);
    buf_done(&kept->bytes);
    buf_done(&kept->peers);
}

struct webhook_claim_ask *shared_webhooks_room(const struct webhook_put *put,
                                               webhook_claim_fn *done, void *ctx) {
    struct kept_put kept;
    kept_put_init(&kept, put, 0);
    struct webhook_claim_ask *ask =
        webhook_claim_room(put->place->store, put->place->loop, &kept.claim, done, ctx);
    kept_put_done(&kept);
    return ask;
}

/* If it is not known whether it is in the store, the look before the first post says. */
static void shared_on_put(bool stands, const struct err *failed, void *ctx) {
    struct shared_webhook *webhook = ctx;
    struct shared_webhooks *shared = webhook->shared;
    webhook_claim_fn *done = webhook->done;
    void *done_ctx = webhook->ctx;
    (void)stands;
    webhook->ask = NULL;
    webhook->done = NULL;
    pthread_mutex_lock(&shared->lock);
    list_remove(&webhook->link);
    bool begins = !shared->closed && (!failed || failed->code == ERR_OUTCOME_UNKNOWN);
    if (begins) shared_begin(webhook);
    pthread_mutex_unlock(&shared->lock);
    if (!begins) shared_webhook_free(webhook);
    if (done)
        done(true, failed, done_ctx);
    else if (failed)
        log_warning("a2a: a task began without its webhook: %s", failed->text);
}

struct shared_webhook *shared_webhooks_put(struct shared_webhooks *shared,
                                           const struct webhook_put *put,
                                           webhook_claim_fn *done, void *ctx) {
    struct kept_put kept;
    struct shared_webhook *webhook = shared_webhook_new(shared, put, next_number(shared), 0);
    webhook->done = done;
    webhook->ctx = ctx;
    kept_put_init(&kept, put, webhook->number);
    pthread_mutex_lock(&shared->lock);
    list_append(&shared->putting, &webhook->link);
    pthread_mutex_unlock(&shared->lock);
    webhook->ask = webhook_claim_put(put->place->store, put->place->loop, &kept.claim,
                                     shared_on_put, webhook);
    kept_put_done(&kept);
    return webhook;
}

static void nobody_waits(bool stands, const struct err *failed, void *ctx) {
    (void)stands;
    (void)ctx;
    if (failed) log_debug("a2a: a webhook is not kept: %s", failed->text);
}

void shared_webhooks_forget(struct shared_webhook *webhook) {
    if (webhook) webhook->done = nobody_waits;
}

/* --- reading and removing ------------------------------------------------------------------ */

struct kept_ask *shared_webhooks_read(const struct push_place *place, uint64_t run,
                                      kept_done_fn *done, void *ctx) {
    char from[32], upto[32];
    snprintf(from, sizeof(from), "%" PRIu64 "-", run);
    snprintf(upto, sizeof(upto), "%" PRIu64 ".", run); /* what follows '-' */
    return kept_read_keys_start(place->store, place->loop, KEPT_WEBHOOK, str_from(from),
                                str_from(upto), done, ctx);
}

struct webhook_claim_ask *shared_webhooks_remove(const struct push_place *place, uint64_t run,
                                                 struct str id, webhook_claim_fn *done,
                                                 void *ctx) {
    struct buf key;
    webhook_key_begin(run, id, &key);
    struct webhook_claim_ask *ask =
        webhook_claim_remove(place->store, place->loop, buf_str(&key), done, ctx);
    buf_done(&key);
    return ask;
}

/* --- looking ------------------------------------------------------------------------------ */

static void shared_webhooks_look(void *ctx);

static bool is_claim_of(const struct webhook_claim *claim,
                        const struct shared_webhook *webhook) {
    const struct push *push = &webhook->push;
    uint64_t run;
    struct str id;
    (void)str_split(claim->key, '-', &id);
    return claim->number == webhook->number && webhook_key_read(claim->key, &run) &&
           run == push->run && str_equal(id, push->webhook.id);
}

static bool is_ours(const struct webhook_claim *claims, size_t count,
                    const struct shared_webhook *webhook) {
    for (size_t i = 0; i < count; i++) {
        if (is_claim_of(&claims[i], webhook)) return true;
    }
    return false;
}

/* Under the lock. One that came while the store was asked is not judged: the next post will. */
static void drop_lost(struct shared_webhooks *shared, const struct webhook_claim *claims,
                      size_t count) {
    LIST_EACH(&shared->all, link) {
        struct shared_webhook *webhook = webhook_of(link);
        if (webhook->look < shared->look && !is_ours(claims, count, webhook))
            shared_take_out(webhook);
    }
}

/* Under the lock. */
static void take_claim(struct shared_webhooks *shared, const struct webhook_claim *claim,
                       struct arena *arena) {
    struct webhook_put put = {.place = shared->reader};
    bool over;
    if (!webhook_put_read(claim->key, claim->bytes, arena, &put)) return;
    shared_begin(
        shared_webhook_new(shared, &put, claim->number, webhook_sent_read(claim->sent, &over)));
}

/* Under the lock. Returns how many are new. */
static size_t take_claims(struct shared_webhooks *shared, const struct webhook_claim *claims,
                          size_t count) {
    struct arena *arena = arena_new(KEPT_READ_MAX_BYTES);
    size_t taken = 0;
    for (size_t i = 0; i < count; i++) {
        if (!claims[i].taken) continue;
        take_claim(shared, &claims[i], arena);
        taken++;
    }
    arena_free(arena);
    return taken;
}

static void shared_webhooks_on_looked(const struct webhook_claim *claims, size_t count,
                                      const struct err *failed, void *ctx) {
    struct shared_webhooks *shared = ctx;
    shared->looking = NULL;
    if (failed) { /* the same again, which may have been done */
        log_often(LOG_WARNING, "a2a: webhooks are looked for again: %s", failed->text);
        timer_start(&shared->again, LOOK_AGAIN_MS);
        return;
    }
    shared->number = 0;
    pthread_mutex_lock(&shared->lock);
    drop_lost(shared, claims, count);
    size_t taken = take_claims(shared, claims, count);
    pthread_mutex_unlock(&shared->lock);
    if (taken) log_info("a2a: %zu webhooks go on here", taken);
    if (shared->changed || taken >= WEBHOOK_CLAIMS_MAX) shared_webhooks_look(shared);
}

static void shared_webhooks_look(void *ctx) {
    struct shared_webhooks *shared = ctx;
    const struct push_place *place = shared->reader;
    shared->changed = shared->looking != NULL;
    if (shared->changed) return;
    timer_stop(&shared->again);
    if (!shared->number) shared->number = next_number(shared);
    pthread_mutex_lock(&shared->lock);
    shared->look++;
    pthread_mutex_unlock(&shared->lock);
    shared->looking = webhook_claims_take(place->store, place->loop, shared->number,
                                          shared_webhooks_on_looked, shared);
}

void shared_webhooks_serve(struct shared_webhooks *shared, const struct push_place *place) {
    pthread_mutex_lock(&shared->lock);
    bool reads = !shared->reader && !shared->closed;
    if (reads) shared->reader = place;
    pthread_mutex_unlock(&shared->lock);
    if (!reads) return;
    timer_init(&shared->again, place->loop, shared_webhooks_look, shared);
    shared->watcher = changes_watch(store_changes(place->store), CHANGE_WEBHOOKS, place->loop,
                                    shared_webhooks_look, shared);
    shared_webhooks_look(shared);
}

/* --- the end ------------------------------------------------------------------------------ */

/* Under the lock: move those of this place to `ret`. */
static void shared_take_those(struct list *from, const struct push_place *place,
                              struct list *ret) {
    LIST_EACH(from, link) {
        if (webhook_of(link)->push.place != place) continue;
        list_remove(link);
        list_append(ret, link);
    }
}

static void stop_looking(struct shared_webhooks *shared) {
    timer_stop(&shared->again);
    changes_leave(shared->watcher);
    shared->watcher = NULL;
    webhook_claim_forget(shared->looking);
    shared->looking = NULL;
}

/* A mail ends the removed ones. */
static void shared_stop_removed(struct shared_webhooks *shared,
                                const struct push_place *place) {
    LIST_EACH(&shared->removed, link) {
        struct shared_webhook *webhook = webhook_of(link);
        if (webhook->push.place != place) continue;
        webhook_claim_forget(webhook->ask);
        webhook->ask = NULL;
        push_stop(&webhook->push);
    }
}

void shared_webhooks_leave(struct shared_webhooks *shared, const struct push_place *place) {
    struct list own;
    list_init(&own);
    pthread_mutex_lock(&shared->lock);
    shared->closed = true;
    shared_take_those(&shared->putting, place, &own);
    shared_take_those(&shared->all, place, &own);
    shared_stop_removed(shared, place);
    bool reads = shared->reader == place;
    pthread_mutex_unlock(&shared->lock);
    if (reads) stop_looking(shared);
    LIST_EACH(&own, link) shared_webhook_free(webhook_of(link));
}
