/* memory: the Memory service, with which people see and edit what their agents remember.
 *
 * Three unary calls over the table of store/memory.h. The token names the workspace. A request
 * may repeat it, but a different one is refused. Without signing keys the request's workspace
 * is used.
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
struct memory_instance {
    const struct converse_settings *settings; /* same callers and limits as Converse */
    struct store *store;
};

/* Fill a service. Its methods and names are constant; `instance` is borrowed. Call this again
 * when the instance has new settings. */
void memory_service(struct memory_instance *instance, struct rpc_service *ret);

#endif
