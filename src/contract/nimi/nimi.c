#include "contract/nimi/nimi.h"

#include "base/mem.h"
#include "contract/nimi/account/account.h"
#include "contract/nimi/app/rates.h"
#include "contract/nimi/auth/sessions.h"
#include "contract/nimi/facts.h"
#include "contract/nimi/grant/grants.h"
#include "contract/nimi/grant/use.h"
#include "contract/nimi/health/watch.h"
#include "contract/nimi/job/job_work.h"
#include "contract/nimi/job/workflow_work.h"
#include "contract/nimi/methods.h"
#include "contract/nimi/once.h"
#include "contract/nimi/realtime/session.h"
#include "contract/nimi/transfer/download.h"
#include "contract/nimi/upload/receive.h"
#include "store/store.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the runtime -------------------------------------------------------------------------- */

/* Enough for a minute of samples, and for each provider. */
#define HEALTH_WINDOW 64

static struct topic *state_topic(void) {
    return topic_new(&(struct topic_options){.kind = TOPIC_STATE,
                                             .max_bytes = 64 * KIB,
                                             .max_frames = HEALTH_WINDOW,
                                             .first_sequence = 1});
}

/* An app that comes back within its last 256 messages or 256 KiB misses nothing. */
static const struct topics_limits app_topics = {256 * KIB, 256, 64};

static void set_why(struct nimi_runtime *runtime, const char *why) {
    snprintf(runtime->life.why, sizeof(runtime->life.why), "%s", why);
}

struct nimi_runtime *nimi_runtime_new(const struct scheduler_limits *limits) {
    static const struct scheduler_limits uploads = {.global = RECEIVE_SLOTS,
                                                    .per_app = RECEIVE_SLOTS_PER_APP,
                                                    .queue_max = RECEIVE_QUEUE_MAX,
                                                    .queue_per_app = RECEIVE_QUEUE_PER_APP};
    static const struct scheduler_limits workflows = {.global = WORKFLOW_SLOTS,
                                                      .per_app = WORKFLOW_SLOTS_PER_APP,
                                                      .pool = "workflows",
                                                      .queue_max = WORKFLOW_QUEUE_MAX,
                                                      .queue_per_app = WORKFLOW_QUEUE_MAX};
    struct nimi_runtime *runtime = MEM_NEW(struct nimi_runtime);
    runtime->life.state = LIFE_STOPPED;
    set_why(runtime, "not started");
    runtime->scheduler = scheduler_new(limits);
    runtime->slots = scheduler_new(&uploads);
    runtime->sessions = sessions_new(SESSIONS_MAX);
    runtime->workflows = scheduler_new(&workflows);
    runtime->replies = replies_new(REPLIES_MAX, REPLIES_MAX_BYTES);
    pthread_mutex_init(&runtime->life.lock, NULL);
    pthread_mutex_init(&runtime->health.lock, NULL);
    runtime->health.runtime = state_topic();
    runtime->health.providers = state_topic();
    runtime->account = nimi_account_new();
    runtime->grants = grants_new(GRANTS_MAX, GRANTS_MAX_BYTES);
    runtime->facts = facts_new(runtime->sessions, runtime->grants);
    runtime->apps = (struct nimi_apps){topics_new(&app_topics), rates_new()};
    runtime->realtime = realtime_table_new();
    runtime->downloads = downloads_new();
    runtime->logs = log_topics_new();
    embed_turn_init(&runtime->embed_turn);
    return runtime;
}

void nimi_runtime_free(struct nimi_runtime *runtime) {
    if (!runtime) return;
    scheduler_free(runtime->scheduler);
    scheduler_free(runtime->slots);
    scheduler_free(runtime->workflows);
    replies_free(runtime->replies);
    sessions_free(runtime->sessions);
    nimi_account_free(runtime->account);
    grants_free(runtime->grants);
    facts_free(runtime->facts);
    topics_free(runtime->apps.topics);
    rates_free(runtime->apps.rates);
    realtime_table_free(runtime->realtime);
    downloads_free(runtime->downloads);
    log_topics_unref(runtime->logs);
    embed_turn_done(&runtime->embed_turn);
    topic_unref(runtime->health.runtime);
    topic_unref(runtime->health.providers);
    pthread_mutex_destroy(&runtime->health.lock);
    pthread_mutex_destroy(&runtime->life.lock);
    free(runtime);
}

void nimi_runtime_move(struct nimi_runtime *runtime, enum lifecycle next, const char *why) {
    pthread_mutex_lock(&runtime->life.lock);
    lifecycle_move(&runtime->life.state, next);
    set_why(runtime, why);
    pthread_mutex_unlock(&runtime->life.lock);
    health_publish(runtime);
}

enum lifecycle nimi_runtime_state(struct nimi_runtime *runtime) {
    pthread_mutex_lock(&runtime->life.lock);
    enum lifecycle state = runtime->life.state;
    pthread_mutex_unlock(&runtime->life.lock);
    return state;
}

enum lifecycle nimi_runtime_why(struct nimi_runtime *runtime, char ret_why[NIMI_WHY_BYTES]) {
    pthread_mutex_lock(&runtime->life.lock);
    enum lifecycle state = runtime->life.state;
    memcpy(ret_why, runtime->life.why, NIMI_WHY_BYTES);
    pthread_mutex_unlock(&runtime->life.lock);
    return state;
}

struct str nimi_probe_state_name(enum nimi_probe_state state) {
    static const struct str names[] = {
        [NIMI_PROBE_UNKNOWN] = STR_INIT("unknown"),
        [NIMI_PROBE_HEALTHY] = STR_INIT("healthy"),
        [NIMI_PROBE_UNHEALTHY] = STR_INIT("unhealthy"),
    };
    return names[state];
}

