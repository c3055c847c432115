/* serve: what the store's thread does: commits, questions, tasks, and what can wait until it is
 * idle; and the way back after a failed sync. Private to store/.
 *
 * Threads  the store's.
 */
#ifndef WEIR_STORE_SERVE_H
#define WEIR_STORE_SERVE_H

#include "store/store.h"

/* Serve an open store until it is closed. */
void serve_requests(struct store *store);

/* Refuse all requests until the store is closed. */
void serve_refuse(struct store *store, const struct err *why);

#endif
