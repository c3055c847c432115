#include "contract/nimi/nimi.h"

#include "base/mem.h"
#include "contract/nimi/admit.h"
#include "contract/nimi/call.h"
#include "contract/nimi/health/health.h"
#include "contract/nimi/job/job_work.h"
#include "contract/nimi/job/jobs.h"
#include "contract/nimi/once.h"
#include "contract/nimi/scenario/scenario.h"
#include "contract/nimi/upload/receive.h"
#include "contract/nimi/voices.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the runtime -------------------------------------------------------------------------- */

struct nimi_runtime {
    pthread_mutex_t lock; /* guards the members up to `probed_count` */
    enum lifecycle state;
    char why[NIMI_WHY_BYTES];
    struct nimi_probed probed[NIMI_PROBED_MAX];
    size_t probed_count;
    struct scheduler *scheduler, *slots;
    struct replies *replies;
    struct nimi_files files;
};

static void set_why(struct nimi_runtime *runtime, const char *why) {
    snprintf(runtime->why, sizeof(runtime->why), "%s", why);
}

struct nimi_runtime *nimi_runtime_new(const struct scheduler_limits *limits) {
    static const struct scheduler_limits uploads = {.global = RECEIVE_SLOTS,
                                                    .per_app = RECEIVE_SLOTS_PER_APP,
                                                    .queue_max = RECEIVE_QUEUE_MAX,
                                                    .queue_per_app = RECEIVE_QUEUE_PER_APP};
    struct nimi_runtime *runtime = MEM_NEW(struct nimi_runtime);
    runtime->state = LIFE_STOPPED;
    set_why(runtime, "not started");
    runtime->scheduler = scheduler_new(limits);
    runtime->slots = scheduler_new(&uploads);
    runtime->replies = replies_new(REPLIES_MAX, REPLIES_MAX_BYTES);
    pthread_mutex_init(&runtime->lock, NULL);
    return runtime;
}

void nimi_runtime_free(struct nimi_runtime *runtime) {
    if (!runtime) return;
    scheduler_free(runtime->scheduler);
    scheduler_free(runtime->slots);
    replies_free(runtime->replies);
    pthread_mutex_destroy(&runtime->lock);
    free(runtime);
}

void nimi_runtime_move(struct nimi_runtime *runtime, enum lifecycle next, const char *why) {
    pthread_mutex_lock(&runtime->lock);
    lifecycle_move(&runtime->state, next);
    set_why(runtime, why);
    pthread_mutex_unlock(&runtime->lock);
}

enum lifecycle nimi_runtime_state(struct nimi_runtime *runtime) {
    pthread_mutex_lock(&runtime->lock);
    enum lifecycle state = runtime->state;
    pthread_mutex_unlock(&runtime->lock);
    return state;
}

