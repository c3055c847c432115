/* single: a task of one statement that only changes rows.
 *
 * Most of what a replica gives back or notes is one statement, for which nobody waits.
 *
 * Memory   the statement's values are copied; its SQL stays for the life of the process.
 * Threads  store_run_single(): any loop.
 */
#ifndef WEIR_STORE_SINGLE_H
#define WEIR_STORE_SINGLE_H

#include "base/log.h"
#include "store/task.h"

#define SINGLE_VALUES_MAX 8

struct store_single {
    const char *sql;
    struct sql_values values; /* SINGLE_VALUES_MAX at most */
    uint64_t changed;         /* what other replicas hear when it is committed: enum change */
    bool light, insists, needs_tables; /* as those of a task */
    const char *lost;     /* what is logged before the reason when it fails; NULL: nothing */
    enum log_level level; /* of that line; LOG_DEBUG if it is left out */
    /* Called once, on `home`, never before store_run_single() returns. NULL: nobody waits. */
    store_task_done_fn *done;
    void *ctx;
};

void store_run_single(struct store *store, struct loop *home,
                      const struct store_single *single);

#endif
