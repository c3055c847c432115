#include "daemon/daemon.h"

#include "base/log.h"
#include "base/machine.h"
#include "base/mem.h"
#include "daemon/daemon_inner.h"
#include "daemon/notify.h"
#include "daemon/ports.h"
#include "mcp/pins.h"
#include "store/task.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* --- its phases --------------------------------------------------------------------------- */

const struct state daemon_phases[DAEMON_PHASE_COUNT] = {
    [DAEMON_STARTING] = {"starting", TO(DAEMON_SERVING) | TO(DAEMON_STOPPING)},
    [DAEMON_SERVING] = {"serving", TO(DAEMON_STOPPING)},
    [DAEMON_STOPPING] = {"stopping", 0},
};

void daemon_move(struct daemon *daemon, enum daemon_phase next) {
    assert(states_allow(daemon_phases, daemon->phase, next));
    daemon->phase = next;
}

/* --- orders to every worker --------------------------------------------------------------- */

struct order {
    struct mail mail;
    struct worker *worker;
    order_fn *fn;                     /* NULL: use the snapshot */
    struct config_snapshot *snapshot; /* the newest when it was given; a reference */
};

static void obey(void *ctx) {
    struct order *order = ctx;
    if (order->fn) {
        order->fn(order->worker);
    } else {
        worker_use(order->worker, order->snapshot);
    }
    config_snapshot_unref(order->snapshot);
    free(order);
}

void daemon_order(struct daemon *daemon, order_fn *fn) {
    for (size_t i = 0; i < daemon->worker_count; i++) {
        struct order *order = MEM_NEW(struct order);
        *order = (struct order){.worker = &daemon->workers[i],
                                .fn = fn,
                                .snapshot = config_snapshot_ref(daemon->snapshot)};
        loop_post(order->worker->loop, &order->mail, obey, order);
    }
}

/* --- the audit log ------------------------------------------------------------------------ */

void daemon_audit(struct daemon *daemon, struct str domain, const char *operation,
                  enum err_code outcome, const char *detail) {
    audit_writer_tell(daemon->workers[0].audit, domain, str_from(operation), outcome,
                      str_from(detail));
}

void daemon_audit_config(struct daemon *daemon, const char *operation) {
    const struct config *config = daemon->snapshot->config;
    struct buf text;
    buf_init(&text, AUDIT_DETAIL_MAX_BYTES);
    buf_append(&text, STR("providers:"));
    for (size_t i = 0; i < config->provider_count; i++)
        buf_printf(&text, " " STR_FMT, STR_ARG(config->providers[i].name));
    buf_append(&text, STR("; connectors:"));
    for (size_t i = 0; i < config->connector_count; i++)
        buf_printf(&text, " " STR_FMT, STR_ARG(config->connectors[i].id));
    audit_writer_tell(daemon->workers[0].audit, DAEMON_CONFIG, str_from(operation), ERR_NONE,
                      buf_str(&text));
    buf_done(&text);
}

/* --- requests ----------------------------------------------------------------------------- */

static void on_request(struct exchange *exchange, void *ctx) {
    const struct listening *listening = ctx;
    const struct worker *worker = loop_owner(exchange_loop(exchange));
    site_serve(worker->sites[listening->index], exchange);
}

/* --- starting ----------------------------------------------------------------------------- */

static void on_health(void *ctx) {
    daemon_order(ctx, worker_health);
}

/* With a store elsewhere the data folder is not this process's alone. */
static void leave_ports(struct daemon *daemon, size_t count) {
    if (!daemon->config->store.url.len)
        ports_leave(daemon->config->data, daemon->server, daemon->listenings, count);
}

/* What the process before it left, if that was killed. */
static void forget_previous(struct daemon *daemon) {
    if (!daemon->config->store.url.len) clients_forget(daemon->config->data);
    leave_ports(daemon, 0);
}

static bool meet_clients(struct daemon *daemon, struct err *e) {
    const struct daemon_options *options = daemon->options;
    return options->client_token.len == 0 ||
           clients_start(&(struct clients_options){.loop = daemon_home(daemon),
                                                   .folder = daemon->config->data,
                                                   .token = options->client_token,
                                                   .starter = options->starter,
                                                   .on_none = daemon_on_no_clients,
                                                   .ctx = daemon},
                         &daemon->clients, e);
}

