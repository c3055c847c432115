/* store_inner: what a store is made of. Private to store.c, queue.c and serve.c.
 *
 *     store.c   opens and closes, and starts the thread
 *     queue.c   loops ask, the thread takes
 *     serve.c   the thread does it, by core.h
 *     reply.c   the answers go back to the loops
 *
 * Threads  `shared` under its lock; `core` is the thread's; the rest does not change while the
 *          thread runs, or is atomic.
 */
#ifndef WEIR_STORE_STORE_INNER_H
#define WEIR_STORE_STORE_INNER_H

#include "store/core.h"
#include "store/task.h"

#include <pthread.h>
#include <stdatomic.h>

#define STORE_MAGIC 0x65726f74u

struct opening;
struct replica_watch;
struct searches;

struct store {
    unsigned magic;
    struct store_options options; /* its texts are in `texts` */
    struct buf texts;
    struct replica_watch *watch; /* NULL: the store is this process's alone */
    struct changes *changes;
    _Atomic size_t living;   /* replicas; 0: not counted yet */
    struct opening *opening; /* set until it was reported */
    pthread_t thread;
    bool begun; /* there is a thread */
    struct session_filter *known;
    _Atomic bool knows_all;        /* `known` is complete: it has every stored session */
    _Atomic uint64_t keys_kept_ms; /* 0: for ever */
    _Atomic size_t insisting;      /* tasks that insist and are not answered yet */
    struct audit_limits audit;
    struct core core; /* used only by the thread */
    struct long_reader *reader;
    struct searches *searches; /* of a server; NULL: SQLite */
    uint64_t epoch;
    struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct store_write *writes, **last_write;
        struct store_load *loads, **last_load;
        struct store_task *tasks, **last_task;
        bool closing, asleep;
    } shared;
};

/* --- queue.c: what loops ask, until the thread takes it --------------------------------------- */

/* The public side is store_write(), store_load() and store_run(). Requests are their callers'; they
 * are chained by their own `next`. What follows is for the store's thread. */

/* In place of a number of milliseconds. */
#define NO_SLEEP INT64_C(0)
#define FOR_EVER INT64_C(-1)

/* What the thread has taken from the queue and not finished. */
struct work {
    struct store_write *writes, **last_write;
    struct store_load *loads;
    struct store_task *tasks;               /* run after `writes` */
    struct store_task *again, **last_again; /* that insist; run before `tasks` */
    /* The writes and tasks that were being committed when a sync failed. */
    struct store_write *doubted_writes;
    struct store_task *doubted_tasks;
    uint64_t reopen_ms; /* when to try again */
    struct err stopped; /* why it could not be reopened */
    bool closing;
    int64_t pause_ms;  /* the longest sleep */
    uint64_t prune_ms; /* when the next round of deleting old keys begins */
};

/* No work yet. */
void work_init(struct work *work, int64_t pause_ms);

/* Take everything from the queue; sleep if it is empty. False: the store is closing and all
 * work is done. */
bool queue_take(struct store *store, struct work *work);

/* Sleep, whatever is asked. False: the store is closing. */
bool queue_wait_for_close(struct store *store, int64_t at_most_ms);

/* --- serve.c: what the thread does ------------------------------------------------------------ */

/* Serve an open store until it is closed: commits, questions, tasks, and what can wait until it is
 * idle; and the way back after a failed sync. */
void serve_requests(struct store *store);

/* Refuse all requests until the store is closed. */
void serve_refuse(struct store *store, const struct err *why);

#endif
