/* run_list: the runs in the store, newest first, a page at a time.
 *
 * A page looks at RUN_LIST_LOOK_MAX runs at most, whatever the filter. It may hold fewer than were
 * asked for, or none, and still have a next page (as sessions.h).
 *
 * Memory   requests are copied. A page is borrowed during the callback.
 * Threads  requests and answers are on the caller's loop; the work is on the store's thread.
 * Source   ids rise with time (record.h).
 */
#ifndef WEIR_STORE_RUN_LIST_H
#define WEIR_STORE_RUN_LIST_H

#include "store/store.h"

#define RUN_LIST_MAX 200
#define RUN_LIST_LOOK_MAX 5000

struct listed_run {
    uint64_t id, parent;
    int64_t state; /* 0 while it is open, else enum event_kind */
    int64_t started_ms, ended_ms;
    struct str workspace, user, session, contract;
};

struct run_list_filter {
    struct str workspace, user, session, contract; /* at == NULL: any */
    int64_t state;                                 /* as listed_run has it; -1: any */
    uint64_t before; /* runs with a lower id; 0: from the newest */
    size_t limit;    /* 1 to RUN_LIST_MAX */
};

struct run_list_page {
    const struct listed_run *runs;
    size_t count;
    uint64_t next; /* `before` of the next page; 0: there is none */
};

/* Called once, on `loop`, never before run_list_start() returns. failed: ERR_UNAVAILABLE */
typedef void run_listed_fn(const struct run_list_page *page, const struct err *failed,
                           void *ctx);

struct run_list_ask; /* a request on its way; freed after `done` was called */

struct run_list_ask *run_list_start(struct store *store, struct loop *loop,
                                    const struct run_list_filter *filter, run_listed_fn *done,
                                    void *ctx);

/* Stop waiting: `done` will not be called. NULL is fine. */
void run_list_forget(struct run_list_ask *ask);

#endif
