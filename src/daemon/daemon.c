#include "daemon/daemon.h"

#include "base/log.h"
#include "base/machine.h"
#include "base/mem.h"
#include "contract/nimi/job_work.h"
#include "contract/nimi/probe.h"
#include "daemon/edition.h"
#include "daemon/notify.h"
#include "daemon/ports.h"
#include "daemon/reload.h"
#include "daemon/revival.h"
#include "daemon/worker.h"
#include "run/directory.h"
#include "run/dormant.h"
#include "server/server.h"
#include "store/task.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

/* How long before the shutdown deadline turns are pre-empted, so that they can say so. */
#define CUT_BEFORE_MS 500

#define SECOND_SIGNAL_MS 50

enum phase { PHASE_STARTING, PHASE_SERVING, PHASE_STOPPING };

struct daemon {
    const struct daemon_options *options;
    const struct config *config;
    enum phase phase;
    struct edition *edition; /* the newest; a reference */
    struct http_pool *pool;  /* through which models and tools ask others */
    struct session_table *sessions;
    struct ledger *ledger;
    struct store *store;
    struct nimi_runtime *nimi; /* NULL: nobody listens for it */
    struct prober *prober;     /* while it serves */
    struct recovery *recovery; /* before it serves */
    size_t dormant;            /* runs that wait outside of memory, at the last look */
    struct server *server;
    struct server_limits http_limits, grpc_limits;
    struct worker *workers;
    size_t worker_count;
    size_t pending; /* workers that have not reported */
    struct timer cut;
    struct timer tidy;
    struct reload reload;
    bool forced;         /* the shutdown deadline came before all had ended */
    bool reload_again;   /* SIGHUP came while it could not be obeyed */
    uint64_t stopped_ms; /* when the first signal came */
    uv_signal_t signals[3];
    struct err failed; /* why it never served */
};

/* What a worker is told to do. */
typedef void order_fn(struct worker *worker, struct edition *edition);

struct order {
    struct mail mail;
    struct worker *worker;
    order_fn *fn;
    struct edition *edition; /* the newest when it was given; a reference */
};

static void obey(void *ctx) {
    struct order *order = ctx;
    order->fn(order->worker, order->edition);
    edition_unref(order->edition);
    free(order);
}

static struct loop *home(const struct daemon *daemon) {
    return daemon->workers[0].loop;
}

/* --- requests ------------------------------------------------------------------------------
 */

static void on_grpc(struct exchange *exchange, void *ctx) {
    const struct worker *worker = loop_owner(exchange_loop(exchange));
    (void)ctx;
    rpc_serve(worker->grpc, exchange);
}

static void on_http(struct exchange *exchange, void *ctx) {
    const struct worker *worker = loop_owner(exchange_loop(exchange));
    (void)ctx;
    route_serve(worker->http, exchange);
}

static void on_nimi_grpc(struct exchange *exchange, void *ctx) {
    const struct worker *worker = loop_owner(exchange_loop(exchange));
    (void)ctx;
    rpc_serve(worker->nimi->grpc, exchange);
}

static void on_nimi_http(struct exchange *exchange, void *ctx) {
    const struct worker *worker = loop_owner(exchange_loop(exchange));
    (void)ctx;
    route_serve(worker->nimi->http, exchange);
}

/* --- orders to every worker --------------------------------------------------------------- */

/* Have fn run for each worker, on its loop. */
static void tell_workers(struct daemon *daemon, order_fn *fn) {
    for (size_t i = 0; i < daemon->worker_count; i++) {
        struct worker *worker = &daemon->workers[i];
        struct order *order = MEM_NEW(struct order);
        *order =
            (struct order){.worker = worker, .fn = fn, .edition = edition_ref(daemon->edition)};
        loop_post(worker->loop, &order->mail, obey, order);
    }
}

static void order_use(struct worker *worker, struct edition *edition) {
    worker_use(worker, edition);
}

static void order_serving(struct worker *worker, struct edition *edition) {
    (void)edition;
    worker_serving(worker);
}

static void order_health(struct worker *worker, struct edition *edition) {
    (void)edition;
    worker_health(worker);
}

static void order_stopping(struct worker *worker, struct edition *edition) {
    (void)edition;
    worker_stopping(worker);
}

