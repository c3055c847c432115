/* place: the running turns of each workspace, over all replicas.
 *
 * A row for each turn that has a place. Commits of all replicas follow one another, so of two that
 * ask for the last place exactly one gets it. A replica that died has none: who takes over removes
 * its rows (takeover.h).
 *
 * Memory   the caller keeps a request, and its text, until on_done has run.
 * Threads  the caller's loop.
 */
#ifndef WEIR_STORE_PLACE_H
#define WEIR_STORE_PLACE_H

#include "store/task.h"

struct place_request;
typedef void place_fn(struct place_request *request, const struct err *failed, void *ctx);

struct place_request {
    struct store_task task;
    uint64_t run;
    struct str workspace;
    unsigned max; /* of the workspace */
    place_fn *on_done;
    void *ctx;
    bool taken; /* the answer: the run has a place; harmless if it had it before */
};

void place_take(struct store *store, struct loop *home, struct place_request *request);

/* Those who wait for this workspace's hear of it. Frees itself; harmless if there is none. */
void place_give_back(struct store *store, struct loop *home, uint64_t run,
                     struct str workspace);

/* The change that is reported then. */
uint64_t place_change(struct str workspace);

#endif
