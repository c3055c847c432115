#include "daemon/daemon.h"

#include "base/log.h"
#include "base/machine.h"
#include "base/mem.h"
#include "daemon/audit_snapshot.h"
#include "daemon/config_snapshot.h"
#include "daemon/heap_rest.h"
#include "daemon/notify.h"
#include "daemon/orders.h"
#include "daemon/ports.h"
#include "daemon/reload.h"
#include "daemon/restored_agents.h"
#include "daemon/worker.h"
#include "mcp/pins.h"
#include "server/server.h"
#include "store/sweep.h"
#include "store/task.h"
#include "turn/answer_box.h"

#include <assert.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

/* How long before the shutdown deadline turns are cut, so that they can still report it. */
#define CUT_BEFORE_MS 500

#define SECOND_SIGNAL_MS 50

enum phase { PHASE_STARTING, PHASE_SERVING, PHASE_STOPPING };

struct daemon {
    const struct daemon_options *options;
    const struct config *config;
    enum phase phase;
    struct config_snapshot *snapshot; /* the newest; a reference */
    struct process_pool *processes;
    struct mcp_hub *mcp;
    struct http_pool *pool; /* for the requests of models and tools */
    struct bucket *bucket;  /* for artifacts and files; NULL: none is set */
    struct sweep *sweep;    /* with a bucket, while it serves */
    struct session_table *sessions;
    struct ledger *ledger;
    struct store *store;
    struct presences presences;        /* of the contracts */
    struct contract_process resources; /* of the contracts */
    struct listening *listenings;
    size_t listening_count;
    struct recovery *recovery; /* before it serves, and when another replica has died */
    struct server *server;
    struct worker *workers;
    size_t worker_count;
    size_t pending; /* workers that have not reported */
    struct timer cut;
    struct heap_rest *heap_rest;
    struct answer_box *answers; /* among replicas */
    struct reload reload;
    bool forced;         /* the shutdown deadline came before everything had ended */
    bool remake_again;   /* the tools of an MCP server changed when it could not be handled */
    bool reload_again;   /* SIGHUP came when it could not be handled */
    uint64_t stopped_ms; /* when the first signal came */
    struct mail died, lost; /* of replicas: from the store's thread, one at a time */
    atomic_bool died_posted;
    uv_signal_t signals[3];
    struct err failed; /* why it never served */
};

static struct loop *home(const struct daemon *daemon) {
    return daemon->workers[0].loop;
}

/* --- the audit log ------------------------------------------------------------------------ */

/* A record of the daemon's own life. */
static void daemon_audit(struct daemon *daemon, struct str domain, const char *operation,
                         enum err_code outcome, const char *detail) {
    audit_writer_tell(daemon->workers[0].audit, domain, str_from(operation), outcome,
                      str_from(detail));
}

#define LIFECYCLE STR("runtime.lifecycle")
#define CONFIG STR("runtime.config")

static void audit_config(struct daemon *daemon, const char *operation) {
    audit_snapshot(daemon->workers[0].audit, CONFIG, operation, daemon->snapshot);
}

/* --- requests ----------------------------------------------------------------------------- */

static void on_request(struct exchange *exchange, void *ctx) {
    const struct listening *listening = ctx;
    const struct worker *worker = loop_owner(exchange_loop(exchange));
    site_serve(worker->sites[listening->index], exchange);
}

/* --- orders to every worker --------------------------------------------------------------- */

static void report_workers(struct daemon *daemon, order_fn *fn) {
    order_workers(daemon->workers, daemon->worker_count, fn, daemon->snapshot);
}

static void order_exit(struct worker *worker) {
    worker_leave(worker, worker->daemon->pool, worker->daemon->processes);
    loop_stop(worker->loop);
}

/* --- reading the configuration again ------------------------------------------------------ */

static void reload(struct daemon *daemon);
static void remake(struct daemon *daemon);

