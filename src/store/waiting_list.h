/* waiting_list: the runs in the store that wait for a person, and what each asks.
 *
 * Of a run that waits, the store has that it is open, and its last row, which says what came last: a
 * question, perhaps with words after it that are kept for the model. Where those words are rows of
 * their own, the row before them is read too, until the question is found.
 *
 * The runs are looked at in pages, and all last rows of a page come with one statement. So the answer
 * takes two statements for each WAITING_PAGE runs, however many wait, and one more for each further
 * row back. One look reads WAITING_LOOK_MAX runs at most.
 *
 * Memory   requests are copied. The answer is borrowed during the callback.
 * Threads  requests and answers are on the caller's loop; the work is on the store's thread.
 */
#ifndef WEIR_STORE_WAITING_LIST_H
#define WEIR_STORE_WAITING_LIST_H

#include "store/store.h"

#define WAITING_PAGE 128
#define WAITING_LOOK_MAX (40 * WAITING_PAGE)
#define WAITING_TEXT_MAX_BYTES                                                                 \
    (4 * MIB) /* of all questions; the runs that have no room are left out */

struct waiting_list_filter {
    struct str workspace, user, session; /* at == NULL: any */
    size_t limit;
};

struct waiting_run {
    uint64_t run, seq; /* of the question */
    int64_t asked_unix_ms;
    struct str workspace, user, session;
    struct str agent, question, tool, args, guards; /* as struct event's approval has them */
};

struct waiting_list_page {
    const struct waiting_run *runs; /* lowest first */
    size_t count;
    bool more; /* there may be others */
};

/* Called once, on `loop`, never before waiting_list_start() returns. failed: ERR_UNAVAILABLE */
typedef void waiting_listed_fn(const struct waiting_list_page *page, const struct err *failed,
                               void *ctx);

struct waiting_list_ask; /* a request on its way; freed after `done` was called */

struct waiting_list_ask *waiting_list_start(struct store *store, struct loop *loop,
                                            const struct waiting_list_filter *filter,
                                            waiting_listed_fn *done, void *ctx);

/* Stop waiting: `done` will not be called. NULL is fine. */
void waiting_list_forget(struct waiting_list_ask *ask);

#endif
