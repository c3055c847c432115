#include "daemon/daemon.h"

#include "base/log.h"
#include "base/mem.h"
#include "daemon/ports.h"
#include "daemon/team.h"
#include "daemon/worker.h"
#include "run/recover.h"
#include "server/server.h"

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
    struct team team;
    struct engine engine;
    struct store *store;
    struct server *server;
    struct server_limits http_limits, grpc_limits;
    struct token_keys *keys;
    struct converse_settings converse;
    struct runtime_settings runtime;
    struct worker *workers;
    size_t worker_count;
    size_t pending; /* workers that have not reported */
    struct timer cut;
    uint64_t stopped_ms; /* when the first signal came */
    uv_signal_t signals[3];
    struct err failed; /* why it never served */
};

/* What a worker is told to do. */
struct order {
    struct mail mail;
    struct worker *worker;
    task_fn *fn;
};

static void obey(void *ctx) {
    struct order *order = ctx;
    order->fn(order->worker);
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

/* --- orders to every worker --------------------------------------------------------------- */

/* Have fn(worker) run on each worker's loop. */
static void tell_workers(struct daemon *daemon, task_fn *fn) {
    for (size_t i = 0; i < daemon->worker_count; i++) {
        struct worker *worker = &daemon->workers[i];
        struct order *order = MEM_NEW(struct order);
        *order = (struct order){.worker = worker, .fn = fn};
        loop_post(worker->loop, &order->mail, obey, order);
    }
}

static void order_serving(void *ctx) {
    worker_serving(ctx);
}

static void order_stopping(void *ctx) {
    worker_stopping(ctx);
}

static void order_cut(void *ctx) {
    worker_cut(ctx);
}

static void order_exit(void *ctx) {
    loop_stop(((struct worker *)ctx)->loop);
}

/* --- stopping ------------------------------------------------------------------------------
 */

/* Everything is on disk: nothing can come from the store any more once it is closed, so each
 * loop ends with the order behind the store's last mail. */
static void all_kept(struct daemon *daemon) {
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

static void order_finish(void *ctx) {
    struct worker *worker = ctx;
    run_host_cancel(&worker->host, STR("the server stopped"));
    keeper_flush(worker->keeper, on_kept, worker);
}

/* No connection is left, so no reader is; what runs detached is cut. */
static void on_server_stopped(void *ctx) {
    struct daemon *daemon = ctx;
    timer_stop(&daemon->cut);
    daemon->pending = daemon->worker_count;
    tell_workers(daemon, order_finish);
}

static void on_cut(void *ctx) {
    struct daemon *daemon = ctx;
    log_warning("the shutdown deadline is near: turns that still run are cut");
    tell_workers(daemon, order_cut);
}

static void stop(struct daemon *daemon, uint64_t within_ms) {
    daemon->phase = PHASE_STOPPING;
    daemon->runtime.loaded = false;
    tell_workers(daemon, order_stopping);
    timer_start(&daemon->cut,
                within_ms > 2 * CUT_BEFORE_MS ? within_ms - CUT_BEFORE_MS : within_ms / 2);
    server_stop(daemon->server, within_ms, on_server_stopped, daemon);
}

static void on_signal(uv_signal_t *handle, int number) {
    struct daemon *daemon = handle->data;
    if (number == SIGHUP) {
        log_info("SIGHUP is ignored");
        return;
    }
    uint64_t now_ms = loop_now_ms(home(daemon));
    if (daemon->phase == PHASE_STOPPING) {
        /* A supervisor may signal the process and its group: that is one wish, not two. */
        if (now_ms - daemon->stopped_ms < SECOND_SIGNAL_MS) return;
        log_warning("a second signal: stopping at once");
        _exit(1);
    }
    daemon->stopped_ms = now_ms;
    log_info("stopping; turns have %llu s to end",
             (unsigned long long)daemon->config->limits.shutdown_ms / 1000);
    stop(daemon, daemon->config->limits.shutdown_ms);
}

static void watch_signals(struct daemon *daemon) {
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        uv_signal_init(loop_uv(home(daemon)), &daemon->signals[i]);
        daemon->signals[i].data = daemon;
        uv_signal_start(&daemon->signals[i], on_signal, numbers[i]);
    }
}

/* --- starting ------------------------------------------------------------------------------
 */

static void fail(struct daemon *daemon, const struct err *why) {
    daemon->failed = *why;
    if (daemon->phase != PHASE_STOPPING) stop(daemon, 0);
}

static void on_recovered(size_t count, const struct err *failed, void *ctx) {
    struct daemon *daemon = ctx;
    struct err e;
    if (failed) {
        fail(daemon, failed);
        return;
    }
    if (daemon->phase == PHASE_STOPPING) return;
    if (count) log_warning("%zu turns were interrupted when the last process ended", count);
    if (!ports_write(daemon->config->ports_file, daemon->server, &e)) {
        fail(daemon, &e);
        return;
    }
    daemon->phase = PHASE_SERVING;
    daemon->runtime.loaded = true;
    tell_workers(daemon, order_serving);
    if (daemon->options->on_ready) daemon->options->on_ready(daemon, daemon->options->ctx);
}

static void on_open(const struct err *failed, void *ctx) {
    struct daemon *daemon = ctx;
    if (daemon->phase == PHASE_STOPPING) return; /* it may be closed already */
    if (failed) {
        fail(daemon, failed);
    } else {
        recover_start(daemon->store, home(daemon), on_recovered, daemon);
    }
}

static struct server_limits limits_of(const struct config_limits *from, bool needs_token) {
    return (struct server_limits){
        .fields_max = from->fields,
        .fields_max_bytes = from->field_bytes,
        .target_max_bytes = from->target_bytes,
        .streams_max = from->streams,
        .streams_max_stranger = needs_token ? from->streams_stranger : 0,
        .connections_max = from->connections,
        .connection_max_bytes = from->connection_bytes,
        .header_timeout_ms = from->header_ms,
        .write_stall_ms = from->write_stall_ms,
        .idle_timeout_ms = from->idle_ms,
        .keepalive_ms = from->keepalive_ms,
        .keepalive_timeout_ms = from->keepalive_answer_ms,
    };
}

static bool listen_on(struct daemon *daemon, struct str name, struct str address,
                      const struct server_limits *limits, exchange_start_fn *on_request,
                      struct err *e) {
    if (address.len == 0) return true;
    struct listener_options options = {name, address, limits, on_request, daemon};
    return server_listen(daemon->server, &options, e);
}

static bool listen_on_all(struct daemon *daemon, struct err *e) {
    const struct config *config = daemon->config;
    daemon->http_limits = limits_of(&config->limits, false);
    daemon->grpc_limits = limits_of(&config->limits, daemon->keys != NULL);
    return listen_on(daemon, STR("http"), config->listen.http, &daemon->http_limits, on_http,
                     e) &&
           listen_on(daemon, STR("grpc"), config->listen.grpc, &daemon->grpc_limits, on_grpc,
                     e);
}

static bool add_key(struct daemon *daemon, struct str key, struct err *e) {
    bool trimmed;
    if (key.len == 0) return true;
    if (!daemon->keys) {
        daemon->keys =
            token_keys_new(daemon->config->tokens.strict ? TOKEN_STRICT : TOKEN_LENIENT,
                           (int64_t)daemon->config->limits.token_window_ms / 1000);
    }
    return token_keys_add(daemon->keys, key, &trimmed, e);
}

static bool prepare(struct daemon *daemon, struct err *e) {
    const struct config *config = daemon->config;
    struct str key = daemon->options->grpc_key;
    if (!team_assemble(config, &daemon->team, e)) return false;
    if (!add_key(daemon, key.len ? key : config->tokens.key, e)) return false;
    if (!add_key(daemon, config->tokens.key_previous, e)) return false;
    team_fill(&daemon->team, &daemon->engine);
    daemon->engine.limits = (struct run_limits){
        .model_calls_max = (unsigned)config->limits.model_calls,
        .tool_calls_max = (unsigned)config->limits.tool_calls,
        .tools_at_once = (unsigned)config->limits.tools_at_once,
        .reply_max_bytes = config->limits.reply_bytes,
        .memory_max_bytes = config->limits.run_bytes,
        .turn_max_ms = config->limits.turn_ms,
    };
    daemon->converse = (struct converse_settings){
        .keys = daemon->keys,
        .lenient = config->converse.lenient,
        .errors_as_text = config->converse.errors_as_text,
        .message_max_bytes = config->limits.message_bytes,
    };
    daemon->runtime.token = config->tokens.auth;
    daemon->runtime.workspace = config->http.workspace;
    daemon->runtime.agent_name = config->agent.name;
    daemon->runtime.agent_version = config->agent.version;
    daemon->runtime.body_max_bytes = config->limits.body_bytes;
    return true;
}

static void make_workers(struct daemon *daemon) {
    daemon->worker_count = daemon->config->threads;
    daemon->workers = mem_zero(daemon->worker_count, sizeof(struct worker));
    struct loop **loops = mem_zero(daemon->worker_count, sizeof(struct loop *));
    for (size_t i = 0; i < daemon->worker_count; i++) {
        worker_init(&daemon->workers[i], daemon);
        loops[i] = daemon->workers[i].loop;
    }
    daemon->server = server_new(loops, daemon->worker_count);
    free(loops);
}

static void open_store(struct daemon *daemon) {
    daemon->store = store_open(&(struct store_options){.folder = daemon->config->data,
                                                       .durability = daemon->config->durability,
                                                       .loop = home(daemon),
                                                       .on_open = on_open,
                                                       .ctx = daemon});
    daemon->engine.sessions = session_table_new(daemon->store);
    for (size_t i = 0; i < daemon->worker_count; i++) {
        worker_furnish(
            &daemon->workers[i],
            &(struct worker_options){.engine = &daemon->engine,
                                     .store = daemon->store,
                                     .converse = &daemon->converse,
                                     .runtime = &daemon->runtime,
                                     .write_stall_ms = daemon->config->limits.write_stall_ms});
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
    session_table_free(daemon->engine.sessions);
    free(daemon->workers);
    token_keys_free(daemon->keys);
    team_done(&daemon->team);
    free(daemon);
}

/* A worker that never served has no connection and no run: the loop turns until the store
 * is closed and all has been told. */
bool daemon_run(const struct daemon_options *options, struct err *e) {
    struct daemon *daemon = MEM_NEW(struct daemon);
    daemon->options = options;
    daemon->config = options->config;
    daemon->phase = PHASE_STARTING;
    make_workers(daemon);
    timer_init(&daemon->cut, home(daemon), on_cut, daemon);
    if (!prepare(daemon, e) || !listen_on_all(daemon, e)) {
        server_free(daemon->server);
        free_daemon(daemon);
        return false;
    }
    watch_signals(daemon);
    open_store(daemon);
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
    for (size_t i = 0; i < daemon->engine.agent_count; i++) {
        if (i) buf_append(out, i == 1 ? STR(" → ") : STR(", "));
        buf_append(out, daemon->engine.agents[i].slug);
    }
}