static void on_recovered(const struct recovered *found, const struct err *failed, void *ctx) {
    struct daemon *daemon = ctx;
    struct err e;
    daemon->recovery = NULL;
    if (failed) {
        daemon_fail(daemon, failed);
        return;
    }
    if (daemon->phase == DAEMON_STOPPING) return;
    daemon_log_recovered(daemon, found);
    if (!ports_write(daemon->config->ports_file, daemon->server, daemon->listenings,
                     daemon->listening_count, &e)) {
        daemon_fail(daemon, &e);
        return;
    }
    leave_ports(daemon, daemon->listening_count);
    if (!meet_clients(daemon, &e)) {
        daemon_fail(daemon, &e);
        return;
    }
    daemon_move(daemon, DAEMON_SERVING);
    daemon_audit(daemon, DAEMON_LIFECYCLE, "ready", ERR_NONE, "");
    daemon_audit_config(daemon, "start");
    daemon->answers = answer_box_start(daemon->sessions, daemon_home(daemon));
    daemon->cancels = cancel_box_start(daemon->sessions, daemon_home(daemon));
    heap_rest_start(daemon->heap_rest);
    presences_ready(&daemon->presences, daemon->snapshot);
    daemon_order(daemon, worker_serving);
    if (daemon->options->on_ready) daemon->options->on_ready(daemon, daemon->options->ctx);
    notify_ready(daemon->snapshot->engine.agent_count);
    daemon_catch_up(daemon);
}