static void take_config_snapshot(struct daemon *daemon, struct config_snapshot *snapshot) {
    struct buf fixed;
    buf_init(&fixed, 64 * KIB);
    config_snapshot_needs_restart(daemon->config, snapshot->config, &fixed);
    if (fixed.len)
        log_warning("these settings differ and wait for a restart: " STR_FMT,
                    STR_ARG(buf_str(&fixed)));
    buf_done(&fixed);
    config_snapshot_unref(daemon->snapshot);
    daemon->snapshot = snapshot;
    if (daemon->reload.options.same) {
        report_workers(daemon, NULL);
        audit_config(daemon, "tools");
        log_debug("the tools of the MCP servers are others now");
        return;
    }
    config_log(snapshot->config);
    store_keep_keys(daemon->store, snapshot->config->limits.idempotency_ms);
    report_workers(daemon, NULL);
    presences_use(&daemon->presences, daemon->snapshot);
    store_keep_audit(daemon->store, snapshot->config->audit.keep_ms,
                     snapshot->config->audit.keep_bytes);
    audit_config(daemon, "reload");
    log_info("the configuration was read again; new turns follow it");
}

/* Do what came when it could not be handled. */
static void catch_up(struct daemon *daemon) {
    if (daemon->reload_again) {
        daemon->reload_again = false;
        reload(daemon);
    }
    if (daemon->remake_again) {
        daemon->remake_again = false;
        remake(daemon);
    }
}

static void on_reloaded(struct config_snapshot *snapshot, const struct err *failed, void *ctx) {
    struct daemon *daemon = ctx;
    if (daemon->phase == PHASE_STOPPING) {
        config_snapshot_unref(snapshot);
        return;
    }
    if (failed) {
        log_error("the configuration was not taken: %s; the one before stays", failed->text);
        daemon_audit(daemon, CONFIG, "reload", failed->code, failed->text);
    } else {
        take_config_snapshot(daemon, snapshot);
    }
    if (!daemon->reload.options.same) notify_ready(daemon->snapshot->engine.agent_count);
    catch_up(daemon);
}

static void read_again(struct daemon *daemon, struct config_snapshot *same) {
    struct err e;
    struct reload_options options = {.input = daemon->options->input,
                                     .same = same,
                                     .first = daemon->config,
                                     .demo_key = daemon->options->demo_key,
                                     .contracts = daemon->options->contracts,
                                     .sessions = daemon->sessions,
                                     .ledger = daemon->ledger,
                                     .resources = {.pool = daemon->pool,
                                                   .processes = daemon->processes,
                                                   .mcp = daemon->mcp,
                                                   .store = daemon->store},
                                     .server = daemon->server,
                                     .loop = home(daemon),
                                     .on_done = on_reloaded,
                                     .ctx = daemon};
    if (!reload_start(&daemon->reload, &options, &e)) on_reloaded(NULL, &e, daemon);
}

static void reload(struct daemon *daemon) {
    if (daemon->phase != PHASE_SERVING || daemon->reload.busy) {
        daemon->reload_again = true;
        return;
    }
    notify_reloading();
    read_again(daemon, NULL);
}

/* A server lists other tools: everything is made again of the settings as they were read. */
static void remake(struct daemon *daemon) {
    if (daemon->phase == PHASE_SERVING && !daemon->reload.busy) {
        read_again(daemon, daemon->snapshot);
    } else {
        daemon->remake_again = true;
    }
}

static void on_tools_changed(void *ctx) {
    remake(ctx);
}

/* --- stopping ----------------------------------------------------------------------------- */

/* Everything is on disk. After the store is closed it sends nothing more, so each loop ends
 * with the order that comes after the store's last mail. */
static void all_kept(struct daemon *daemon) {
    mcp_hub_stop(daemon->mcp);
    reload_wait(&daemon->reload); /* its mail is in front of the last order */
    store_close(daemon->store);
    daemon->store = NULL;
    heap_rest_wait(daemon->heap_rest);
    for (size_t i = 0; i < ARRAY_LEN(daemon->signals); i++) {
        uv_close((uv_handle_t *)&daemon->signals[i], NULL);
    }
    server_free(daemon->server);
    daemon->server = NULL;
    report_workers(daemon, order_exit);
}

