/* task: other work for the store's thread, beside the log.
 *
 * Memories and artifacts, for example, are small tables of their own and not events of a run.
 * Their modules run their statements as tasks: on the store's thread, in a transaction that is
 * on disk (as durable as configured) before on_done.
 *
 * Memory   the caller keeps the task until on_done has run on `home`, then it may be queued again.
 * Threads  store_run(): any loop. fn: the store's.
 */
#ifndef WEIR_STORE_TASK_H
#define WEIR_STORE_TASK_H

#include "store/database.h"
#include "store/store.h"

#include <stdatomic.h>

#define STORE_INSISTING_MAX 10000

struct store_task;
/* failed is NULL once it is durable. */
typedef void store_task_done_fn(const struct err *failed, void *ctx);

struct store_task {
    struct store_task *next; /* the store's */
    struct mail mail;        /* the store's */
    struct err failed;       /* the store's */
    struct loop *home;       /* the store's: given to store_run(), as ctx is */
    void *ctx;               /* the store's */
    _Atomic size_t *counted; /* the store's: those that insist */
    bool reads_only;         /* it needs no transaction */
    bool needs_tables;       /* project all rows of the log before it */
    /* It writes nothing whose loss the mark (mark.h) should tell; its commit adds no row to the
     * log. */
    bool light;
    /* Its caller does not wait to repeat it: after a failure of the store that kept nothing of it,
     * or may not have, it runs again, before all later tasks, until the store closes. It must
     * bear to be committed twice. */
    bool insists;
    /* What it takes is given back by a task that insists. While STORE_INSISTING_MAX of those wait, it
     * is refused at once (ERR_UNAVAILABLE), so that they do not become more and more while the store
     * is away. */
    bool takes;
    /* What it deletes must not be left in the files: once it is durable, the write-ahead log is
     * folded in and truncated, at once or as soon as possible. */
    bool purges;
    /* It only reads, and may take long: with a server it is one of the searches of this owner. It
     * begins after the tasks before it, and holds up none after it (searches.h). Stays until
     * on_done. Empty: none. */
    struct str search_of;
    /* False: its changes are undone, and on_done gets `e`. It may run again after a failed
     * commit, so it must not consume its input. */
    bool (*fn)(struct database *db, void *ctx, struct err *e);
    store_task_done_fn *on_done;
};

/* Queue a task, or refuse one that `takes`. Tasks of one loop run in order, after the writes queued
 * before them. Both functions of the task get `ctx`. */
void store_run(struct store *store, struct loop *home, struct store_task *task, void *ctx);

#endif
