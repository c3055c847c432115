#include "contract/nimi/health/watch.h"

#include "base/clock.h"
#include "contract/nimi/health/sample.h"
#include "contract/nimi/moment.h"
#include "contract/nimi/subscription.h"

/* --- publishing --------------------------------------------------------------------------- */

/* The lock makes the order of events the order in which the states were seen. */
static void publish_sample(struct nimi_runtime *runtime, uint64_t newer_than_ms) {
    struct health_topics *topics = &runtime->health;
    pthread_mutex_lock(&topics->lock);
    if (topics->published_ms <= newer_than_ms) {
        struct health_sample now = health_sample_take(runtime);
        const struct google_timestamp at = nimi_moment(now.unix_ms);
        struct nimi_runtime_health_event event = {.status = (int32_t)now.state,
                                                  .reason = str_from(now.why),
                                                  .queue_depth = (int32_t)now.queue_depth,
                                                  .active_workflows = (int32_t)now.workflows,
                                                  .active_inference_jobs =
                                                      (int32_t)now.inference_jobs,
                                                  .cpu_milli = now.cpu_milli,
                                                  .memory_bytes = now.memory_bytes,
                                                  .sampled_at = &at};
        topic_publish(topics->runtime,
                      &(struct topic_event){.type = &nimi_runtime_health_event_table,
                                            .message = &event,
                                            .sequence = &event.sequence});
        topics->published_ms = clock_mono_ms();
    }
    pthread_mutex_unlock(&topics->lock);
}

void health_publish(struct nimi_runtime *runtime) {
    publish_sample(runtime, UINT64_MAX);
}

/* Publish unless another loop has done so within a beat. */
static void publish_if_old(struct nimi_runtime *runtime) {
    uint64_t now_ms = clock_mono_ms();
    publish_sample(runtime, now_ms > HEALTH_BEAT_MS / 2 ? now_ms - HEALTH_BEAT_MS / 2 : 0);
}

void health_publish_provider(struct nimi_runtime *runtime, const struct nimi_probed *probed) {
    const struct google_timestamp changed = nimi_moment(probed->changed_ms);
    const struct google_timestamp checked = nimi_moment(probed->checked_ms);
    struct nimi_ai_provider_health_event event = {
        .provider_name = str_from(probed->name),
        .state = nimi_probe_state_name(probed->state),
        .reason = str_from(probed->reason),
        .consecutive_failures = probed->failures,
        .last_changed_at = probed->changed_ms ? &changed : NULL,
        .last_checked_at = probed->checked_ms ? &checked : NULL};
    topic_publish(runtime->health.providers,
                  &(struct topic_event){.type = &nimi_ai_provider_health_event_table,
                                        .message = &event,
                                        .sequence = &event.sequence,
                                        .label = str_from(probed->name)});
}

/* --- the beat ----------------------------------------------------------------------------- */

static void on_beat(void *ctx) {
    struct nimi_instance *instance = ctx;
    if (!topic_is_read(instance->runtime->health.runtime)) return;
    publish_if_old(instance->runtime);
    timer_start(&instance->beat, HEALTH_BEAT_MS);
}

void health_beat_init(struct nimi_instance *instance) {
    timer_init(&instance->beat, instance->host->loop, on_beat, instance);
}

/* --- subscribing -------------------------------------------------------------------------- */

static void subscribe_to(struct nimi_call *call, struct topic *topic) {
    const struct subscription_options options = {.topic = topic, .start = TOPIC_LATEST};
    subscription_settle(call, subscription_start(call, &options, NULL));
}

/* One whose first sample is old would see a state of long ago. */
void health_subscribe(struct nimi_call *call, const void *request) {
    struct nimi_instance *instance = call->instance;
    (void)request;
    publish_if_old(instance->runtime);
    subscribe_to(call, instance->runtime->health.runtime);
    if (!call->over && !timer_waits(&instance->beat))
        timer_start(&instance->beat, HEALTH_BEAT_MS);
}

void health_subscribe_providers(struct nimi_call *call, const void *request) {
    (void)request;
    subscribe_to(call, call->instance->runtime->health.providers);
}
