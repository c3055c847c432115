#include "contract/nimi/contract.h"

#include "base/log.h"
#include "base/mem.h"
#include "config/config.h"
#include "contract/nimi/audit/note.h"
#include "contract/nimi/fetch.h"
#include "contract/nimi/health/probe.h"
#include "contract/nimi/job/job_work.h"
#include "contract/nimi/job/workflow_work.h"
#include "contract/nimi/options.h"
#include "contract/nimi/settings.h"
#include "proto/nimi.pb.h"
#include "proto/nimi_connector.pb.h"

#include <stdio.h>
#include <stdlib.h>

/* --- settings ----------------------------------------------------------------------------- */

static bool nimi_wanted(const struct config *config) {
    const struct nimi_options *options = nimi_options(config);
    return options->grpc.len || options->http.len;
}

static bool nimi_asks_media(const struct config *config) {
    (void)config;
    return true;
}

static bool nimi_read(const struct contract_source *from, void **ret, struct err *e) {
    struct nimi_settings *settings = MEM_NEW(struct nimi_settings);
    nimi_settings_init(settings, from->config, from->team);
    if (nimi_settings_trust(settings, from->config, e) &&
        (!from->pool || !from->config->issuer_count || http_pool_need(from->pool, e))) {
        *ret = settings;
        return true;
    }
    nimi_settings_done(settings);
    free(settings);
    return false;
}

static void nimi_drop(void *settings) {
    nimi_settings_done(settings);
    free(settings);
}

/* --- the process -------------------------------------------------------------------------- */

struct nimi_process {
    const struct contract_process *means;
    struct nimi_runtime *runtime;
    struct prober *prober; /* NULL unless serving */
};

static unsigned slots_of(uint64_t setting) {
    return setting ? (unsigned)setting : SCHEDULER_NO_LIMIT;
}

/* Whether URLs can use this configured host. With TLS the host must be one that the certificate
 * names, so the host that the caller used is taken instead. Wildcard addresses cannot be
 * connected to. */
static bool has_host(struct str host, bool tls) {
    return !tls && host.len && !str_equal(host, STR("0.0.0.0")) &&
           !str_equal(host, STR("[::]"));
}

/* Publish where artifacts are fetched.
 * port  of listen.nimi_http; 0: no such listener */
static void share_files(struct nimi_runtime *runtime, const struct config *config, int port) {
    struct nimi_files files = {.port = port, .tls = config->tls.cert.len > 0};
    struct str host = fetch_host(nimi_options(config)->http);
    if (port <= 0) files.port = 0;
    if (has_host(host, files.tls))
        snprintf(files.host, sizeof(files.host), STR_FMT, STR_ARG(host));
    runtime->files = files;
}

static unsigned weight_of(struct str app, const void *ctx) {
    return nimi_options_weight(nimi_options(ctx), app);
}

static void *nimi_open(const struct contract_process *means) {
    const struct config *config = means->config;
    const struct nimi_options *options = nimi_options(config);
    const struct scheduler_limits slots = {
        .global = slots_of(options->slots),
        .per_app = slots_of(options->slots_per_app),
        .background = (unsigned)options->slots_background,
        .queue_max = SCHEDULER_QUEUE_MAX,
        .queue_per_app = (size_t)options->queue_per_app,
        .weight = weight_of,
        .weight_ctx = config,
        .pool = "models",
    };
    struct nimi_process *process = MEM_NEW(struct nimi_process);
    process->means = means;
    process->runtime = nimi_runtime_new(&slots);
    share_files(process->runtime, config, server_port(means->server, STR("nimi_http")));
    nimi_runtime_move(process->runtime, LIFE_STARTING, "starting");
    return process;
}

static void on_probed(const struct nimi_probed *probed, void *ctx) {
    const struct nimi_process *process = ctx;
    audit_note_provider(process->means->audit, probed);
}

/* The runtime became DEGRADED, or READY again. */
static void on_health_changed(void *ctx) {
    struct nimi_process *process = ctx;
    char why[NIMI_WHY_BYTES];
    bool ready = nimi_runtime_why(process->runtime, why) == LIFE_READY;
    audit_writer_tell(process->means->audit, STR("runtime.lifecycle"),
                      ready ? STR("ready") : STR("degraded"),
                      ready ? ERR_NONE : ERR_UNAVAILABLE, str_from(why));
    process->means->health_changed(process->means->ctx);
}

static void nimi_ready(void *ctx, const void *settings) {
    struct nimi_process *process = ctx;
    const struct contract_process *means = process->means;
    nimi_runtime_move(process->runtime, LIFE_READY, "ready");
    process->prober = prober_start(&(struct prober_options){.loop = means->loop,
                                                            .pool = means->pool,
                                                            .runtime = process->runtime,
                                                            .settings = settings,
                                                            .verdict = on_probed,
                                                            .changed = on_health_changed,
                                                            .ctx = process});
}

static void nimi_process_use(void *ctx, const void *settings) {
    struct nimi_process *process = ctx;
    if (process->prober) prober_use(process->prober, settings);
}

/* A runtime that never became ready goes to STOPPED at once. */
static void nimi_process_stopping(void *ctx) {
    struct nimi_process *process = ctx;
    prober_free(process->prober);
    process->prober = NULL;
    bool started = nimi_runtime_state(process->runtime) != LIFE_STARTING;
    nimi_runtime_move(process->runtime, started ? LIFE_STOPPING : LIFE_STOPPED, "stopping");
}

/* A stop that had to cut calls still counts as orderly; the log says that it was forced. */
static void nimi_stopped(void *ctx, bool forced) {
    struct nimi_process *process = ctx;
    if (nimi_runtime_state(process->runtime) != LIFE_STOPPING) return;
    nimi_runtime_move(process->runtime, LIFE_STOPPED, "stopped");
    log_info("runtime.lifecycle shutdown.completed forced=%s", forced ? "true" : "false");
}

