/* slot: how many calls run at once in a pool, and how many of one app, over all replicas.
 *
 * A row for each call that waits or runs. A call that waits keeps its place in the line: it gets a
 * slot when the limits have room for it beside the calls that run and the ones that wait
 * before it. A call whose app has no room, or background work beyond its limit, delays no
 * other call. Who is more urgent than others is decided in each process, before it asks. All
 * transactions that write follow one another (core_replica.h), so of two calls that ask for
 * the last slot exactly one gets it. The rows of a replica that died go when
 * another one takes over (takeover.h).
 *
 * Memory   the caller keeps a request, and its texts, until on_done has run.
 * Threads  the caller's loop.
 */
#ifndef WEIR_STORE_SLOT_H
#define WEIR_STORE_SLOT_H

#include "store/task.h"

struct slot_request;
typedef void slot_fn(struct slot_request *request, const struct err *failed, void *ctx);

struct slot_request {
    struct store_task task;
    int64_t number; /* the caller's own: no other call of this process has it */
    struct str pool, app;
    bool background;
    unsigned all_max, app_max, background_max;
    slot_fn *on_done;
    void *ctx;
    bool held; /* the answer: it may run; harmless if it had the slot before. Else it waits */
};

/* Ask for a slot, or ask again. */
void slot_ask(struct store *store, struct loop *home, struct slot_request *request);

/* Give it back, or leave the line; the others hear of it. Frees itself; harmless if there is
 * none. */
void slot_give_back(struct store *store, struct loop *home, int64_t number);

#endif
