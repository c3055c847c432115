/* readers: connections for what is only read, so that a read that takes long holds up no turn.
 *
 *     readers_ask ─▶ the owner's line ─▶ a free connection ─▶ on_done
 *
 * One read at a time runs on a connection. Owners take turns, and each has at most half of the
 * connections (base/sharing.h). A connection that is lost fails or repeats its own read and no
 * other. Connections are opened when they are needed.
 *
 * What is written stays on the one connection of struct queries, in the order in which it was
 * asked.
 *
 * Memory   as query.h.
 * Threads  the loop's.
 */
#ifndef WEIR_ORCHESTRATOR_READERS_H
#define WEIR_ORCHESTRATOR_READERS_H

#include "orchestrator/query.h"

struct readers;

struct readers_options {
    struct loop *loop;
    const struct postgres_options *database; /* copied; its texts stay */
    size_t connections;                      /* 1 to READERS_CONNECTIONS_MAX */
    size_t most;                             /* reads of one owner that run or wait */
};

#define READERS_CONNECTIONS_MAX 64
/* How long a read waits for a connection. */
#define READERS_WAIT_MS 10000

struct readers *readers_new(const struct readers_options *options);

/* Ask a query that only reads (QUERY_REPEATABLE).
 * errors  as postgres_ask(), and ERR_UNAVAILABLE it has waited too long; a read that its owner has
 *         too many of fails as readers_refused() tells */
void readers_ask(struct readers *readers, const struct read_owner *owner, struct query *query,
                 query_done_fn *done, void *ctx);

/* Whether it failed because its owner has too many reads that run or wait. The text is for the
 * caller: what, why and what to do. */
bool readers_refused(const struct err *failed);

/* All reads fail now, before this returns. No other may follow. */
void readers_close(struct readers *readers);
void readers_free(struct readers *readers); /* accepts NULL; after readers_close() */

#endif
