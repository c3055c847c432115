/* worker: one loop and everything that lives on it: a desk of each contract, and a site of each
 * listener.
 *
 * Memory   the daemon owns its workers.
 * Threads  started, stopped and freed by the thread of the daemon; the rest runs on the
 *          worker's own loop. The first worker's loop is the daemon's thread.
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
    struct edition *edition; /* what new turns begin with; a reference */
    struct run_host host;
    struct contract_table contracts;
    const struct presence *presences; /* of each contract */
    struct contract_loop means;       /* of the desks */
    void **desks;                     /* of each contract; NULL: it is not there */
    const struct listening *listenings;
    struct site **sites; /* of each listener; NULL: it is off */
    size_t site_count;
    pthread_t thread;
    bool has_thread;
    struct daemon *daemon; /* whom it reports to */
    struct mail report;
};

struct worker_options {
    struct edition *edition;
    struct store *store;
    struct http_pool *pool;
    const struct presence *presences; /* borrowed, as the next one */
    const struct listening *listenings;
    size_t listening_count;
};

/* Two steps, because the store wants a loop and the worker wants the store. */
void worker_init(struct worker *worker, struct daemon *daemon);
void worker_furnish(struct worker *worker, const struct worker_options *options);

/* Give it a thread of its own. */
MUST_CHECK bool worker_start(struct worker *worker, struct err *e);

/* The last thing on its loop: no run is left to ask anybody. */
void worker_leave(struct worker *worker, struct http_pool *pool);

/* After its loop has stopped. */
void worker_done(struct worker *worker);

/* --- on the worker's own loop ------------------------------------------------------------- */

/* New turns begin with this edition from now on. */
void worker_use(struct worker *worker, struct edition *edition);

void worker_serving(struct worker *worker); /* probes hear SERVING */
void worker_health(struct worker *worker);  /* a contract became healthy, or not any more */
void worker_stopping(struct worker *worker);

/* The time to end by themselves is over: pre-empt what still runs. */
void worker_cut(struct worker *worker);

/* No connection is left: what runs detached ends, or is left for the next process. */
void worker_finish(struct worker *worker);

/* Goes on with jobs that a dead process left; take NULL: no contract does. */
struct recover_jobs worker_jobs(struct worker *worker);

#endif
