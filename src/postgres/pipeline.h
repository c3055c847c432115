/* pipeline: an established connection, and the requests that were sent on it.
 *
 * Answers come in the order of the requests:
 *
 *     request  ─▶  [prepare] step 0 · [prepare] step 1 ... sync
 *     server   ─▶  [result]  result · [result]  result ... sync      all took effect
 *                  [result]  error  · aborted    aborted ... sync    none took effect
 *
 * Private to postgres/.
 *
 * Memory   owns the connection; borrows the requests until they are answered or taken back.
 * Threads  the loop's.
 */
#ifndef WEIR_POSTGRES_PIPELINE_H
#define WEIR_POSTGRES_PIPELINE_H

#include "postgres/libpq.h"
#include "postgres/postgres.h"

struct pipeline;

/* Never called before the function that causes it returns. After `broken` no other follows. */
struct pipeline_owner {
    /* The first request that was sent; it is not in the list any more. request->aborted says
     * whether it failed. */
    void (*answered)(struct postgres_request *request, void *ctx);
    /* The connection is of no use. `untouched`: the server said so before the first of the
     * requests that are not answered took effect. */
    void (*broken)(const struct err *why, bool untouched, void *ctx);
    void *ctx;
};

/* Takes the connection, which is in pipeline mode and does not block. */
struct pipeline *pipeline_new(struct loop *loop, PGconn *conn,
                              const struct pipeline_owner *owner);

/* Send a request. Bytes leave at the end of the loop's turn at the latest. */
void pipeline_send(struct pipeline *pipeline, struct postgres_request *request);

/* The requests that were sent and not answered, in their order. */
struct list *pipeline_sent(struct pipeline *pipeline);

/* No callback of the owner follows. closed(ctx), which may be NULL, is called once nothing of
 * it is left on the loop. pipeline_sent() must be empty. */
void pipeline_close(struct pipeline *pipeline, task_fn *closed, void *ctx);

#endif