static void order_cut(struct worker *worker, struct edition *edition) {
    (void)edition;
    worker_cut(worker);
}

static void order_exit(struct worker *worker, struct edition *edition) {
    (void)edition;
    worker_leave(worker, worker->daemon->pool);
    loop_stop(worker->loop);
}

/* --- reading the configuration again ------------------------------------------------------ */

static void reload(struct daemon *daemon);

static void take_edition(struct daemon *daemon, struct edition *edition) {
    struct buf fixed;
    buf_init(&fixed, 64 * KIB);
    edition_needs_restart(daemon->config, edition->config, &fixed);
    if (fixed.len)
        log_warning("these settings differ and wait for a restart: " STR_FMT,
                    STR_ARG(buf_str(&fixed)));
    buf_done(&fixed);
    edition_unref(daemon->edition);
    daemon->edition = edition;
    config_log(edition->config);
    store_keep_keys(daemon->store, edition->config->limits.idempotency_ms);
    tell_workers(daemon, order_use);
    if (daemon->prober) prober_use(daemon->prober, &daemon->edition->nimi);
    log_info("the configuration was read again; new turns follow it");
}

static void on_reloaded(struct edition *edition, const struct err *failed, void *ctx) {
    struct daemon *daemon = ctx;
    if (daemon->phase == PHASE_STOPPING) {
        edition_unref(edition);
        return;
    }
    if (failed) {
        log_error("the configuration was not taken: %s; the one before stays", failed->text);
    } else {
        take_edition(daemon, edition);
    }
    notify_ready(daemon->edition->engine.agent_count);
    if (!daemon->reload_again) return;
    daemon->reload_again = false;
    reload(daemon);
}

static void reload(struct daemon *daemon) {
    struct err e;
    if (daemon->phase != PHASE_SERVING || daemon->reload.busy) {
        daemon->reload_again = true;
        return;
    }
    notify_reloading();
    struct reload_options options = {.input = daemon->options->input,
                                     .first = daemon->config,
                                     .grpc_key = daemon->options->grpc_key,
                                     .sessions = daemon->sessions,
                                     .ledger = daemon->ledger,
                                     .means = {.pool = daemon->pool, .store = daemon->store},
                                     .server = daemon->server,
                                     .loop = home(daemon),
                                     .on_done = on_reloaded,
                                     .ctx = daemon};
    if (!reload_start(&daemon->reload, &options, &e)) on_reloaded(NULL, &e, daemon);
}

/* --- stopping ------------------------------------------------------------------------------
 */

/* Everything is on disk: nothing can come from the store any more once it is closed, so each
 * loop ends with the order behind the store's last mail. */
static void all_kept(struct daemon *daemon) {
    reload_wait(&daemon->reload); /* its mail is in front of the last order */
    store_close(daemon->store);
    daemon->store = NULL;
    for (size_t i = 0; i < ARRAY_LEN(daemon->signals); i++) {
        uv_close((uv_handle_t *)&daemon->signals[i], NULL);
    }
    server_free(daemon->server);
    daemon->server = NULL;
    tell_workers(daemon, order_exit);
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

static void order_finish(struct worker *worker, struct edition *edition) {
    (void)edition;
    run_host_cancel(&worker->host, STR("the server stopped"));
    if (worker->nimi) nimi_share_leave(worker->nimi);
    keeper_flush(worker->keeper, on_kept, worker);
}

/* A stop that had to cut calls is a stop in order, and is recorded as what it was. */
static void nimi_stopped(struct daemon *daemon) {
    if (!daemon->nimi || nimi_runtime_state(daemon->nimi) != LIFE_STOPPING) return;
    nimi_runtime_move(daemon->nimi, LIFE_STOPPED, "stopped");
    log_info("runtime.lifecycle shutdown.completed forced=%s",
             daemon->forced ? "true" : "false");
}

/* No connection is left, so no reader is; what runs detached is cut. */
static void on_server_stopped(void *ctx) {
    struct daemon *daemon = ctx;
    nimi_stopped(daemon);
    timer_stop(&daemon->cut);
    timer_stop(&daemon->tidy);
    daemon->pending = daemon->worker_count;
    tell_workers(daemon, order_finish);
}

static void on_cut(void *ctx) {
    struct daemon *daemon = ctx;
    daemon->forced = true;
    log_warning("the shutdown deadline is near: turns that still run are cut");
    tell_workers(daemon, order_cut);
}

/* One that never was ready has nothing to stop. */
static void stop_nimi(struct daemon *daemon) {
    if (!daemon->nimi) return;
    prober_free(daemon->prober);
    daemon->prober = NULL;
    bool started = nimi_runtime_state(daemon->nimi) != LIFE_STARTING;
    nimi_runtime_move(daemon->nimi, started ? LIFE_STOPPING : LIFE_STOPPED, "stopping");
}

/* The listeners answer until the last of those who were there has gone (server_stop). One that
 * never served has no turns to cut. */
static void stop(struct daemon *daemon, uint64_t within_ms) {
    bool served = daemon->phase == PHASE_SERVING;
    daemon->phase = PHASE_STOPPING;
    recover_stop(daemon->recovery);
    daemon->recovery = NULL;
    stop_nimi(daemon);
    notify_stopping();
    tell_workers(daemon, order_stopping);
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
        /* A supervisor may signal the process and its group: that is one wish, not two. */
        if (now_ms - daemon->stopped_ms < SECOND_SIGNAL_MS) return;
        log_last(LOG_WARNING, "a second signal: stopping at once");
        _exit(1);
    }
    uint64_t shutdown_ms = daemon->edition->config->limits.shutdown_ms;
    daemon->stopped_ms = now_ms;
    log_info("stopping; turns have %llu s to end", (unsigned long long)shutdown_ms / 1000);
    stop(daemon, shutdown_ms);
}