static void nimi_close(void *ctx) {
    struct nimi_process *process = ctx;
    nimi_runtime_free(process->runtime);
    free(process);
}

static bool nimi_healthy(void *ctx) {
    const struct nimi_process *process = ctx;
    return nimi_runtime_state(process->runtime) == LIFE_READY;
}

/* --- an instance -------------------------------------------------------------------------- */

static void *nimi_init(const struct contract_loop *loop, const void *settings, void *state) {
    const struct nimi_process *process = state;
    struct nimi_instance *instance = MEM_NEW(struct nimi_instance);
    nimi_instance_init(instance, settings, loop->host, process->runtime);
    instance->keys.pool = loop->pool;
    instance->audit = loop->audit;
    nimi_runtime_share(process->runtime, loop->store);
    return instance;
}

static void nimi_use(void *ctx, const void *settings) {
    struct nimi_instance *instance = ctx;
    instance->settings = settings;
}

/* Jobs and workflows are kept alike. */
static bool nimi_take(uint64_t run, const struct store_section *sections, size_t count,
                      bool whole, void *instance) {
    if (workflow_work_take(run, sections, count, whole, instance)) return true;
    if (whole) job_work_take(run, sections, count, instance);
    return whole;
}

static void nimi_serving(void *instance) {
    nimi_instance_serving(instance);
}

static void nimi_stopping(void *instance) {
    nimi_instance_stopping(instance);
}

static void nimi_finish(void *instance) {
    nimi_instance_leave(instance);
}

static void nimi_done(void *instance) {
    nimi_instance_done(instance);
    free(instance);
}

/* --- listeners, services and routes ------------------------------------------------------- */

static struct str grpc_address(const struct config *config) {
    return nimi_options(config)->grpc;
}

static struct str http_address(const struct config *config) {
    return nimi_options(config)->http;
}

static bool grpc_reflects(const struct config *config) {
    return config->reflection;
}

static void grpc_prepare(const void *instance, struct rpc_site *site) {
    nimi_site(instance, site);
}

#define SERVICE(function, service)                                                             \
    static void function(void *instance, struct rpc_service *ret) {                            \
        nimi_service(instance, service, ret);                                                  \
    }

SERVICE(nimi_account, NIMI_ACCOUNT)
SERVICE(nimi_agents, NIMI_AGENT)
SERVICE(nimi_ai, NIMI_AI)
SERVICE(nimi_ai_realtime, NIMI_AI_REALTIME)
SERVICE(nimi_app, NIMI_APP)
SERVICE(nimi_audit, NIMI_AUDIT)
SERVICE(nimi_auth, NIMI_AUTH)
SERVICE(nimi_cognition, NIMI_COGNITION)
SERVICE(nimi_connectors, NIMI_CONNECTOR)
SERVICE(nimi_grant, NIMI_GRANT)
SERVICE(nimi_local, NIMI_LOCAL)
SERVICE(nimi_model, NIMI_MODEL)
SERVICE(nimi_workflow, NIMI_WORKFLOW)

static void nimi_routes(void *instance, struct route_table *ret) {
    nimi_health_table(instance, ret);
}

/* handlers_admit: the lifecycle interceptor decides; calls that only read are admitted during a
 * stop. */
static const struct contract_listener listeners[] = {
    {.name = "nimi_grpc",
     .wire = CONTRACT_GRPC,
     .address = grpc_address,
     .reflects = grpc_reflects,
     .prepare = grpc_prepare,
     .handlers_admit = true},
    {.name = "nimi_http", .wire = CONTRACT_HTTP, .address = http_address},
};

static const struct contract_service services[] = {
    {"nimi_grpc", &nimi_descriptor, nimi_ai},
    /* These are in the first row's descriptor set. */
    {"nimi_grpc", NULL, nimi_audit},
    {"nimi_grpc", NULL, nimi_ai_realtime},
    {"nimi_grpc", NULL, nimi_app},
    {"nimi_grpc", NULL, nimi_auth},
    {"nimi_grpc", NULL, nimi_local},
    {"nimi_grpc", NULL, nimi_model},
    {"nimi_grpc", NULL, nimi_workflow},
    {"nimi_grpc", NULL, nimi_account},
    {"nimi_grpc", NULL, nimi_grant},
    {"nimi_grpc", NULL, nimi_cognition},
    {"nimi_grpc", NULL, nimi_agents},
    {"nimi_grpc", &nimi_connector_descriptor, nimi_connectors},
};

static const struct contract_routes routes[] = {{"nimi_http", nimi_routes}};

const struct contract nimi_contract = {
    .name = STR_INIT("nimi"),
    .rows = &nimi_rows,
    .listeners = listeners,
    .listener_count = ARRAY_LEN(listeners),
    .services = services,
    .service_count = ARRAY_LEN(services),
    .routes = routes,
    .routes_count = ARRAY_LEN(routes),
    .wanted = nimi_wanted,
    .asks_media = nimi_asks_media,
    .settings = {.read = nimi_read, .drop = nimi_drop},
    .process = {.open = nimi_open,
                .ready = nimi_ready,
                .use = nimi_process_use,
                .stopping = nimi_process_stopping,
                .stopped = nimi_stopped,
                .close = nimi_close,
                .healthy = nimi_healthy},
    .instance = {.init = nimi_init,
                 .use = nimi_use,
                 .serving = nimi_serving,
                 .stopping = nimi_stopping,
                 .finish = nimi_finish,
                 .done = nimi_done,
                 .take_job = nimi_take},
};
