#include "daemon/worker.h"

#include "base/mem.h"
#include "turn/late_ends.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

void worker_init(struct worker *worker, struct daemon *daemon) {
    *worker = (struct worker){.loop = loop_new(), .daemon = daemon};
    loop_set_owner(worker->loop, worker);
}

void worker_audit(struct worker *worker, struct store *store) {
    worker->audit = audit_writer_new(worker->loop, store);
}

/* --- instances and sites ------------------------------------------------------------------ */

static const void *settings_of(const struct worker *worker, size_t contract) {
    return worker->snapshot->settings[contract];
}

static void make_instances(struct worker *worker) {
    worker->instances = mem_zero(worker->contracts.count, sizeof(void *));
    for (size_t i = 0; i < worker->contracts.count; i++) {
        const struct presence *presence = &worker->presences[i];
        if (!presence->wanted) continue;
        worker->instances[i] = worker->contracts.rows[i]->instance.init(
            &worker->resources, settings_of(worker, i), presence->state);
    }
}

static struct site *make_site(struct worker *worker, const struct listening *listening) {
    if (!listening->address.len) return NULL;
    const struct config *config = worker->snapshot->config;
    return site_new(
        &(struct site_options){.loop = worker->loop,
                               .contracts = &worker->contracts,
                               .instances = worker->instances,
                               .owner = listening->owner->index,
                               .listener = listening->listener,
                               .config = config,
                               .audit = worker->audit,
                               .rates = worker->rates,
                               .stall_ms = config->limits.server.write_stall_ms,
                               .settings = settings_of(worker, listening->owner->index)});
}

/* --- callers, by the tokens of every contract --------------------------------------------- */

static bool secured(void *ctx) {
    const struct config_snapshot *snapshot = ((struct worker *)ctx)->snapshot;
    for (size_t i = 0; i < snapshot->contracts.count; i++) {
        const struct contract *contract = snapshot->contracts.rows[i];
        if (contract->settings.secured && contract->settings.secured(snapshot->settings[i]))
            return true;
    }
    return false;
}

static bool identify(struct str bearer, struct contract_identity *ret, void *ctx) {
    const struct config_snapshot *snapshot = ((struct worker *)ctx)->snapshot;
    for (size_t i = 0; i < snapshot->contracts.count; i++) {
        const struct contract *contract = snapshot->contracts.rows[i];
        if (contract->settings.identify &&
            contract->settings.identify(snapshot->settings[i], bearer, ret))
            return true;
    }
    return false;
}

void worker_prepare(struct worker *worker, const struct worker_options *options) {
    worker->keeper = keeper_new(worker->loop, options->store);
    worker->rates = options->rates;
    worker->snapshot = config_snapshot_ref(options->snapshot);
    worker->contracts = options->snapshot->contracts;
    worker->presences = options->presences;
    worker->listenings = options->listenings;
    run_host_init(&worker->host, &options->snapshot->engine, worker->loop, worker->keeper);
    worker->host.rates = worker->rates;
    worker->resources = (struct contract_loop){.loop = worker->loop,
                                               .host = &worker->host,
                                               .pool = options->pool,
                                               .store = options->store,
                                               .audit = worker->audit,
                                               .callers = {secured, identify, worker}};
    make_instances(worker);
    worker->site_count = options->listening_count;
    worker->sites = mem_zero(worker->site_count, sizeof(struct site *));
    for (size_t i = 0; i < worker->site_count; i++)
        worker->sites[i] = make_site(worker, &worker->listenings[i]);
}

/* A contract may leave any of these callbacks NULL. */
#define TELL_INSTANCES(worker_, moment_)                                                       \
    do {                                                                                       \
        for (size_t i_ = 0; i_ < (worker_)->contracts.count; i_++) {                           \
            const struct contract *row_ = (worker_)->contracts.rows[i_];                       \
            if ((worker_)->instances[i_] && row_->instance.moment_)                            \
                row_->instance.moment_((worker_)->instances[i_]);                              \
        }                                                                                      \
    } while (0)

typedef void site_fn(struct site *site);

static void each_site(struct worker *worker, site_fn *fn) {
    for (size_t i = 0; i < worker->site_count; i++)
        if (worker->sites[i]) fn(worker->sites[i]);
}

/* --- its thread --------------------------------------------------------------------------- */

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

void worker_leave(struct worker *worker, struct http_pool *pool,
                  struct process_pool *processes) {
    TELL_INSTANCES(worker, leave);
    process_pool_leave(processes, worker->loop);
    http_pool_leave(pool, worker->loop);
}

void worker_done(struct worker *worker) {
    if (worker->has_thread) pthread_join(worker->thread, NULL);
    each_site(worker, site_free);
    TELL_INSTANCES(worker, done);
    free(worker->sites);
    free(worker->instances);
    run_host_done(&worker->host);
    config_snapshot_unref(worker->snapshot);
    keeper_free(worker->keeper);
    audit_writer_free(worker->audit);
    loop_free(worker->loop);
}

/* --- orders from the daemon --------------------------------------------------------------- */

void worker_use(struct worker *worker, struct config_snapshot *snapshot) {
    struct config_snapshot *before = worker->snapshot;
    worker->snapshot = config_snapshot_ref(snapshot);
    run_host_use(&worker->host, &snapshot->engine);
    for (size_t i = 0; i < worker->contracts.count; i++) {
        const struct contract *contract = worker->contracts.rows[i];
        if (worker->instances[i] && contract->instance.use)
            contract->instance.use(worker->instances[i], settings_of(worker, i));
    }
    for (size_t i = 0; i < worker->site_count; i++) {
        if (worker->sites[i])
            site_use(worker->sites[i], settings_of(worker, worker->listenings[i].owner->index));
    }
    config_snapshot_unref(before);
}

void worker_serving(struct worker *worker) {
    TELL_INSTANCES(worker, serving);
    each_site(worker, site_serving);
    worker_health(worker);
}

void worker_health(struct worker *worker) {
    for (size_t i = 0; i < worker->site_count; i++) {
        if (worker->sites[i])
            site_health(worker->sites[i], presence_healthy(worker->listenings[i].owner));
    }
}

void worker_stopping(struct worker *worker) {
    TELL_INSTANCES(worker, stopping);
    each_site(worker, site_stopping);
}

void worker_cut(struct worker *worker) {
    TELL_INSTANCES(worker, cut);
    each_site(worker, site_cut);
    run_host_cancel(&worker->host, STR("the server stopped"));
}

void worker_finish(struct worker *worker) {
    run_host_cancel(&worker->host, STR("the server stopped"));
    TELL_INSTANCES(worker, finish);
    late_ends_stop(&worker->host);
}

struct recover_jobs worker_jobs(struct worker *worker) {
    for (size_t i = 0; i < worker->contracts.count; i++) {
        const struct contract *contract = worker->contracts.rows[i];
        if (worker->instances[i] && contract->instance.take_job)
            return (struct recover_jobs){contract->instance.take_job, worker->instances[i]};
    }
    return (struct recover_jobs){.take = NULL};
}