/* main() has blocked them; one that came since is told in the first turn. */
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

/* --- starting ------------------------------------------------------------------------------
 */

static void fail(struct daemon *daemon, const struct err *why) {
    daemon->failed = *why;
    if (daemon->phase != PHASE_STOPPING) stop(daemon, 0);
}

static void on_health(void *ctx) {
    tell_workers(ctx, order_health);
}

static void serve_nimi(struct daemon *daemon) {
    if (!daemon->nimi) return;
    nimi_runtime_move(daemon->nimi, LIFE_READY, "ready");
    daemon->prober = prober_start(&(struct prober_options){.loop = home(daemon),
                                                           .pool = daemon->pool,
                                                           .runtime = daemon->nimi,
                                                           .settings = &daemon->edition->nimi,
                                                           .changed = on_health,
                                                           .ctx = daemon});
}

static void on_recovered(const struct recovered *found, const struct err *failed, void *ctx) {
    struct daemon *daemon = ctx;
    struct err e;
    daemon->recovery = NULL;
    if (failed) {
        fail(daemon, failed);
        return;
    }
    if (daemon->phase == PHASE_STOPPING) return;
    if (found->interrupted) {
        log_warning("%zu turns were interrupted when the last process ended",
                    found->interrupted);
    }
    if (found->effects_unknown) {
        log_warning("%zu tool calls were out then: nobody knows whether they had their effect; "
                    "the next turn of their session reads so",
                    found->effects_unknown);
    }
    if (found->waiting) log_info("%zu turns wait for a person's answer", found->waiting);
    if (found->jobs) log_info("%zu jobs go on", found->jobs);
    if (found->jobs_left) {
        log_warning("%zu jobs wait for a process that serves them: set listen.nimi_grpc",
                    found->jobs_left);
    }
    if (!ports_write(daemon->config->ports_file, daemon->server, &e)) {
        fail(daemon, &e);
        return;
    }
    daemon->phase = PHASE_SERVING;
    serve_nimi(daemon);
    tell_workers(daemon, order_serving);
    if (daemon->options->on_ready) daemon->options->on_ready(daemon, daemon->options->ctx);
    notify_ready(daemon->edition->engine.agent_count);
    if (daemon->reload_again) {
        daemon->reload_again = false;
        reload(daemon);
    }
}

static void on_open(const struct err *failed, void *ctx) {
    struct daemon *daemon = ctx;
    if (daemon->phase == PHASE_STOPPING) return; /* it may be closed already */
    if (failed) {
        fail(daemon, failed);
    } else {
        struct worker *first = &daemon->workers[0];
        struct recover_helpers helpers = {.agents = revival_agents(first)};
        if (first->nimi)
            helpers.jobs = (struct recover_jobs){job_work_take, &first->nimi->desk};
        daemon->recovery =
            recover_start(daemon->store, &first->host, &helpers, on_recovered, daemon);
    }
}

