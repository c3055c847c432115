/* caller: who may use our own routes.
 *
 * A token of the agent runtime names a user and a workspace, and shows that user's runs.
 * AGENT_AUTH_TOKEN opens the HTTP workspace, every user of it. Without any token configured
 * only peers on this machine are let in, to everything; the key that the demo makes for itself
 * is not a configured one, but a token of it narrows what its caller sees.
 *
 * Threads  any; reads an edition.
 * Source   checks.md K6, K23.
 */
#ifndef WEIR_DAEMON_CALLER_H
#define WEIR_DAEMON_CALLER_H

#include "contract/weir/api.h"
#include "daemon/edition.h"

/* An api_identify_fn; ctx is a struct edition **, the worker's own. */
bool caller_identify(struct route_call *call, void *ctx, struct api_caller *ret,
                     struct route_failure *ret_failure);

#endif