static void on_report(void *ctx) {
    struct worker *worker = ctx;
    struct daemon *daemon = worker->daemon;
    if (--daemon->pending == 0) all_kept(daemon);
}

static void on_kept(void *ctx) {
    struct worker *worker = ctx;
    loop_post(home(worker->daemon), &worker->report, on_report, worker);
}

static void on_audited(void *ctx) {
    struct worker *worker = ctx;
    keeper_flush(worker->keeper, on_kept, worker);
}

static void order_finish(struct worker *worker) {
    worker_finish(worker);
    session_table_leave(worker->daemon->sessions, worker->loop);
    audit_writer_stop(worker->audit, on_audited, worker);
}

/* No connection is left, so there is no reader. Detached runs are cut. */
static void on_server_stopped(void *ctx) {
    struct daemon *daemon = ctx;
    presences_stopped(&daemon->presences, daemon->forced);
    daemon_audit(daemon, LIFECYCLE, "stopped", daemon->forced ? ERR_ABORTED : ERR_NONE,
                 daemon->forced ? "forced=true" : "forced=false");
    timer_stop(&daemon->cut);
    heap_rest_stop(daemon->heap_rest);
    sweep_stop(daemon->sweep);
    daemon->sweep = NULL;
    daemon->pending = daemon->worker_count;
    report_workers(daemon, order_finish);
}

static void on_cut(void *ctx) {
    struct daemon *daemon = ctx;
    daemon->forced = true;
    log_warning("the shutdown deadline is near: turns that still run are cut");
    report_workers(daemon, worker_cut);
}

/* The listeners answer until the last existing connection is gone (server_stop). A daemon that
 * never served has no turns to cut. */
static void daemon_stop(struct daemon *daemon, uint64_t within_ms) {
    bool served = daemon->phase == PHASE_SERVING;
    daemon->phase = PHASE_STOPPING;
    recover_stop(daemon->recovery);
    daemon->recovery = NULL;
    answer_box_stop(daemon->answers);
    daemon->answers = NULL;
    presences_stopping(&daemon->presences);
    daemon_audit(daemon, LIFECYCLE, "stopping", daemon->failed.code, daemon->failed.text);
    notify_stopping();
    report_workers(daemon, worker_stopping);
    if (served)
        timer_start(&daemon->cut,
                    within_ms > 2 * CUT_BEFORE_MS ? within_ms - CUT_BEFORE_MS : within_ms / 2);
    server_stop(daemon->server, within_ms, on_server_stopped, daemon);
}

static void on_signal(uv_signal_t *handle, int number) {
    struct daemon *daemon = handle->data;
    if (number == SIGHUP) {
        if (daemon->phase != PHASE_STOPPING) reload(daemon);
        return;
    }
    uint64_t now_ms = loop_now_ms(home(daemon));
    if (daemon->phase == PHASE_STOPPING) {
        /* A supervisor may signal both the process and its group. That counts as one signal. */
        if (now_ms - daemon->stopped_ms < SECOND_SIGNAL_MS) return;
        log_last(LOG_WARNING, "a second signal: stopping at once");
        _exit(1);
    }
    uint64_t shutdown_ms = daemon->snapshot->config->limits.shutdown_ms;
    daemon->stopped_ms = now_ms;
    log_info("stopping; turns have %llu s to end", (unsigned long long)shutdown_ms / 1000);
    daemon_stop(daemon, shutdown_ms);
}

/* main() has blocked the signals. One that came since is delivered in the loop's first turn. */
static void watch_signals(struct daemon *daemon) {
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    sigset_t watched;
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&watched);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        uv_signal_init(loop_uv(home(daemon)), &daemon->signals[i]);
        daemon->signals[i].data = daemon;
        uv_signal_start(&daemon->signals[i], on_signal, numbers[i]);
        sigaddset(&watched, numbers[i]);
    }
    pthread_sigmask(SIG_UNBLOCK, &watched, NULL);
}

