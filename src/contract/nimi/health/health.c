#include "contract/nimi/health/health.h"

#include "contract/nimi/fetch.h"
#include "contract/nimi/health/sample.h"
#include "contract/nimi/moment.h"
#include "wire/json.h"
#include "wire/moment.h"

void health_get(struct nimi_call *call, const void *request) {
    struct health_sample now = health_sample_take(call->instance->runtime);
    const struct google_timestamp at = nimi_moment(now.unix_ms);
    (void)request;
    nimi_reply(call, &nimi_get_runtime_health_response_table,
               &(struct nimi_get_runtime_health_response){
                   .status = (int32_t)now.state,
                   .reason = str_from(now.why),
                   .queue_depth = (int32_t)now.queue_depth,
                   .active_workflows = (int32_t)now.workflows,
                   .active_inference_jobs = (int32_t)now.inference_jobs,
                   .cpu_milli = now.cpu_milli,
                   .memory_bytes = now.memory_bytes,
                   .sampled_at = &at});
}

void health_list_providers(struct nimi_call *call, const void *request) {
    struct nimi_probed probed[NIMI_PROBED_MAX];
    struct google_timestamp changed[NIMI_PROBED_MAX], checked[NIMI_PROBED_MAX];
    struct nimi_ai_provider_health_snapshot snapshots[NIMI_PROBED_MAX];
    size_t count = nimi_runtime_providers(call->instance->runtime, probed);
    (void)request;
    for (size_t i = 0; i < count; i++) {
        changed[i] = nimi_moment(probed[i].changed_ms);
        checked[i] = nimi_moment(probed[i].checked_ms);
        snapshots[i] = (struct nimi_ai_provider_health_snapshot){
            .provider_name = str_from(probed[i].name),
            .state = nimi_probe_state_name(probed[i].state),
            .reason = str_from(probed[i].reason),
            .consecutive_failures = probed[i].failures,
            .last_changed_at = probed[i].changed_ms ? &changed[i] : NULL,
            .last_checked_at = probed[i].checked_ms ? &checked[i] : NULL};
    }
    nimi_reply(call, &nimi_list_ai_provider_health_response_table,
               &(struct nimi_list_ai_provider_health_response){.providers = snapshots,
                                                               .providers_count = count});
}

/* --- HTTP --------------------------------------------------------------------------------- */

static void health_reply(struct route_call *call, int status, const struct buf *body) {
    route_reply(call, status, STR("application/json"), buf_str(body));
}

static int health_status_of(const struct health_sample *now) {
    return now->state == LIFE_READY ? 200 : 503;
}

static void member_time(struct json_writer *json, const char *key, int64_t unix_ms) {
    struct buf text;
    buf_init(&text, 64);
    moment_put(&text, unix_ms / 1000, 0);
    json_member_str(json, key, buf_str(&text));
    buf_done(&text);
}

static void livez(struct route_call *call, void *ctx) {
    (void)ctx;
    route_reply(call, 200, STR("application/json"), STR("{\"ok\":true}"));
}

static void readyz(struct route_call *call, void *ctx) {
    struct health_sample now = health_sample_take(((struct nimi_instance *)ctx)->runtime);
    struct buf body;
    buf_init(&body, 4 * KIB);
    struct json_writer json = json_writer(&body);
    json_open_object(&json);
    json_member_bool(&json, "ok", now.state == LIFE_READY);
    json_member_str(&json, "status", lifecycle_name(now.state));
    json_member_str(&json, "reason", str_from(now.why));
    member_time(&json, "sampled_at", now.unix_ms);
    json_close(&json);
    health_reply(call, health_status_of(&now), &body);
    buf_done(&body);
}

static void write_provider(struct json_writer *json, const struct nimi_probed *probed) {
    json_open_object(json);
    json_member_str(json, "name", str_from(probed->name));
    json_member_str(json, "state", nimi_probe_state_name(probed->state));
    json_member_str(json, "reason", str_from(probed->reason));
    json_member_i64(json, "consecutive_failures", probed->failures);
    if (probed->changed_ms) member_time(json, "last_changed_at", probed->changed_ms);
    if (probed->checked_ms) member_time(json, "last_checked_at", probed->checked_ms);
    json_close(json);
}

static void write_providers(struct json_writer *json, struct nimi_runtime *runtime) {
    struct nimi_probed probed[NIMI_PROBED_MAX];
    size_t count = nimi_runtime_providers(runtime, probed);
    json_member_array(json, "ai_providers");
    for (size_t i = 0; i < count; i++) write_provider(json, &probed[i]);
    json_close(json);
}

static void runtime_health(struct route_call *call, void *ctx) {
    struct health_sample now = health_sample_take(((struct nimi_instance *)ctx)->runtime);
    struct buf body;
    buf_init(&body, 64 * KIB);
    struct json_writer json = json_writer(&body);
    json_open_object(&json);
    json_member_str(&json, "status", lifecycle_name(now.state));
    json_member_i64(&json, "status_code", (int64_t)now.state);
    json_member_str(&json, "reason", str_from(now.why));
    json_member_u64(&json, "queue_depth", now.queue_depth);
    json_member_u64(&json, "active_workflows", now.workflows);
    json_member_u64(&json, "active_inference_jobs", now.inference_jobs);
    json_member_i64(&json, "cpu_milli", now.cpu_milli);
    json_member_i64(&json, "memory_bytes", now.memory_bytes);
    json_member_u64(&json, "vram_bytes", 0);
    member_time(&json, "sampled_at", now.unix_ms);
    write_providers(&json, ((struct nimi_instance *)ctx)->runtime);
    json_close(&json);
    health_reply(call, health_status_of(&now), &body);
    buf_done(&body);
}

/* Open routes: probes have no token, and an artifact's secret is in its path. */
static const struct route rows[] = {
    {STR_INIT("GET"), STR_INIT("/livez"), livez, ROUTE_OPEN, ROUTE_HEAD},
    {STR_INIT("GET"), STR_INIT("/readyz"), readyz, ROUTE_OPEN, ROUTE_HEAD},
    {STR_INIT("GET"), STR_INIT("/healthz"), readyz, ROUTE_OPEN, ROUTE_HEAD},
    {STR_INIT("GET"), STR_INIT("/v1/runtime/health"), runtime_health, ROUTE_OPEN, ROUTE_HEAD},
    {STR_INIT("GET"), STR_INIT(FETCH_PATH "{token}"), fetch_artifact, ROUTE_OPEN, ROUTE_HEAD},
};

static const struct field always[] = {
    {STR_INIT("cache-control"), STR_INIT("no-store")},
    {STR_INIT("x-content-type-options"), STR_INIT("nosniff")},
};

void nimi_health_table(struct nimi_instance *instance, struct route_table *ret) {
    *ret = (struct route_table){.rows = rows,
                                .row_count = ARRAY_LEN(rows),
                                .always = always,
                                .always_count = ARRAY_LEN(always),
                                .body_max_bytes = 4 * KIB,
                                .ctx = instance};
}
