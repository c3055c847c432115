/* guard: who calls, for every service that takes tokens of the agent runtime.
 *
 * With keys, a call brings a token and is let in as the user of the workspace that it names.
 * Without, everybody is let in, as nobody yet: the request itself says who asks. Either way a
 * daemon may be pinned to one workspace, and to one user of it.
 *
 * Memory   keys and names are borrowed.
 * Threads  any; nothing here changes.
 * Source   contracts/crawbl.md 3; checks.md K1, K8 and group A.
 */
#ifndef WEIR_CONTRACT_CRAWBL_GUARD_H
#define WEIR_CONTRACT_CRAWBL_GUARD_H

#include "contract/crawbl/token.h"
#include "rpc/rpc.h"

struct guard {
    const struct token_keys *keys; /* NULL: nobody is asked for a token */
    struct str workspace, user;    /* the only identity served; empty: any */
};

/* For a service's authenticate(). Refusals are logged, never with the token.
 * errors  ERR_UNAUTHENTICATED no valid token; ERR_PERMISSION_DENIED not served here */
MUST_CHECK bool guard_authenticate(const struct guard *guard, struct rpc_call *call,
                                   struct rpc_identity *ret, struct err *e);

/* errors  ERR_PERMISSION_DENIED this daemon is pinned to others */
MUST_CHECK bool guard_serves(const struct guard *guard, struct str user, struct str workspace,
                             struct err *e);

#endif
