/* queue: what loops ask of the store, until its thread takes it. Private to store/.
 *
 * The public side is store_write(), store_load() and store_run().
 *
 * Memory   requests are their callers'; they are chained by their own `next`.
 * Threads  queue_take() and queue_wait_for_close(): the store's.
 */
#ifndef WEIR_STORE_QUEUE_H
#define WEIR_STORE_QUEUE_H

#include "store/store_inner.h"
#include "store/task.h"

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

#endif
