#include "daemon/worker.h"

#include "base/log.h"
#include "daemon/caller.h"
#include "proto/health.pb.h"
#include "proto/memory.pb.h"
#include "proto/runtime.pb.h"

#include <signal.h>
#include <string.h>

void worker_init(struct worker *worker, struct daemon *daemon) {
    *worker = (struct worker){.loop = loop_new(), .daemon = daemon};
    loop_set_owner(worker->loop, worker);
}

/* Returns how many services that adds. */
static size_t reflect(struct worker *worker) {
    worker->reflection = reflection_new();
    reflection_add(worker->reflection, crawbl_runtime_descriptor);
    reflection_add(worker->reflection, crawbl_memory_descriptor);
    reflection_add(worker->reflection, grpc_health_descriptor);
    reflection_services(worker->reflection, &worker->services[WORKER_SERVICES]);
    reflection_list(worker->reflection, worker->services, ARRAY_LEN(worker->services));
    return REFLECTION_SERVICES;
}

static void fill_contract(struct worker *worker) {
    converse_service(&worker->converse, &worker->services[SERVICE_CONVERSE]);
    memory_service(&worker->memory, &worker->services[SERVICE_MEMORY]);
}

static void furnish_rpc(struct worker *worker, const struct worker_options *options) {
    size_t service_count = WORKER_SERVICES;
    worker->house = house_new(worker->loop, options->pool);
    house_use(worker->house, &options->edition->engine, &options->edition->house);
    worker->converse =
        (struct converse_desk){&options->edition->converse, &worker->host, worker->house};
    worker->memory = (struct memory_desk){&options->edition->converse, options->store};
    worker->health = health_new();
    health_set(worker->health, STR(""), HEALTH_NOT_SERVING);
    fill_contract(worker);
    worker->services[SERVICE_HEALTH] = health_service(worker->health);
    for (size_t i = 0; i < SERVICE_HEALTH; i++)
        health_set(worker->health, worker->services[i].name, HEALTH_NOT_SERVING);
    if (options->reflection) service_count += reflect(worker);
    worker->grpc = rpc_site_new(worker->loop, worker->services, service_count);
    rpc_site_stall_limit(worker->grpc, options->edition->converse.stall_ms);
    rpc_site_admit(worker->grpc, RPC_PROBES, STR("the server is starting; try again"));
}

static void furnish_api(struct worker *worker, const struct worker_options *options) {
    const struct edition *edition = options->edition;
    worker->api = (struct api_desk){
        .loop = worker->loop,
        .sessions = edition->engine.sessions,
        .directory = session_table_directory(edition->engine.sessions),
        .store = options->store,
        .stall_ms = edition->runtime.stall_ms,
        .heartbeat_ms = edition->runtime.heartbeat_ms,
        .body_stretch_ms = edition->runtime.body_stretch_ms,
        .body_stretch_bytes = edition->runtime.body_stretch_bytes,
        .decision_words = &edition->engine.limits.decision_words,
        .identify = caller_identify,
        .identify_ctx = &worker->edition,
    };
    api_table(&worker->api, &worker->api_table);
    runtime_sign(&worker->api_table);
}

static void furnish_nimi(struct worker *worker, const struct worker_options *options) {
    if (!options->nimi) return;
    worker->nimi =
        nimi_share_new(&(struct nimi_share_options){.loop = worker->loop,
                                                    .settings = &options->edition->nimi,
                                                    .host = &worker->host,
                                                    .runtime = options->nimi,
                                                    .reflection = options->reflection});
}

void worker_furnish(struct worker *worker, const struct worker_options *options) {
    worker->keeper = keeper_new(worker->loop, options->store);
    worker->edition = edition_ref(options->edition);
    run_host_init(&worker->host, &options->edition->engine, worker->loop, worker->keeper);
    furnish_rpc(worker, options);
    runtime_desk_init(&worker->runtime, &options->edition->runtime, &worker->host);
    runtime_table(&worker->runtime, &worker->table);
    furnish_api(worker, options);
    furnish_nimi(worker, options);
    worker->tables[0] = &worker->api_table;
    worker->tables[1] = &worker->table;
    worker->http = route_site_new(worker->loop, worker->tables, ARRAY_LEN(worker->tables));
    route_site_pages(worker->http, &worker->edition->pages);
}

static void *run_thread(void *ctx) {
    struct worker *worker = ctx;
    loop_run(worker->loop);
    return NULL;
}

/* Signals belong to the daemon's own thread. */
bool worker_start(struct worker *worker, struct err *e) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int failed = pthread_create(&worker->thread, NULL, run_thread, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        return err_set(e, ERR_UNAVAILABLE, "cannot start a thread: %s; try --threads 1",
                       strerror(failed));
    }
    worker->has_thread = true;
    return true;
}

void worker_leave(struct worker *worker, struct http_pool *pool) {
    house_free(worker->house);
    worker->house = NULL;
    http_pool_leave(pool, worker->loop);
}

void worker_done(struct worker *worker) {
    if (worker->has_thread) pthread_join(worker->thread, NULL);
    nimi_share_free(worker->nimi);
    route_site_free(worker->http);
    rpc_site_free(worker->grpc);
    reflection_free(worker->reflection);
    health_free(worker->health);
    run_host_done(&worker->host);
    edition_unref(worker->edition);
    keeper_free(worker->keeper);
    loop_free(worker->loop);
}

void worker_use(struct worker *worker, struct edition *edition) {
    struct edition *before = worker->edition;
    worker->edition = edition_ref(edition);
    run_host_use(&worker->host, &edition->engine);
    worker->converse.settings = worker->memory.settings = &edition->converse;
    worker->runtime.settings = &edition->runtime;
    worker->api.decision_words = &edition->engine.limits.decision_words;
    fill_contract(worker);
    runtime_table(&worker->runtime, &worker->table);
    route_site_pages(worker->http, &edition->pages);
    house_use(worker->house, &edition->engine, &edition->house);
    if (worker->nimi) nimi_share_use(worker->nimi, &edition->nimi);
    edition_unref(before);
}

void worker_serving(struct worker *worker) {
    worker->runtime.loaded = worker->api.loaded = true;
    rpc_site_admit(worker->grpc, RPC_ACTS, STR_EMPTY);
    health_set_all(worker->health, HEALTH_SERVING);
    if (worker->nimi) nimi_share_serving(worker->nimi);
}

void worker_health(struct worker *worker) {
    if (worker->nimi) nimi_share_health(worker->nimi);
}

void worker_stopping(struct worker *worker) {
    worker->runtime.loaded = false;
    worker->api.stopping = true;
    health_set_all(worker->health, HEALTH_NOT_SERVING);
    if (worker->nimi) nimi_share_stopping(worker->nimi);
    rpc_site_stop(worker->grpc);
    route_site_stop(worker->http);
}

void worker_cut(struct worker *worker) {
    if (worker->nimi) nimi_share_cut(worker->nimi);
    rpc_site_cut(worker->grpc);
    runtime_desk_cut(&worker->runtime);
    route_site_cut(worker->http);
    run_host_cancel(&worker->host, STR("the server stopped"));
}
