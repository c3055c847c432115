#include "daemon/worker.h"

#include "base/log.h"
#include "daemon/caller.h"
#include "proto/health.pb.h"
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
    reflection_add(worker->reflection, grpc_health_descriptor);
    reflection_services(worker->reflection, &worker->services[2]);
    reflection_list(worker->reflection, worker->services, ARRAY_LEN(worker->services));
    return REFLECTION_SERVICES;
}

static void furnish_api(struct worker *worker, const struct worker_options *options) {
    const struct edition *edition = options->edition;
    worker->api = (struct api_desk){
        .loop = worker->loop,
        .directory = session_table_directory(edition->engine.sessions),
        .store = options->store,
        .stall_ms = edition->runtime.stall_ms,
        .heartbeat_ms = edition->runtime.heartbeat_ms,
        .identify = caller_identify,
        .identify_ctx = &worker->edition,
    };
    api_table(&worker->api, &worker->api_table);
}

void worker_furnish(struct worker *worker, const struct worker_options *options) {
    worker->keeper = keeper_new(worker->loop, options->store);
    worker->edition = edition_ref(options->edition);
    run_host_init(&worker->host, &options->edition->engine, worker->loop, worker->keeper);
    worker->converse = (struct converse_desk){&options->edition->converse, &worker->host};
    runtime_desk_init(&worker->runtime, &options->edition->runtime, &worker->host);
    worker->health = health_new();
    health_set(worker->health, STR(""), HEALTH_NOT_SERVING);
    converse_service(&worker->converse, &worker->services[0]);
    health_set(worker->health, worker->services[0].name, HEALTH_NOT_SERVING);
    worker->services[1] = health_service(worker->health);
    size_t service_count = 2;
    if (options->reflection) service_count += reflect(worker);
    worker->grpc = rpc_site_new(worker->loop, worker->services, service_count);
    rpc_site_stall_limit(worker->grpc, options->edition->converse.stall_ms);
    runtime_table(&worker->runtime, &worker->table);
    furnish_api(worker, options);
    worker->tables[0] = &worker->api_table;
    worker->tables[1] = &worker->table;
    worker->http = route_site_new(worker->loop, worker->tables, ARRAY_LEN(worker->tables));
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

void worker_done(struct worker *worker) {
    if (worker->has_thread) pthread_join(worker->thread, NULL);
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
    worker->converse.settings = &edition->converse;
    worker->runtime.settings = &edition->runtime;
    converse_service(&worker->converse, &worker->services[0]);
    runtime_table(&worker->runtime, &worker->table);
    edition_unref(before);
}

void worker_serving(struct worker *worker) {
    worker->runtime.loaded = worker->api.loaded = true;
    health_set_all(worker->health, HEALTH_SERVING);
}

void worker_stopping(struct worker *worker) {
    worker->runtime.loaded = worker->api.loaded = false;
    health_set_all(worker->health, HEALTH_NOT_SERVING);
    rpc_site_stop(worker->grpc);
    route_site_stop(worker->http);
}

void worker_cut(struct worker *worker) {
    rpc_site_cut(worker->grpc);
    runtime_desk_cut(&worker->runtime);
    route_site_cut(worker->http);
    run_host_cancel(&worker->host, STR("the server stopped"));
}