static void daemon_on_open(const struct err *failed, void *ctx) {
    struct daemon *daemon = ctx;
    if (daemon->phase == DAEMON_STOPPING) return; /* it may be closed already */
    if (failed) {
        daemon_fail(daemon, failed);
    } else {
        char pid[32];
        snprintf(pid, sizeof(pid), "pid %ld", (long)getpid());
        daemon_audit(daemon, DAEMON_LIFECYCLE, "start", ERR_NONE, pid);
        forget_previous(daemon);
        if (daemon->bucket)
            daemon->sweep = sweep_start(daemon->store, daemon->bucket, daemon_home(daemon),
                                        daemon->config->s3.sweep_ms);
        daemon_recover(daemon, on_recovered);
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

/* Then a session's history leaves memory; the store has it. Where there are many, they leave sooner. */
#define SESSION_UNUSED_MS 30000
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

static uint64_t on_trim(void *ctx) {
    struct daemon *daemon = ctx;
    return session_table_trim(daemon->sessions, SESSIONS_TRIM_MS);
}

static void on_many_sessions(void *ctx) {
    struct daemon *daemon = ctx;
    heap_rest_trim(daemon->heap_rest);
}

static void watch_heap(struct daemon *daemon) {
    struct loop **loops = mem_zero(daemon->worker_count, sizeof(struct loop *));
    for (size_t i = 0; i < daemon->worker_count; i++) loops[i] = daemon->workers[i].loop;
    daemon->heap_rest =
        heap_rest_new(&(struct heap_rest_options){.home = daemon_home(daemon),
                                                  .loops = loops,
                                                  .loop_count = daemon->worker_count,
                                                  .store = daemon->store,
                                                  .tidy = on_tidy,
                                                  .trim = on_trim,
                                                  .trim_ms = SESSIONS_TRIM_MS,
                                                  .ctx = daemon});
    session_table_many_with(daemon->sessions, on_many_sessions, daemon);
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

static void make_store(struct daemon *daemon) {
    daemon->store =
        store_new(&(struct store_options){.folder = daemon->config->data,
                                          .postgres = daemon->config->store.url,
                                          .schema = daemon->config->store.schema,
                                          .replica = daemon->config->store.replica,
                                          .lease_ms = daemon->config->store.lease_ms,
                                          .searches = daemon->config->store.searches,
                                          .on_died = daemon_on_died,
                                          .on_lost = daemon_on_lost,
                                          .bucket = daemon->bucket,
                                          .durability = daemon->config->durability,
                                          .loop = daemon_home(daemon),
                                          .on_open = daemon_on_open,
                                          .ctx = daemon});
    store_keep_keys(daemon->store, daemon->config->limits.idempotency_ms);
    store_keep_audit(daemon->store, daemon->config->audit.keep_ms,
                     daemon->config->audit.keep_bytes);
    for (size_t i = 0; i < daemon->worker_count; i++)
        worker_audit(&daemon->workers[i], daemon->store);
    daemon->sessions = session_table_new(daemon->store);
    session_table_wait(daemon->sessions, LEASES_WAITED * daemon->config->store.lease_ms);
    daemon->ledger = ledger_new(daemon->store, daemon_home(daemon));
    mem_shed_with(shed, daemon);
    watch_heap(daemon);
}

static void open_mcp(struct daemon *daemon) {
    struct buf path;
    buf_init(&path, 8 * KIB);
    pins_path(daemon->config->data, &path);
    daemon->mcp = mcp_hub_new(daemon->pool, buf_str(&path));
    mcp_hub_watch(daemon->mcp, daemon_home(daemon), daemon_on_tools_changed, daemon);
    buf_done(&path);
}

static void open_contracts(struct daemon *daemon) {
    daemon->resources = (struct contract_process){.config = daemon->config,
                                                  .loop = daemon_home(daemon),
                                                  .pool = daemon->pool,
                                                  .server = daemon->server,
                                                  .audit = daemon->workers[0].audit,
                                                  .health_changed = on_health,
                                                  .ctx = daemon};
    presences_open(&daemon->presences, &daemon->resources);
}

static void prepare_workers(struct daemon *daemon) {
    daemon->rates = rate_limits_new(daemon->config->limits.rates);
    for (size_t i = 0; i < daemon->worker_count; i++) {
        worker_prepare(&daemon->workers[i],
                       &(struct worker_options){.snapshot = daemon->snapshot,
                                                .store = daemon->store,
                                                .pool = daemon->pool,
                                                .rates = daemon->rates,
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
    rate_limits_free(daemon->rates);
    mcp_hub_free(daemon->mcp);
    bucket_free(daemon->bucket);
    http_pool_free(daemon->pool);
    process_pool_free(daemon->processes);
    free(daemon->workers);
    free(daemon->listenings);
    clients_free(daemon->clients);
    log_often_flush();
    free(daemon);
}

static void stop_home(void *ctx) {
    loop_stop(ctx);
}

/* The daemon never served, so no worker thread runs yet, and a client that has connected to one
 * of the listeners is not served. The store was not begun: what was asked of it is refused, and the
 * mail that says so is delivered, but has no effect. The ledger would warn of it. */
static void daemon_give_up(struct daemon *daemon) {
    struct mail last;
    session_table_many_end(daemon->sessions);
    heap_rest_stop(daemon->heap_rest);
    daemon_move(daemon, DAEMON_STOPPING);
    if (daemon->server) server_unlisten(daemon->server);
    mcp_hub_stop(daemon->mcp);
    ledger_free(daemon->ledger);
    daemon->ledger = NULL;
    store_close(daemon->store);
    loop_post(daemon_home(daemon), &last, stop_home, daemon_home(daemon));
    loop_run(daemon_home(daemon));
    server_free(daemon->server);
    for (size_t i = 0; i < daemon->worker_count; i++) {
        http_pool_leave(daemon->pool, daemon->workers[i].loop);
        process_pool_leave(daemon->processes, daemon->workers[i].loop);
    }
    free_daemon(daemon);
}

/* For some milliseconds the store's thread takes what processor it gets, and where there is one, callers
 * would wait for it. So the store begins after those who came while the daemon got ready: they are
 * accepted in the loop's first turn and answered in its second. */
#define TURNS_BEFORE_STORE 3

static void begin_store(void *ctx) {
    struct daemon *daemon = ctx;
    if (!daemon->store) return; /* stopped in one of these turns */
    if (++daemon->turns <= TURNS_BEFORE_STORE)
        loop_post(daemon_home(daemon), &daemon->turned, begin_store, daemon);
    else
        store_begin(daemon->store);
}

struct config_snapshot_options daemon_snapshot_options(const struct daemon *daemon) {
    return (struct config_snapshot_options){.demo_key = daemon->options->demo_key,
                                            .contracts = daemon->options->contracts,
                                            .sessions = daemon->sessions,
                                            .ledger = daemon->ledger,
                                            .resources = {.pool = daemon->pool,
                                                          .processes = daemon->processes,
                                                          .mcp = daemon->mcp,
                                                          .store = daemon->store}};
}

/* A worker that never served has no connection and no run. The loop runs until the store is
 * closed and all mail has been delivered. */
bool daemon_run(const struct daemon_options *options, struct err *e) {
    struct daemon *daemon = MEM_NEW(struct daemon);
    daemon->options = options;
    daemon->config = options->config;
    bound_memory(daemon->config);
    presences_init(&daemon->presences, options->contracts, daemon->config);
    make_workers(daemon);
    timer_init(&daemon->cut, daemon_home(daemon), daemon_on_cut, daemon);
    bool bucket = open_bucket(daemon, e);
    make_store(daemon);
    open_mcp(daemon);
    struct config_snapshot_options first = daemon_snapshot_options(daemon);
    first.config = options->config;
    if (!bucket || !config_snapshot_new(&first, &daemon->snapshot, e) ||
        !listen_on_all(daemon, e)) {
        daemon_give_up(daemon);
        return false;
    }
    daemon_watch_signals(daemon);
    open_contracts(daemon);
    prepare_workers(daemon);
    begin_store(daemon);
    if (!start_threads(daemon, &daemon->failed)) daemon_fail(daemon, &daemon->failed);
    loop_run(daemon_home(daemon));
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