/* --- starting ----------------------------------------------------------------------------- */

static void daemon_fail(struct daemon *daemon, const struct err *why) {
    daemon->failed = *why;
    if (daemon->phase != PHASE_STOPPING) daemon_stop(daemon, 0);
}

static void on_health(void *ctx) {
    report_workers(ctx, worker_health);
}

/* What to switch on for jobs: the first listener of the contract that goes on with them. */
static const char *listener_of_jobs(const struct contract_table *contracts) {
    for (size_t i = 0; i < contracts->count; i++) {
        const struct contract *row = contracts->rows[i];
        if (row->instance.take_job && row->listener_count) return row->listeners[0].name;
    }
    return "http";
}

static void log_recovered(const struct daemon *daemon, const struct recovered *found) {
    if (found->interrupted) {
        log_warning("%zu turns were interrupted when the last process ended",
                    found->interrupted);
    }
    if (found->effects_unknown) {
        log_warning("%zu tool calls were open then: it is unknown whether they took effect; "
                    "the next turn of their session reads so",
                    found->effects_unknown);
    }
    if (found->waiting) log_info("%zu turns wait for a person's answer", found->waiting);
    if (found->jobs) log_info("%zu jobs go on", found->jobs);
    if (found->jobs_left) {
        log_warning("%zu jobs wait for a process that serves them: set listen.%s",
                    found->jobs_left, listener_of_jobs(daemon->options->contracts));
    }
}

/* With a store elsewhere the data folder is not this process's alone. */
static void leave_ports(struct daemon *daemon, size_t count) {
    if (!daemon->config->store.url.len)
        ports_leave(daemon->config->data, daemon->server, daemon->listenings, count);
}

static void on_recovered(const struct recovered *found, const struct err *failed, void *ctx) {
    struct daemon *daemon = ctx;
    struct err e;
    daemon->recovery = NULL;
    if (failed) {
        daemon_fail(daemon, failed);
        return;
    }
    if (daemon->phase == PHASE_STOPPING) return;
    log_recovered(daemon, found);
    if (!ports_write(daemon->config->ports_file, daemon->server, daemon->listenings,
                     daemon->listening_count, &e)) {
        daemon_fail(daemon, &e);
        return;
    }
    leave_ports(daemon, daemon->listening_count);
    daemon->phase = PHASE_SERVING;
    daemon_audit(daemon, LIFECYCLE, "ready", ERR_NONE, "");
    audit_config(daemon, "start");
    daemon->answers = answer_box_start(daemon->sessions, home(daemon));
    heap_rest_start(daemon->heap_rest);
    presences_ready(&daemon->presences, daemon->snapshot);
    report_workers(daemon, worker_serving);
    if (daemon->options->on_ready) daemon->options->on_ready(daemon, daemon->options->ctx);
    notify_ready(daemon->snapshot->engine.agent_count);
    catch_up(daemon);
}

static void recover(struct daemon *daemon, recovered_fn *done) {
    struct worker *first = &daemon->workers[0];
    const struct recover_helpers helpers = {.jobs = worker_jobs(first),
                                            .agents = restored_agents(first)};
    daemon->recovery = recover_start(daemon->store, &first->host, &helpers, done, daemon);
}

/* --- replicas ----------------------------------------------------------------------------- */

static void on_taken_over(const struct recovered *found, const struct err *failed, void *ctx) {
    struct daemon *daemon = ctx;
    daemon->recovery = NULL;
    if (!failed)
        log_recovered(daemon, found);
    else if (!found->inherited)
        log_warning("what a replica left cannot be taken over now: %s", failed->text);
    else if (daemon->phase != PHASE_STOPPING)
        daemon_fail(daemon, failed); /* for another one to take it up */
}

