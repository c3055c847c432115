/* cancelling: the wish to cancel a run, on its way to the replica that has the run.
 *
 * A row for each unfinished run that is to be cancelled. It stays until the run is over, so that
 * the wish outlives the replica that has the run: the one that takes the run over finds it.
 * Which replica has a run is as in takeover.h.
 *
 *     wished at any replica ─▶ its replica hears of it, cancels the run ─▶ the run is over: gone
 *
 * Memory   as each call says.
 * Threads  the caller's loop.
 */
#ifndef WEIR_STORE_CANCELLING_H
#define WEIR_STORE_CANCELLING_H

#include "store/task.h"

#define CANCELLING_MAX 64 /* read at a time */
#define CANCELLING_WHY_BYTES 1024

struct cancelling_wish; /* a request on its way; freed after `done` was called */

/* Called once, never before cancelling_wish() returns. `wished`: the run is not over, and the wish
 * is on disk, this one or an earlier one. */
typedef void cancelling_wished_fn(bool wished, const struct err *failed, void *ctx);

/* Wish it. `why` is copied, cut to CANCELLING_WHY_BYTES.
 * done  NULL: no caller waits for the outcome, and a failure is only logged */
struct cancelling_wish *cancelling_wish(struct store *store, struct loop *home, uint64_t run,
                                        struct str why, cancelling_wished_fn *done, void *ctx);

/* `done` will not be called; the wish is still made. NULL is fine. */
void cancelling_forget(struct cancelling_wish *wish);

struct cancelling {
    uint64_t run;
    struct str why;
};

struct cancelling_list;
typedef void cancelling_fn(struct cancelling_list *list, const struct err *failed, void *ctx);

/* The caller keeps it until on_done has run, then ends it with cancelling_list_done(). */
struct cancelling_list {
    struct store_task task;
    uint64_t after; /* only runs with a greater id */
    cancelling_fn *on_done;
    void *ctx;
    /* The answer: the oldest runs first. */
    struct arena *arena;
    struct cancelling all[CANCELLING_MAX];
    size_t count;
    bool over; /* there are rows of runs that are over, of this replica or another */
};

/* Those for the unfinished runs of this replica. A full list may not be all: go on after its last. */
void cancelling_read(struct store *store, struct loop *home, struct cancelling_list *list);
void cancelling_list_done(struct cancelling_list *list);

/* Remove the rows of runs that are over: a run may end while a wish for it is on its way. Frees
 * itself. */
void cancelling_tidy(struct store *store, struct loop *home);

#endif
