/* session_load: read what a session remembers from the store.
 *
 * Memory   the names are copied.
 * Threads  any; on_loaded comes on a loop of the store or on `home`.
 */
#ifndef WEIR_SESSION_SESSION_LOAD_H
#define WEIR_SESSION_SESSION_LOAD_H

#include "session/history.h"
#include "session/pending_approvals.h"
#include "store/store.h"

/* `history` belongs to the receiver. NULL: `why` says why it could not be read. */
typedef void session_loaded_fn(struct history *history, const struct err *why, void *ctx);

/* Call it without a lock: the answer may arrive before this returns. */
void session_load(struct store *store, const struct session_name *name, struct loop *home,
                  session_loaded_fn *on_loaded, void *ctx);

#endif
