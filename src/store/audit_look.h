/* audit_look: whether the chain of the audit log is whole, for a request to a running daemon.
 *
 * The chain is computed again on the store's thread, which writes nothing meanwhile. So a log of more
 * than AUDIT_LOOK_MAX_BYTES is not looked at here; `weir audit verify` does it beside the daemon.
 *
 * Memory   an answer is borrowed during the callback.
 * Threads  requests and answers are on the caller's loop; the work is on the store's thread.
 * Source   audit_verify.h
 */
#ifndef WEIR_STORE_AUDIT_LOOK_H
#define WEIR_STORE_AUDIT_LOOK_H

#include "store/audit_verify.h"
#include "store/store.h"

#define AUDIT_LOOK_MAX_BYTES (4 * MIB)
#define AUDIT_LOOK_FAULTS 20 /* that are kept with their text */

struct audit_look_fault {
    uint64_t seq;
    char text[200];
};

struct audit_looked {
    bool looked; /* false: it is too long */
    struct audit_verdict verdict;
    struct audit_look_fault faults[AUDIT_LOOK_FAULTS]; /* of verdict.faults */
    size_t fault_count;
};

/* Called once, on `loop`, never before audit_look_start() returns. */
typedef void audit_looked_fn(const struct audit_looked *looked, const struct err *failed,
                             void *ctx);

struct audit_look_ask; /* a request on its way; freed after `done` was called */

struct audit_look_ask *audit_look_start(struct store *store, struct loop *loop,
                                        audit_looked_fn *done, void *ctx);

/* Stop waiting: `done` will not be called. NULL is fine. */
void audit_look_forget(struct audit_look_ask *ask);

#endif