static void take_over(void *ctx) {
    struct daemon *daemon = ctx;
    atomic_store(&daemon->died_posted, false);
    if (daemon->phase != PHASE_SERVING || daemon->recovery) return; /* it is said again */
    log_info("a replica has ended: its turns are taken over");
    recover(daemon, on_taken_over);
}

static void on_died(void *ctx) {
    struct daemon *daemon = ctx;
    if (!atomic_exchange(&daemon->died_posted, true))
        loop_post(home(daemon), &daemon->died, take_over, daemon);
}

static void on_fenced(void *ctx) {
    struct daemon *daemon = ctx;
    struct err e;
    if (daemon->phase == PHASE_STOPPING) return;
    err_set(
        &e, ERR_UNAVAILABLE,
        "this replica was silent for longer than store.lease, and another one has taken its "
        "place; start it again");
    daemon_fail(daemon, &e);
}

/* The last word of the store's thread. */
static void on_lost(void *ctx) {
    struct daemon *daemon = ctx;
    loop_post(home(daemon), &daemon->lost, on_fenced, daemon);
}

/* Of what a contract keeps in its process the other replicas would know nothing. */
static bool may_share(const struct daemon *daemon, struct err *e) {
    for (size_t i = 0; daemon->config->store.replica.len && i < daemon->presences.count; i++) {
        const struct presence *presence = &daemon->presences.all[i];
        if (!presence->wanted || !presence->contract->alone) continue;
        return err_set(e, ERR_FAILED_PRECONDITION,
                       "store.replica: replicas do not serve " STR_FMT
                       ", whose state is in its process; leave out its listeners, or serve it "
                       "from one daemon without store.replica",
                       STR_ARG(presence->contract->name));
    }
    return true;
}

static void on_open(const struct err *failed, void *ctx) {
    struct daemon *daemon = ctx;
    if (daemon->phase == PHASE_STOPPING) return; /* it may be closed already */
    if (failed) {
        daemon_fail(daemon, failed);
    } else {
        char pid[32];
        snprintf(pid, sizeof(pid), "pid %ld", (long)getpid());
        daemon_audit(daemon, LIFECYCLE, "start", ERR_NONE, pid);
        leave_ports(daemon, 0); /* those of the process before it */
        if (daemon->bucket)
            daemon->sweep = sweep_start(daemon->store, daemon->bucket, home(daemon),
                                        daemon->config->s3.sweep_ms);
        recover(daemon, on_recovered);
    }
}

static bool listen_on_all(struct daemon *daemon, struct err *e) {
    daemon->listenings =
        listenings_new(&daemon->presences, daemon->snapshot, &daemon->listening_count);
    return listenings_start(daemon->listenings, daemon->listening_count, daemon->config,
                            daemon->server, on_request, e);
}

static void make_workers(struct daemon *daemon) {
    daemon->pool = http_pool_new();
    http_pool_trust(daemon->pool, daemon->config->tls.trust);
    daemon->processes = process_pool_new();
    daemon->worker_count = daemon->config->threads;
    daemon->workers = mem_zero(daemon->worker_count, sizeof(struct worker));
    struct loop **loops = mem_zero(daemon->worker_count, sizeof(struct loop *));
    for (size_t i = 0; i < daemon->worker_count; i++) {
        worker_init(&daemon->workers[i], daemon);
        loops[i] = daemon->workers[i].loop;
        http_pool_add(daemon->pool, loops[i]);
        process_pool_add(daemon->processes, loops[i]);
    }
    daemon->server = server_new(loops, daemon->worker_count);
    free(loops);
}

/* --- memory ------------------------------------------------------------------------------- */

#define SESSION_UNUSED_MS 30000 /* then its history leaves memory; the store has it */
#define LEASES_WAITED 3 /* so many leases a turn waits for a session of another replica */
#define OVER_PART 4     /* of the machine's memory, if no limit is set */

static void shed(size_t bytes, void *ctx) {
    struct daemon *daemon = ctx;
    session_table_shed(daemon->sessions, bytes);
}

