/* searches: connections to a server for tasks that only read and may take long.
 *
 *     store_run ─▶ the store's thread ─▶ the owner's line ─▶ a thread with a connection ─▶ mail
 *
 * They do not hold up the store's thread, on which runs are written. Owners take turns, and each
 * has at most half of the connections (base/sharing.h). The store's thread passes a search on once
 * it has done what was asked before, so that a search sees it. A connection that is found lost is
 * opened again, and its search asked once more; no other search notices. One that a silent server
 * has held up fails, so that none lasts much longer than SEARCHES_RUN_MS.
 *
 * Private to store/.
 *
 * Memory   threads and connections are there from the first search on; an idle connection is
 *          closed after a while.
 * Threads  searches_ask(): the store's. searches_new() and searches_free(): one.
 */
#ifndef WEIR_STORE_SEARCHES_H
#define WEIR_STORE_SEARCHES_H

#include "store/task.h"

struct searches;

#define SEARCHES_CONNECTIONS_MAX 64
/* Searches of one owner that run or wait; more are refused (ERR_RESOURCE_EXHAUSTED). */
#define SEARCHES_OWNER_MAX 32
/* How long one may take, and how long it may wait for that. */
#define SEARCHES_RUN_MS 10000
#define SEARCHES_WAIT_MS 10000

/* url, schema: of the server (copied). connections: 1 to SEARCHES_CONNECTIONS_MAX. */
struct searches *searches_new(struct str url, struct str schema, size_t connections);

/* Waiting ones fail with ERR_UNAVAILABLE. Waits for running ones, which are not asked again.
 * NULL is fine. */
void searches_free(struct searches *searches);

/* Run a task with an owner (store_task.search_of).
 * errors  ERR_UNAVAILABLE it has waited too long; one that its owner has too many of fails as
 *         searches_refused() tells */
void searches_ask(struct searches *searches, struct store_task *task);

/* Whether it failed because its owner has too many that run or wait. */
bool searches_refused(const struct err *failed);

#endif
