/* takeover: what a dead replica held becomes this one's.
 *
 *     its time is over ─▶ fenced ─▶ the tables have all its rows
 *         ─▶ its unfinished runs are ours, its leases wait, its row is gone: one transaction
 *         ─▶ its runs are ended, or wait here ─▶ its leases are free
 *
 * A lease that waits has the number of this replica below zero. A replica that was fenced after
 * the tables were filled keeps its row, and with it all it held, until the next takeover.
 *
 * An unfinished run belongs to the replica that wrote its last row, unless the table `moved`
 * names another one. Of several replicas that take over at once, one gets
 * all that a dead replica held.
 *
 * Memory   the caller keeps the struct until on_done has run, then ends it with
 *          takeover_done().
 * Threads  the caller's loop.
 */
#ifndef WEIR_STORE_TAKEOVER_H
#define WEIR_STORE_TAKEOVER_H

#include "store/task.h"

struct takeover_run {
    uint64_t run, last_seq;
};

struct takeover;
typedef void takeover_fn(struct takeover *takeover, const struct err *failed, void *ctx);

struct takeover {
    struct store_task task;
    struct store *store;
    takeover_fn *on_done;
    void *ctx;
    /* The answer. */
    struct takeover_run *runs;
    size_t run_count;
    uint64_t newest_run; /* the highest id of all runs in the store; 0: there is none */
    bool doubted; /* it failed, and still they may be this replica's now: it is not known */
};

void takeover_start(struct store *store, struct loop *home, struct takeover *takeover);
void takeover_done(struct takeover *takeover);

/* The runs were taken up: free the leases that wait. */
void takeover_free_leases(struct store *store, struct loop *home);

#endif
