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
    struct session_filter *known;
    _Atomic bool knows_all;        /* `known` is complete: it has every stored session */
    _Atomic uint64_t keys_kept_ms; /* 0: for ever */
    _Atomic size_t insisting;      /* tasks that insist and are not answered yet */
    struct audit_limits audit;
    struct core core; /* used only by the thread */
    struct reader *reader;
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

#endif
