/* daemon_stop: the daemon stops, in this order:
 *
 *     signal ─▶ listeners close ─▶ connections end, or are cut ─▶ loops finish ─▶ the store closes
 */
#include "daemon/daemon_inner.h"

#include "base/log.h"
#include "daemon/notify.h"
#include "store/task.h"

#include <signal.h>
#include <unistd.h>

/* How long before the shutdown deadline turns are cut, so that they can still report it. */
#define CUT_BEFORE_MS 500

#define SECOND_SIGNAL_MS 50

static void order_exit(struct worker *worker) {
    worker_leave(worker, worker->daemon->pool, worker->daemon->processes);
    loop_stop(worker->loop);
}

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
    daemon_order(daemon, order_exit);
}

static void on_report(void *ctx) {
    struct worker *worker = ctx;
    struct daemon *daemon = worker->daemon;
    if (--daemon->pending == 0) all_kept(daemon);
}

static void daemon_stop_on_kept(void *ctx) {
    struct worker *worker = ctx;
    loop_post(daemon_home(worker->daemon), &worker->report, on_report, worker);
}

static void on_audited(void *ctx) {
    struct worker *worker = ctx;
    keeper_flush(worker->keeper, daemon_stop_on_kept, worker);
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
    daemon_audit(daemon, DAEMON_LIFECYCLE, "stopped", daemon->forced ? ERR_ABORTED : ERR_NONE,
                 daemon->forced ? "forced=true" : "forced=false");
    timer_stop(&daemon->cut);
    cancel_box_stop(daemon->cancels);
    daemon->cancels = NULL;
    session_table_many_end(daemon->sessions);
    heap_rest_stop(daemon->heap_rest);
    clients_stop(daemon->clients);
    sweep_stop(daemon->sweep);
    daemon->sweep = NULL;
    daemon->pending = daemon->worker_count;
    daemon_order(daemon, order_finish);
}

void daemon_on_cut(void *ctx) {
    struct daemon *daemon = ctx;
    daemon->forced = true;
    log_warning("the shutdown deadline is near: turns that still run are cut");
    daemon_order(daemon, worker_cut);
}

/* The listeners answer until the last existing connection is gone (server_stop). A daemon that
 * never served has no turns to cut. */
static void daemon_stop(struct daemon *daemon, uint64_t within_ms) {
    bool served = daemon->phase == DAEMON_SERVING;
    daemon_move(daemon, DAEMON_STOPPING);
    recover_stop(daemon->recovery);
    daemon->recovery = NULL;
    answer_box_stop(daemon->answers);
    daemon->answers = NULL;
    presences_stopping(&daemon->presences);
    daemon_audit(daemon, DAEMON_LIFECYCLE, "stopping", daemon->failed.code,
                 daemon->failed.text);
    notify_stopping();
    daemon_order(daemon, worker_stopping);
    if (served)
        timer_start(&daemon->cut,
                    within_ms > 2 * CUT_BEFORE_MS ? within_ms - CUT_BEFORE_MS : within_ms / 2);
    server_stop(daemon->server, within_ms, on_server_stopped, daemon);
}

void daemon_fail(struct daemon *daemon, const struct err *why) {
    daemon->failed = *why;
    if (daemon->phase != DAEMON_STOPPING) daemon_stop(daemon, 0);
}

/* --- signals ------------------------------------------------------------------------------ */

static void stop_in_time(struct daemon *daemon, uint64_t now_ms) {
    uint64_t shutdown_ms = daemon->snapshot->config->limits.shutdown_ms;
    daemon->stopped_ms = now_ms;
    log_info("stopping; turns have %llu s to end", (unsigned long long)shutdown_ms / 1000);
    daemon_stop(daemon, shutdown_ms);
}

void daemon_on_no_clients(void *ctx) {
    struct daemon *daemon = ctx;
    if (daemon->phase != DAEMON_STOPPING)
        stop_in_time(daemon, loop_now_ms(daemon_home(daemon)));
}

static void on_signal(uv_signal_t *handle, int number) {
    struct daemon *daemon = handle->data;
    if (number == SIGHUP) {
        if (daemon->phase != DAEMON_STOPPING) daemon_reload(daemon);
        return;
    }
    uint64_t now_ms = loop_now_ms(daemon_home(daemon));
    if (daemon->phase == DAEMON_STOPPING) {
        /* A supervisor may signal both the process and its group. That counts as one signal. */
        if (now_ms - daemon->stopped_ms < SECOND_SIGNAL_MS) return;
        log_last(LOG_WARNING, "a second signal: stopping at once");
        _exit(1);
    }
    stop_in_time(daemon, now_ms);
}

void daemon_watch_signals(struct daemon *daemon) {
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    sigset_t watched;
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&watched);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        uv_signal_init(loop_uv(daemon_home(daemon)), &daemon->signals[i]);
        daemon->signals[i].data = daemon;
        uv_signal_start(&daemon->signals[i], on_signal, numbers[i]);
        sigaddset(&watched, numbers[i]);
    }
    pthread_sigmask(SIG_UNBLOCK, &watched, NULL);
}