static bool listen_on(struct daemon *daemon, const struct listener_options *listener,
                      struct err *e) {
    if (listener->address.len == 0) return true;
    const struct config *config = daemon->config;
    const struct tls_options tls = {config->tls.cert, config->tls.key, config->tls.ca};
    bool wants_tls = tls.cert.len || tls.key.len || tls.ca.len;
    struct listener_options options = *listener;
    options.ctx = daemon;
    options.tls = wants_tls ? &tls : NULL;
    return server_listen(daemon->server, &options, e);
}

static bool listen_on_all(struct daemon *daemon, struct err *e) {
    const struct config *config = daemon->config;
    daemon->http_limits = daemon->grpc_limits = config->limits.server;
    daemon->http_limits.streams_max_stranger = 0; /* these callers show no token */
    if (!daemon->edition->keys) daemon->grpc_limits.streams_max_stranger = 0;
    const struct listener_options http = {.name = STR("http"),
                                          .address = config->listen.http,
                                          .limits = &daemon->http_limits,
                                          .on_request = on_http,
                                          .refusal = &runtime_refusal};
    const struct listener_options grpc = {.name = STR("grpc"),
                                          .address = config->listen.grpc,
                                          .limits = &daemon->grpc_limits,
                                          .on_request = on_grpc};
    const struct listener_options nimi_grpc = {.name = STR("nimi_grpc"),
                                               .address = config->listen.nimi_grpc,
                                               .limits = &daemon->http_limits,
                                               .on_request = on_nimi_grpc};
    const struct listener_options nimi_http = {.name = STR("nimi_http"),
                                               .address = config->listen.nimi_http,
                                               .limits = &daemon->http_limits,
                                               .on_request = on_nimi_http};
    return listen_on(daemon, &http, e) && listen_on(daemon, &grpc, e) &&
           listen_on(daemon, &nimi_grpc, e) && listen_on(daemon, &nimi_http, e);
}

static void make_workers(struct daemon *daemon) {
    daemon->pool = http_pool_new();
    daemon->worker_count = daemon->config->threads;
    daemon->workers = mem_zero(daemon->worker_count, sizeof(struct worker));
    struct loop **loops = mem_zero(daemon->worker_count, sizeof(struct loop *));
    for (size_t i = 0; i < daemon->worker_count; i++) {
        worker_init(&daemon->workers[i], daemon);
        loops[i] = daemon->workers[i].loop;
        http_pool_add(daemon->pool, loops[i]);
    }
    daemon->server = server_new(loops, daemon->worker_count);
    free(loops);
}

/* --- memory ------------------------------------------------------------------------------- */

#define TIDY_EVERY_MS 15000
#define SESSION_UNUSED_MS 30000 /* so long its history stays here; then the store has it */
#define OVER_PART 4             /* of the machine's memory, where nobody set a ceiling */

static void shed(size_t bytes, void *ctx) {
    struct daemon *daemon = ctx;
    session_table_shed(daemon->sessions, bytes);
}

/* After a busy time: what nobody uses goes, and what the heap kept of it goes back. */
static void on_tidy(void *ctx) {
    struct daemon *daemon = ctx;
    const struct directory *directory = session_table_directory(daemon->sessions);
    size_t dormant = dormant_count(directory_dormant(directory));
    bool fell_asleep = dormant > daemon->dormant;
    daemon->dormant = dormant;
    if (session_table_tidy(daemon->sessions, SESSION_UNUSED_MS) || fell_asleep)
        store_rest(daemon->store, home(daemon));
    timer_start(&daemon->tidy, TIDY_EVERY_MS);
}

static void bound_memory(const struct config *config) {
    uint64_t bytes = config->limits.memory_bytes;
    if (!bytes) bytes = machine_memory_bytes() / OVER_PART;
    mem_limit((size_t)bytes);
}

static void open_store(struct daemon *daemon) {
    daemon->store = store_open(&(struct store_options){.folder = daemon->config->data,
                                                       .durability = daemon->config->durability,
                                                       .loop = home(daemon),
                                                       .on_open = on_open,
                                                       .ctx = daemon});
    store_keep_keys(daemon->store, daemon->config->limits.idempotency_ms);
    daemon->sessions = session_table_new(daemon->store);
    daemon->ledger = ledger_new(daemon->store, home(daemon));
    mem_shed_with(shed, daemon);
    timer_start(&daemon->tidy, TIDY_EVERY_MS);
}

