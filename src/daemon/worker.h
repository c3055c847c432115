/* worker: one loop and everything that lives on it: an instance of each contract and a site of
 * each listener.
 *
 * Memory   the daemon owns its workers.
 * Threads  the daemon's thread starts, stops and frees workers; the rest runs on the worker's
 *          own loop. The first worker's loop runs on the daemon's thread.
 */
#ifndef WEIR_DAEMON_WORKER_H
#define WEIR_DAEMON_WORKER_H

#include "daemon/listening.h"
#include "daemon/site.h"

#include <pthread.h>

struct daemon;

struct worker {
    struct loop *loop;
    struct keeper *keeper;
    struct rate_limits *rates; /* the daemon's */
    struct audit_writer *audit;
    struct config_snapshot *snapshot; /* for new turns; a reference */
    struct run_host host;
    struct contract_table contracts;
    const struct presence *presences; /* one per contract */
    struct contract_loop resources;   /* given to the instances */
    void **instances;                 /* one per contract; NULL: the contract is off */
    const struct listening *listenings;
    struct site **sites; /* one per listener; NULL: it is off */
    size_t site_count;
    pthread_t thread;
    bool has_thread;
    struct daemon *daemon; /* receives its reports */
    struct mail report;
};

struct worker_options {
    struct config_snapshot *snapshot;
    struct store *store;
    struct http_pool *pool;
    struct rate_limits *rates;
    const struct presence *presences; /* borrowed, like listenings */
    const struct listening *listenings;
    size_t listening_count;
};

/* In steps, because the store needs a loop and the worker needs the store. */
void worker_init(struct worker *worker, struct daemon *daemon);
void worker_audit(struct worker *worker, struct store *store);
void worker_prepare(struct worker *worker, const struct worker_options *options);

/* Give it a thread of its own. */
MUST_CHECK bool worker_start(struct worker *worker, struct err *e);

/* The last step on its loop. No run is left that could send a request. */
void worker_leave(struct worker *worker, struct http_pool *pool,
                  struct process_pool *processes);

/* After its loop has stopped. */
void worker_done(struct worker *worker);

/* --- on the worker's own loop ------------------------------------------------------------- */

/* Use this snapshot for new turns from now on. */
void worker_use(struct worker *worker, struct config_snapshot *snapshot);

void worker_serving(struct worker *worker); /* probes report SERVING */
void worker_health(struct worker *worker);  /* a contract's health has changed */
void worker_stopping(struct worker *worker);

/* The time to finish is over. Cut the calls that are still open. */
void worker_cut(struct worker *worker);

/* No connection is left. Detached work ends or is left to the next process. */
void worker_finish(struct worker *worker);

/* How to resume jobs that a dead process left. take is NULL if no contract has jobs. */
struct recover_jobs worker_jobs(struct worker *worker);

#endif
