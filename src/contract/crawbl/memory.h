/* memory: the Memory service, for people who see and edit what their agents remember.
 *
 * Three unary calls over the table of store/memory.h. The workspace is that of the token; a
 * request may name it again, and naming another one is refused. Without signing keys the
 * request's own workspace counts.
 *
 * Memory   settings and store are borrowed for the life of the service.
 * Threads  each call belongs to its loop.
 * Source   contracts/crawbl.md 1.3; checks.md K8, K14, A5, I7.
 */
#ifndef WEIR_CONTRACT_CRAWBL_MEMORY_H
#define WEIR_CONTRACT_CRAWBL_MEMORY_H

#include "contract/crawbl/converse.h"
#include "store/store.h"

/* One loop's share of the service. */
struct memory_desk {
    const struct converse_settings *settings; /* the same callers, the same limits */
    struct store *store;
};

/* Fill a service whose methods and names are constant; `desk` is borrowed. Again when the
 * desk has other settings. */
void memory_service(struct memory_desk *desk, struct rpc_service *ret);

#endif