/* Whether a subscriber learns something. When it was checked is not news. */
static bool probed_differs(const struct nimi_probed *one, const struct nimi_probed *other) {
    return one->state != other->state || one->failures != other->failures ||
           strcmp(one->name, other->name) != 0 || strcmp(one->reason, other->reason) != 0;
}

/* Publish the ones that are not among `before`. */
static void report_of_probed(struct nimi_runtime *runtime, const struct nimi_probed *probed,
                             size_t count, const struct nimi_probed *before,
                             size_t before_count) {
    for (size_t i = 0; i < count; i++) {
        bool known = false;
        for (size_t j = 0; j < before_count && !known; j++)
            known = !probed_differs(&probed[i], &before[j]);
        if (!known) health_publish_provider(runtime, &probed[i]);
    }
}

bool nimi_runtime_probed(struct nimi_runtime *runtime, const struct nimi_probed *probed,
                         size_t count, bool all_down) {
    assert(count <= NIMI_PROBED_MAX && (count || !all_down));
    struct nimi_probed probed_before[NIMI_PROBED_MAX];
    pthread_mutex_lock(&runtime->life.lock);
    enum lifecycle before = runtime->life.state;
    size_t count_before = runtime->life.probed_count;
    memcpy(probed_before, runtime->life.probed, count_before * sizeof(*probed));
    runtime->life.probed_count = count;
    if (count) memcpy(runtime->life.probed, probed, count * sizeof(*probed));
    if (all_down && before == LIFE_READY) {
        lifecycle_move(&runtime->life.state, LIFE_DEGRADED);
        snprintf(runtime->life.why, sizeof(runtime->life.why), "ai-provider:%s unavailable",
                 probed[0].name);
    } else if (!all_down && before == LIFE_DEGRADED) {
        lifecycle_move(&runtime->life.state, LIFE_READY);
        set_why(runtime, "ready");
    }
    bool moved = runtime->life.state != before;
    pthread_mutex_unlock(&runtime->life.lock);
    report_of_probed(runtime, probed, count, probed_before, count_before);
    if (moved) health_publish(runtime);
    return moved;
}

size_t nimi_runtime_providers(struct nimi_runtime *runtime,
                              struct nimi_probed ret[NIMI_PROBED_MAX]) {
    pthread_mutex_lock(&runtime->life.lock);
    size_t count = runtime->life.probed_count;
    memcpy(ret, runtime->life.probed, count * sizeof(*ret));
    pthread_mutex_unlock(&runtime->life.lock);
    return count;
}

bool nimi_runtime_knows_app(struct nimi_runtime *runtime, struct str app) {
    return sessions_knows_app(runtime->sessions, app);
}

void nimi_runtime_share(struct nimi_runtime *runtime, struct store *store) {
    scheduler_share(runtime->scheduler, store);
    scheduler_share(runtime->workflows, store);
    facts_share(runtime->facts, store);
}

/* --- a loop's share ------------------------------------------------------------------------ */

void nimi_site(const struct nimi_instance *instance, struct rpc_site *site) {
    rpc_site_always(site, STR("x-nimi-runtime-version"), instance->settings->version);
}

void nimi_instance_init(struct nimi_instance *instance, const struct nimi_settings *settings,
                        struct run_host *host, struct nimi_runtime *runtime) {
    *instance = (struct nimi_instance){
        .settings = settings, .host = host, .runtime = runtime, .methods = nimi_methods_new()};
    key_fetcher_init(&instance->keys, host->loop, NULL);
    list_init(&instance->calls);
    list_init(&instance->shared);
    list_init(&instance->jobs);
    list_init(&instance->workflows);
    list_init(&instance->realtime);
    list_init(&instance->downloads);
    pruner_init(&instance->pruner, host->loop);
    embedder_init(&instance->embedder, instance);
    health_beat_init(instance);
    facts_watch_init(instance);
    grant_uses_init(instance);
    account_share_init(instance);
}

void nimi_instance_serving(struct nimi_instance *instance) {
    struct store *store = instance->host->engine->store;
    if (!store || !store_is_shared(store)) { /* replicas refuse their methods */
        account_share_serving(instance);
        downloads_load(instance->runtime->downloads, instance);
    }
    facts_watch(instance);
    pruner_start(&instance->pruner, store);
    bank_pruner_start(&instance->bank_pruner, instance->host->loop, store);
    embedder_start(&instance->embedder, store);
}

static void stop_workers(struct nimi_instance *instance) {
    pruner_stop(&instance->pruner);
    bank_pruner_stop(&instance->bank_pruner);
    embedder_stop(&instance->embedder);
}

/* Nothing that watches calls back any more. */
static void stop_watching(struct nimi_instance *instance) {
    account_share_leave(instance);
    facts_unwatch(instance);
    timer_stop(&instance->beat);
    timer_stop(&instance->grant_uses);
}

void nimi_instance_stopping(struct nimi_instance *instance) {
    once_stop_all(instance);
    realtime_leave_all(instance);
    downloads_leave(instance);
    stop_workers(instance);
}

void nimi_instance_leave(struct nimi_instance *instance) {
    stop_watching(instance);
    realtime_leave_all(instance);
    key_fetcher_leave(&instance->keys);
    workflow_work_leave_all(instance); /* first: its nodes follow jobs */
    job_work_leave_all(instance);
}

void nimi_instance_done(struct nimi_instance *instance) {
    if (!instance->methods) return;
    assert(list_empty(&instance->calls) && list_empty(&instance->jobs) &&
           list_empty(&instance->shared) && list_empty(&instance->workflows) &&
           list_empty(&instance->realtime) && list_empty(&instance->downloads));
    stop_workers(instance);
    nimi_methods_free(instance->methods);
    stop_watching(instance);
}