static size_t on_tidy(void *ctx) {
    struct daemon *daemon = ctx;
    return session_table_tidy(daemon->sessions, SESSION_UNUSED_MS);
}

static void watch_heap(struct daemon *daemon) {
    struct loop **loops = mem_zero(daemon->worker_count, sizeof(struct loop *));
    for (size_t i = 0; i < daemon->worker_count; i++) loops[i] = daemon->workers[i].loop;
    daemon->heap_rest =
        heap_rest_new(&(struct heap_rest_options){.home = home(daemon),
                                                  .loops = loops,
                                                  .loop_count = daemon->worker_count,
                                                  .store = daemon->store,
                                                  .tidy = on_tidy,
                                                  .ctx = daemon});
    free(loops);
}

static void bound_memory(const struct config *config) {
    uint64_t bytes = config->limits.memory_bytes;
    if (!bytes) bytes = machine_memory_bytes() / OVER_PART;
    mem_limit((size_t)bytes);
}

/* The settings were checked when they were read. */
static bool open_bucket(struct daemon *daemon, struct err *e) {
    return config_bucket(daemon->config, daemon->pool, &daemon->bucket, e) &&
           (!daemon->bucket || http_pool_need(daemon->pool, e));
}

static void open_store(struct daemon *daemon) {
    daemon->store =
        store_open(&(struct store_options){.folder = daemon->config->data,
                                           .postgres = daemon->config->store.url,
                                           .schema = daemon->config->store.schema,
                                           .replica = daemon->config->store.replica,
                                           .lease_ms = daemon->config->store.lease_ms,
                                           .on_died = on_died,
                                           .on_lost = on_lost,
                                           .bucket = daemon->bucket,
                                           .durability = daemon->config->durability,
                                           .loop = home(daemon),
                                           .on_open = on_open,
                                           .ctx = daemon});
    store_keep_keys(daemon->store, daemon->config->limits.idempotency_ms);
    store_keep_audit(daemon->store, daemon->config->audit.keep_ms,
                     daemon->config->audit.keep_bytes);
    for (size_t i = 0; i < daemon->worker_count; i++)
        worker_audit(&daemon->workers[i], daemon->store);
    daemon->sessions = session_table_new(daemon->store);
    session_table_wait(daemon->sessions, LEASES_WAITED * daemon->config->store.lease_ms);
    daemon->ledger = ledger_new(daemon->store, home(daemon));
    mem_shed_with(shed, daemon);
    watch_heap(daemon);
}

static void open_mcp(struct daemon *daemon) {
    struct buf path;
    buf_init(&path, 8 * KIB);
    pins_path(daemon->config->data, &path);
    daemon->mcp = mcp_hub_new(daemon->pool, buf_str(&path));
    mcp_hub_watch(daemon->mcp, home(daemon), on_tools_changed, daemon);
    buf_done(&path);
}

static void open_contracts(struct daemon *daemon) {
    daemon->resources = (struct contract_process){.config = daemon->config,
                                                  .loop = home(daemon),
                                                  .pool = daemon->pool,
                                                  .server = daemon->server,
                                                  .audit = daemon->workers[0].audit,
                                                  .health_changed = on_health,
                                                  .ctx = daemon};
    presences_open(&daemon->presences, &daemon->resources);
}

static void prepare_workers(struct daemon *daemon) {
    for (size_t i = 0; i < daemon->worker_count; i++) {
        worker_prepare(&daemon->workers[i],
                       &(struct worker_options){.snapshot = daemon->snapshot,
                                                .store = daemon->store,
                                                .pool = daemon->pool,
                                                .presences = daemon->presences.all,
                                                .listenings = daemon->listenings,
                                                .listening_count = daemon->listening_count});
    }
}

static bool start_threads(struct daemon *daemon, struct err *e) {
    for (size_t i = 1; i < daemon->worker_count; i++) {
        if (!worker_start(&daemon->workers[i], e)) return false;
    }
    return true;
}