static unsigned slots_of(uint64_t setting) {
    return setting ? (unsigned)setting : SCHEDULER_NO_LIMIT;
}

static void start_nimi(struct daemon *daemon) {
    const struct config *config = daemon->config;
    const struct scheduler_limits slots = {slots_of(config->nimi.slots),
                                           slots_of(config->nimi.slots_per_app),
                                           SCHEDULER_QUEUE_MAX};
    if (!config->listen.nimi_grpc.len && !config->listen.nimi_http.len) return;
    daemon->nimi = nimi_runtime_new(&slots);
    nimi_share_files(daemon->nimi, config, server_port(daemon->server, STR("nimi_http")));
    nimi_runtime_move(daemon->nimi, LIFE_STARTING, "starting");
}

static void furnish_workers(struct daemon *daemon) {
    for (size_t i = 0; i < daemon->worker_count; i++) {
        worker_furnish(
            &daemon->workers[i],
            &(struct worker_options){.edition = daemon->edition,
                                     .store = daemon->store,
                                     .pool = daemon->pool,
                                     .reflection = daemon->config->converse.reflection,
                                     .nimi = daemon->nimi});
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
    nimi_runtime_free(daemon->nimi);
    edition_unref(daemon->edition);
    mem_shed_with(NULL, NULL);
    session_table_free(daemon->sessions);
    ledger_free(daemon->ledger);
    http_pool_free(daemon->pool);
    free(daemon->workers);
    log_often_flush();
    free(daemon);
}

static void stop_home(void *ctx) {
    loop_stop(ctx);
}

/* It never served: no thread of a worker runs yet. What the store has told until it was closed
 * is heard, and means nothing any more. */
static void give_up(struct daemon *daemon) {
    struct mail last;
    timer_stop(&daemon->tidy);
    daemon->phase = PHASE_STOPPING;
    store_close(daemon->store);
    loop_post(home(daemon), &last, stop_home, home(daemon));
    loop_run(home(daemon));
    server_free(daemon->server);
    for (size_t i = 0; i < daemon->worker_count; i++)
        http_pool_leave(daemon->pool, daemon->workers[i].loop);
    free_daemon(daemon);
}

/* A worker that never served has no connection and no run: the loop turns until the store
 * is closed and all has been told. */
bool daemon_run(const struct daemon_options *options, struct err *e) {
    struct daemon *daemon = MEM_NEW(struct daemon);
    daemon->options = options;
    daemon->config = options->config;
    daemon->phase = PHASE_STARTING;
    bound_memory(daemon->config);
    make_workers(daemon);
    timer_init(&daemon->cut, home(daemon), on_cut, daemon);
    timer_init(&daemon->tidy, home(daemon), on_tidy, daemon);
    open_store(daemon);
    struct edition_options first = {.config = options->config,
                                    .grpc_key = options->grpc_key,
                                    .sessions = daemon->sessions,
                                    .ledger = daemon->ledger,
                                    .means = {.pool = daemon->pool, .store = daemon->store}};
    if (!edition_new(&first, &daemon->edition, e) || !listen_on_all(daemon, e)) {
        give_up(daemon);
        return false;
    }
    watch_signals(daemon);
    start_nimi(daemon);
    furnish_workers(daemon);
    if (!start_threads(daemon, &daemon->failed)) fail(daemon, &daemon->failed);
    loop_run(home(daemon));
    bool served = daemon->failed.code == ERR_NONE;
    if (!served) *e = daemon->failed;
    free_daemon(daemon);
    return served;
}

/* --- for the start screen ------------------------------------------------------------------
 */

int daemon_port(const struct daemon *daemon, const char *listener) {
    return server_port(daemon->server, str_from(listener));
}

void daemon_agents_text(const struct daemon *daemon, struct buf *out) {
    const struct engine *engine = &daemon->edition->engine;
    for (size_t i = 0; i < engine->agent_count; i++) {
        if (i) buf_append(out, i == 1 ? STR(" → ") : STR(", "));
        buf_append(out, engine->agents[i].slug);
    }
}
