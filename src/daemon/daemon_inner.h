/* daemon_inner: what the files of the daemon share.
 *
 *     daemon.c           makes everything, runs until all is over, frees it
 *     daemon_reload.c    reads the configuration again while it serves
 *     daemon_recovery.c  takes up what a dead process left: its own before it, or another replica
 *     daemon_stop.c      signals, and the way from serving to nothing left
 *
 * Private to them.
 *
 * Memory   daemon_run() owns it.
 * Threads  the daemon's own loop, except where a function says otherwise.
 */
#ifndef WEIR_DAEMON_DAEMON_INNER_H
#define WEIR_DAEMON_DAEMON_INNER_H

#include "base/states.h"
#include "daemon/clients.h"
#include "daemon/config_snapshot.h"
#include "daemon/daemon.h"
#include "daemon/heap_rest.h"
#include "daemon/reload.h"
#include "daemon/worker.h"
#include "server/server.h"
#include "store/sweep.h"
#include "turn/answer_box.h"
#include "turn/cancel_box.h"
#include "turn/recover.h"

#include <stdatomic.h>
#include <uv.h>

enum daemon_phase { DAEMON_STARTING, DAEMON_SERVING, DAEMON_STOPPING, DAEMON_PHASE_COUNT };

extern const struct state daemon_phases[DAEMON_PHASE_COUNT];

struct daemon {
    const struct daemon_options *options;
    const struct config *config;
    enum daemon_phase phase;          /* written by daemon_move() only */
    struct config_snapshot *snapshot; /* the newest; a reference */
    struct process_pool *processes;
    struct mcp_hub *mcp;
    struct http_pool *pool; /* for the requests of models and tools */
    struct bucket *bucket;  /* for artifacts and files; NULL: none is set */
    struct sweep *sweep;    /* with a bucket, while it serves */
    struct session_table *sessions;
    struct ledger *ledger;
    struct rate_limits *rates; /* of requests */
    struct store *store;
    struct presences presences;        /* of the contracts */
    struct contract_process resources; /* of the contracts */
    struct listening *listenings;
    size_t listening_count;
    struct recovery *recovery; /* before it serves, and when another replica has died */
    struct server *server;
    struct worker *workers;
    size_t worker_count;
    size_t pending;     /* workers that have not reported */
    struct mail turned; /* the loop has turned once more, before the store begins */
    unsigned turns;
    struct timer cut;
    struct heap_rest *heap_rest;
    struct answer_box *answers; /* among replicas, as the next one */
    struct cancel_box *cancels;
    struct clients *clients; /* NULL: it was not started for commands */
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

/* The loop of the daemon's own thread, which is the first worker's. */
static inline struct loop *daemon_home(const struct daemon *daemon) {
    return daemon->workers[0].loop;
}

void daemon_move(struct daemon *daemon, enum daemon_phase next);

/* What every snapshot is made with, but for its config. */
struct config_snapshot_options daemon_snapshot_options(const struct daemon *daemon);

/* Every worker does this on its own loop; NULL: it uses the newest snapshot, of which each order
 * has a reference. Orders of one thread arrive in their order. */
typedef void order_fn(struct worker *worker);
void daemon_order(struct daemon *daemon, order_fn *fn);

/* --- the audit log ------------------------------------------------------------------------ */

#define DAEMON_LIFECYCLE STR("runtime.lifecycle")
#define DAEMON_CONFIG STR("runtime.config")

/* A record of the daemon's own life, in one of these domains. */
void daemon_audit(struct daemon *daemon, struct str domain, const char *operation,
                  enum err_code outcome, const char *detail);

/* A record of the newest snapshot. */
void daemon_audit_config(struct daemon *daemon, const char *operation);

/* --- daemon_reload.c ---------------------------------------------------------------------- */

/* Read the settings again: now, or as soon as it can be done. */
void daemon_reload(struct daemon *daemon);

/* For mcp_hub_watch(): a server lists other tools. ctx is the daemon. */
void daemon_on_tools_changed(void *ctx);

/* Do what came when it could not be handled. */
void daemon_catch_up(struct daemon *daemon);

/* --- daemon_recovery.c -------------------------------------------------------------------- */

/* Take up what a dead process left in the store; done() reports with the daemon as its ctx. */
void daemon_recover(struct daemon *daemon, recovered_fn *done);
void daemon_log_recovered(const struct daemon *daemon, const struct recovered *found);

/* For struct store_options, called on the store's thread: another replica has died; this one was
 * taken for dead. ctx is the daemon. */
void daemon_on_died(void *ctx);
void daemon_on_lost(void *ctx);

/* --- daemon_stop.c ------------------------------------------------------------------------ */

/* SIGTERM and SIGINT stop it, SIGHUP reads its settings again. main() has blocked them; one that
 * came since is delivered in the loop's first turn. */
void daemon_watch_signals(struct daemon *daemon);

/* For clients_start(): stop as on SIGTERM. ctx is the daemon. */
void daemon_on_no_clients(void *ctx);

/* For the timer `cut`: the deadline is near. ctx is the daemon. */
void daemon_on_cut(void *ctx);

/* It cannot serve, or not any longer: stop at once, and daemon_run() returns `why`. */
void daemon_fail(struct daemon *daemon, const struct err *why);

#endif
