/* task: something else that the store's thread does, beside the log.
 *
 * Memories, artifacts, keys of requests: small tables with a life of their own, not events of
 * a run. Whoever has one brings its statements here; they run on the store's thread, in a
 * transaction of their own that is on disk (as durable as configured) before on_done.
 *
 * Memory   the caller keeps the task until on_done has run on `home`.
 * Threads  store_run(): any loop. fn: the store's.
 */
#ifndef WEIR_STORE_TASK_H
#define WEIR_STORE_TASK_H

#include "store/database.h"
#include "store/store.h"

struct store_task;
typedef void store_task_done_fn(struct store_task *task, const struct err *failed, void *ctx);

struct store_task {
    struct store_task *next; /* the store's */
    struct mail mail;        /* the store's */
    struct err failed;       /* the store's */
    bool reads_only;         /* no transaction is begun for it */
    bool needs_tables;       /* all rows of the log are in the tables before it */
    /* What it deletes must not be found in the files afterwards: once it is durable the
     * write-ahead log is folded in and cut; if not now, then as soon as that can be done. */
    bool purges;
    /* False: what it did is undone, and on_done hears `e`. It may run twice when the first
     * commit failed, so it must not consume its input. */
    bool (*fn)(struct database *db, void *ctx, struct err *e);
    struct loop *home;
    store_task_done_fn *on_done; /* failed is NULL once it is durable */
    void *ctx;
};

/* In the order of one loop's calls, and after the writes that were queued before it. */
void store_run(struct store *store, struct store_task *task);

/* The pages that it keeps in memory are not needed for a while: give their memory back. */
void store_rest(struct store *store, struct loop *home);

#endif
