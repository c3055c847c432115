/* worker: one loop and everything that lives on it.
 *
 * Memory   the daemon owns its workers.
 * Threads  started, stopped and freed by the thread of the daemon; the rest runs on the
 *          worker's own loop. The first worker's loop is the daemon's thread.
 */
#ifndef WEIR_DAEMON_WORKER_H
#define WEIR_DAEMON_WORKER_H

#include "contract/crawbl/memory.h"
#include "contract/weir/api.h"
#include "daemon/edition.h"
#include "rpc/health.h"
#include "rpc/reflection.h"

#include <pthread.h>

struct daemon;

/* Of the gRPC listener, in the order of worker.services; reflection comes behind them. */
enum { SERVICE_CONVERSE, SERVICE_MEMORY, SERVICE_HEALTH, WORKER_SERVICES };

struct worker {
    struct loop *loop;
    struct keeper *keeper;
    struct edition *edition; /* what new turns begin with; a reference */
    struct run_host host;
    struct house *house;
    struct converse_desk converse;
    struct memory_desk memory;
    struct runtime_desk runtime;
    struct health *health;
    struct reflection *reflection; /* NULL: switched off */
    struct rpc_service services[WORKER_SERVICES + REFLECTION_SERVICES];
    struct rpc_site *grpc;
    struct api_desk api;
    struct route_table api_table, table;
    const struct route_table *tables[2]; /* the contract's own comes last: it answers 404 */
    struct route_site *http;
    struct nimi_share *nimi; /* NULL: nobody listens for it */
    pthread_t thread;
    bool has_thread;
    struct daemon *daemon; /* whom it reports to */
    struct mail report;
};

struct worker_options {
    struct edition *edition;
    struct store *store;
    struct http_pool *pool;
    bool reflection;           /* tell clients what is served */
    struct nimi_runtime *nimi; /* NULL: nobody listens for it */
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
void worker_health(struct worker *worker); /* Nimi's runtime may be DEGRADED, or not any more */
void worker_stopping(struct worker *worker);

/* The time to end by themselves is over: pre-empt what still runs. */
void worker_cut(struct worker *worker);

#endif