static void free_daemon(struct daemon *daemon) {
    for (size_t i = 0; i < daemon->worker_count; i++) worker_done(&daemon->workers[i]);
    presences_done(&daemon->presences);
    config_snapshot_unref(daemon->snapshot);
    mem_shed_with(NULL, NULL);
    heap_rest_free(daemon->heap_rest);
    session_table_free(daemon->sessions);
    ledger_free(daemon->ledger);
    mcp_hub_free(daemon->mcp);
    bucket_free(daemon->bucket);
    http_pool_free(daemon->pool);
    process_pool_free(daemon->processes);
    free(daemon->workers);
    free(daemon->listenings);
    log_often_flush();
    free(daemon);
}

static void stop_home(void *ctx) {
    loop_stop(ctx);
}

/* The daemon never served, so no worker thread runs yet, and a client that has connected to one
 * of the listeners is not served. Mail that the store sent before it was closed is delivered, but
 * has no effect. */
static void daemon_give_up(struct daemon *daemon) {
    struct mail last;
    heap_rest_stop(daemon->heap_rest);
    daemon->phase = PHASE_STOPPING;
    if (daemon->server) server_unlisten(daemon->server);
    mcp_hub_stop(daemon->mcp);
    store_close(daemon->store);
    loop_post(home(daemon), &last, stop_home, home(daemon));
    loop_run(home(daemon));
    server_free(daemon->server);
    for (size_t i = 0; i < daemon->worker_count; i++) {
        http_pool_leave(daemon->pool, daemon->workers[i].loop);
        process_pool_leave(daemon->processes, daemon->workers[i].loop);
    }
    free_daemon(daemon);
}

/* A worker that never served has no connection and no run. The loop runs until the store is
 * closed and all mail has been delivered. */
bool daemon_run(const struct daemon_options *options, struct err *e) {
    struct daemon *daemon = MEM_NEW(struct daemon);
    daemon->options = options;
    daemon->config = options->config;
    daemon->phase = PHASE_STARTING;
    bound_memory(daemon->config);
    presences_init(&daemon->presences, options->contracts, daemon->config);
    if (!may_share(daemon, e)) { /* asked first: opening the store ends one of the same name */
        free_daemon(daemon);
        return false;
    }
    make_workers(daemon);
    timer_init(&daemon->cut, home(daemon), on_cut, daemon);
    bool bucket = open_bucket(daemon, e);
    open_store(daemon);
    open_mcp(daemon);
    struct config_snapshot_options first = {.config = options->config,
                                            .demo_key = options->demo_key,
                                            .contracts = options->contracts,
                                            .sessions = daemon->sessions,
                                            .ledger = daemon->ledger,
                                            .resources = {.pool = daemon->pool,
                                                          .processes = daemon->processes,
                                                          .mcp = daemon->mcp,
                                                          .store = daemon->store}};
    if (!bucket || !config_snapshot_new(&first, &daemon->snapshot, e) ||
        !listen_on_all(daemon, e)) {
        daemon_give_up(daemon);
        return false;
    }
    watch_signals(daemon);
    open_contracts(daemon);
    prepare_workers(daemon);
    if (!start_threads(daemon, &daemon->failed)) daemon_fail(daemon, &daemon->failed);
    loop_run(home(daemon));
    bool served = daemon->failed.code == ERR_NONE;
    if (!served) *e = daemon->failed;
    free_daemon(daemon);
    return served;
}

/* --- for the start screen ----------------------------------------------------------------- */

int daemon_port(const struct daemon *daemon, const char *listener) {
    return server_port(daemon->server, str_from(listener));
}

void daemon_agents_text(const struct daemon *daemon, struct buf *out) {
    const struct engine *engine = &daemon->snapshot->engine;
    for (size_t i = 0; i < engine->agent_count; i++) {
        if (i) buf_append(out, i == 1 ? STR(" → ") : STR(", "));
        buf_append(out, engine->agents[i].slug);
    }
}