enum lifecycle nimi_runtime_why(struct nimi_runtime *runtime, char ret_why[NIMI_WHY_BYTES]) {
    pthread_mutex_lock(&runtime->lock);
    enum lifecycle state = runtime->state;
    memcpy(ret_why, runtime->why, NIMI_WHY_BYTES);
    pthread_mutex_unlock(&runtime->lock);
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

bool nimi_runtime_probed(struct nimi_runtime *runtime, const struct nimi_probed *probed,
                         size_t count, bool all_down) {
    assert(count <= NIMI_PROBED_MAX && (count || !all_down));
    pthread_mutex_lock(&runtime->lock);
    enum lifecycle before = runtime->state;
    runtime->probed_count = count;
    if (count) memcpy(runtime->probed, probed, count * sizeof(*probed));
    if (all_down && before == LIFE_READY) {
        lifecycle_move(&runtime->state, LIFE_DEGRADED);
        snprintf(runtime->why, sizeof(runtime->why), "ai-provider:%s unavailable",
                 probed[0].name);
    } else if (!all_down && before == LIFE_DEGRADED) {
        lifecycle_move(&runtime->state, LIFE_READY);
        set_why(runtime, "ready");
    }
    bool moved = runtime->state != before;
    pthread_mutex_unlock(&runtime->lock);
    return moved;
}

size_t nimi_runtime_providers(struct nimi_runtime *runtime,
                              struct nimi_probed ret[NIMI_PROBED_MAX]) {
    pthread_mutex_lock(&runtime->lock);
    size_t count = runtime->probed_count;
    memcpy(ret, runtime->probed, count * sizeof(*ret));
    pthread_mutex_unlock(&runtime->lock);
    return count;
}

void nimi_runtime_set_files(struct nimi_runtime *runtime, const struct nimi_files *files) {
    runtime->files = *files;
}

const struct nimi_files *nimi_runtime_files(const struct nimi_runtime *runtime) {
    return &runtime->files;
}

struct scheduler *nimi_runtime_scheduler(struct nimi_runtime *runtime) {
    return runtime->scheduler;
}

struct scheduler *nimi_runtime_slots(struct nimi_runtime *runtime) {
    return runtime->slots;
}

struct replies *nimi_runtime_replies(struct nimi_runtime *runtime) {
    return runtime->replies;
}

/* --- small answers ------------------------------------------------------------------------ */

static const struct {
    int type;
    struct str description;
} profiles[] = {
    {NIMI_SCENARIO_TYPE_TEXT_GENERATE, STR_INIT("a model answers a conversation with text")},
    {NIMI_SCENARIO_TYPE_TEXT_EMBED, STR_INIT("a model turns texts into vectors, one each")},
    {NIMI_SCENARIO_TYPE_IMAGE_GENERATE, STR_INIT("a model draws what a text says")},
    {NIMI_SCENARIO_TYPE_SPEECH_SYNTHESIZE, STR_INIT("a voice says a text")},
    {NIMI_SCENARIO_TYPE_SPEECH_TRANSCRIBE, STR_INIT("a model writes down what was said")},
};

#define MODES_MAX 3

/* The execution modes of a type, in the order of the enum. */
static size_t list_modes(int type, int32_t *ret) {
    size_t count = 0;
    for (int mode = NIMI_EXECUTION_MODE_SYNC; mode <= NIMI_EXECUTION_MODE_ASYNC_JOB; mode++) {
        if (admit_modes(type) & 1u << mode) ret[count++] = mode;
    }
    return count;
}

/* List the types that some connector serves, for any model or for the one named. */
static void list_profiles(struct nimi_call *call, const void *request, struct arena *arena) {
    const struct nimi_list_scenario_profiles_request *from = request;
    int32_t modes[ARRAY_LEN(profiles)][MODES_MAX];
    struct nimi_scenario_profile served[ARRAY_LEN(profiles)];
    size_t count = 0;
    (void)arena;
    for (size_t i = 0; i < ARRAY_LEN(profiles); i++) {
        int type = profiles[i].type;
        if (!admit_serves(call->instance->settings, type, str_trim(from->model_id))) continue;
        served[count] = (struct nimi_scenario_profile){
            .scenario_type = type,
            .supported_execution_modes = modes[count],
            .supported_execution_modes_count = list_modes(type, modes[count]),
            .description = profiles[i].description};
        count++;
    }
    nimi_reply(call, &nimi_list_scenario_profiles_response_table,
               &(struct nimi_list_scenario_profiles_response){.profiles = served,
                                                              .profiles_count = count});
}

static const struct {
    int state;
    struct str detail;
} judgements[] = {
    {NIMI_SCHEDULING_STATE_RUNNABLE, STR_INIT("a slot is free")},
    {NIMI_SCHEDULING_STATE_QUEUE_REQUIRED, STR_INIT("all slots are taken: a call would wait")},
};

/* All targets share the same slots. */
static void peek_scheduling(struct nimi_call *call, const void *request, struct arena *arena) {
    const struct nimi_peek_scheduling_request *from = request;
    struct fault fault;
    if (!admit_app(&call->envelope, from->app_id, &fault)) {
        nimi_refuse(call, &fault);
        return;
    }
    struct occupancy now =
        scheduler_occupancy(nimi_runtime_scheduler(call->instance->runtime), from->app_id);
    const struct nimi_scheduling_occupancy_snapshot occupancy = {
        .global_used = (int32_t)now.global_used,
        .global_cap = (int32_t)now.global_cap,
        .app_used = (int32_t)now.app_used,
        .app_cap = (int32_t)now.app_cap};
    bool waits = now.global_used >= now.global_cap || now.app_used >= now.app_cap;
    const struct nimi_scheduling_judgement judgement = {.state = judgements[waits].state,
                                                        .detail = judgements[waits].detail,
                                                        .occupancy = &occupancy};
    struct nimi_scheduling_target_judgement *targets =
        arena_alloc(arena, (from->targets_count + 1) * sizeof(*targets));
    size_t target_count = targets ? from->targets_count : 0;
    for (size_t i = 0; i < target_count; i++)
        targets[i] = (struct nimi_scheduling_target_judgement){&from->targets[i], &judgement};
    nimi_reply(
        call, &nimi_peek_scheduling_response_table,
        &(struct nimi_peek_scheduling_response){.occupancy = &occupancy,
                                                .aggregate_judgement = &judgement,
                                                .target_judgements = targets,
                                                .target_judgements_count = target_count});
}

/* --- the table ---------------------------------------------------------------------------- */

#define AI "nimi.runtime.v1.RuntimeAiService"
#define AUDIT "nimi.runtime.v1.RuntimeAuditService"
#define ROW(service, method) STR_INIT("/" service "/" method)

/* One row per method: its path, how its stream ends, facts for the interceptors, and the
 * function that answers. */
static const struct nimi_row ai_rows[] = {
    /* clang-format off */
    {ROW(AI, "StreamScenario"),              RPC_SERVER_STREAM, CLOSE_DONE,     0,          &nimi_stream_scenario_request_table,                scenario_stream},
    {ROW(AI, "ExecuteScenario"),             RPC_UNARY,         CLOSE_SINGLE,   NIMI_ONCE,  &nimi_execute_scenario_request_table,               scenario_execute},
    {ROW(AI, "ListScenarioProfiles"),        RPC_UNARY,         CLOSE_SINGLE,   NIMI_READS, &nimi_list_scenario_profiles_request_table,         list_profiles},
    {ROW(AI, "PeekScheduling"),              RPC_UNARY,         CLOSE_SINGLE,   0,          &nimi_peek_scheduling_request_table,                peek_scheduling},
    {ROW(AI, "ListPresetVoices"),            RPC_UNARY,         CLOSE_SINGLE,   NIMI_READS, &nimi_list_preset_voices_request_table,             voices_list},
    {ROW(AI, "SubmitScenarioJob"),           RPC_UNARY,         CLOSE_SINGLE,   0,          &nimi_submit_scenario_job_request_table,            jobs_submit},
    {ROW(AI, "GetScenarioJob"),              RPC_UNARY,         CLOSE_SINGLE,   NIMI_READS, &nimi_get_scenario_job_request_table,               jobs_get},
    {ROW(AI, "CancelScenarioJob"),           RPC_UNARY,         CLOSE_SINGLE,   NIMI_ONCE,  &nimi_cancel_scenario_job_request_table,            jobs_cancel},
    {ROW(AI, "SubscribeScenarioJobEvents"),  RPC_SERVER_STREAM, CLOSE_TERMINAL, NIMI_READS, &nimi_subscribe_scenario_job_events_request_table,  jobs_subscribe},
    {ROW(AI, "GetScenarioArtifacts"),        RPC_UNARY,         CLOSE_SINGLE,   NIMI_READS, &nimi_get_scenario_artifacts_request_table,         jobs_artifacts},
    {ROW(AI, "UploadArtifact"),              RPC_CLIENT_STREAM, CLOSE_SINGLE,   NIMI_BARE,  &nimi_upload_artifact_request_table,                receive_begin},
    /* clang-format on */
};

static const struct nimi_row audit_rows[] = {
    {ROW(AUDIT, "GetRuntimeHealth"), RPC_UNARY, CLOSE_SINGLE, NIMI_READS,
     &nimi_get_runtime_health_request_table, health_get},
    {ROW(AUDIT, "ListAIProviderHealth"), RPC_UNARY, CLOSE_SINGLE, NIMI_READS,
     &nimi_list_ai_provider_health_request_table, health_list_providers},
};

static const struct {
    struct str name;
    const struct nimi_row *rows;
    size_t row_count;
} services[NIMI_SERVICES] = {
    [NIMI_AI] = {STR_INIT(AI), ai_rows, ARRAY_LEN(ai_rows)},
    [NIMI_AUDIT] = {STR_INIT(AUDIT), audit_rows, ARRAY_LEN(audit_rows)},
};

#define ROWS_MAX (ARRAY_LEN(ai_rows) + ARRAY_LEN(audit_rows))

/* The rows in the form of rpc/, in the same order. */
struct nimi_methods {
    struct rpc_method methods[ROWS_MAX];
    const struct nimi_row *rows[ROWS_MAX];
};

const struct nimi_row *nimi_row_of(const struct nimi_instance *instance,
                                   const struct rpc_method *method) {
    return instance->methods->rows[method - instance->methods->methods];
}

/* A message of a client stream is a chunk and has a limit of its own. */
static struct rpc_method method_of(const struct nimi_row *row, size_t message_max_bytes) {
    bool chunks = row->kind == RPC_CLIENT_STREAM;
    return (struct rpc_method){.path = row->path,
                               .kind = row->kind,
                               .handler = &nimi_handler,
                               .ends = row->ends,
                               .established = RPC_BY_HANDLER,
                               .auth = RPC_OPEN,
                               .deadline_ms = chunks ? RECEIVE_TOTAL_MS : 0,
                               .request_max_bytes =
                                   chunks ? RECEIVE_CHUNK_MAX_BYTES + RECEIVE_WRAPPING_BYTES
                                          : message_max_bytes};
}

/* Index of the first row of a service, among the rows of all services. */
static size_t first_row(size_t service) {
    size_t first = 0;
    for (size_t i = 0; i < service; i++) first += services[i].row_count;
    return first;
}

void nimi_service(struct nimi_instance *instance, size_t service, struct rpc_service *ret) {
    size_t first = first_row(service);
    *ret = (struct rpc_service){.name = services[service].name,
                                .methods = &instance->methods->methods[first],
                                .method_count = services[service].row_count,
                                .ctx = instance};
    for (size_t r = 0; r < services[service].row_count; r++) {
        const struct nimi_row *row = &services[service].rows[r];
        instance->methods->rows[first + r] = row;
        instance->methods->methods[first + r] =
            method_of(row, instance->settings->message_max_bytes);
    }
}

void nimi_services(struct nimi_instance *instance, struct rpc_service *ret) {
    for (size_t i = 0; i < NIMI_SERVICES; i++) nimi_service(instance, i, &ret[i]);
}

void nimi_site(const struct nimi_instance *instance, struct rpc_site *site) {
    rpc_site_always(site, STR("x-nimi-runtime-version"), instance->settings->version);
}

void nimi_instance_init(struct nimi_instance *instance, const struct nimi_settings *settings,
                        struct run_host *host, struct nimi_runtime *runtime) {
    *instance = (struct nimi_instance){.settings = settings,
                                       .host = host,
                                       .runtime = runtime,
                                       .methods = MEM_NEW(struct nimi_methods)};
    list_init(&instance->calls);
    list_init(&instance->shared);
    list_init(&instance->jobs);
    pruner_init(&instance->pruner, host->loop);
}

void nimi_instance_serving(struct nimi_instance *instance) {
    pruner_start(&instance->pruner, instance->host->engine->store);
}

void nimi_instance_stopping(struct nimi_instance *instance) {
    once_stop_all(instance);
    pruner_stop(&instance->pruner);
}

void nimi_instance_leave(struct nimi_instance *instance) {
    job_work_leave_all(instance);
}

void nimi_instance_done(struct nimi_instance *instance) {
    if (!instance->methods) return;
    assert(list_empty(&instance->calls) && list_empty(&instance->jobs) &&
           list_empty(&instance->shared));
    pruner_stop(&instance->pruner);
    free(instance->methods);
}
