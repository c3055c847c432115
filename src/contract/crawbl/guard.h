/* guard: authenticate callers of every service that takes tokens of the agent runtime.
 *
 * With signing keys, a call must carry a token, and is admitted as the user and workspace that
 * the token names. Without keys every call is admitted without an identity, and the request
 * itself names the caller. Either way a daemon may be restricted to one workspace and to one
 * user of it.
 *
 * Memory   keys and names are borrowed.
 * Threads  any; nothing here changes.
 * Source   contracts/crawbl.md 3; checks.md K1, K8 and group A.
 */
#ifndef WEIR_CONTRACT_CRAWBL_GUARD_H
#define WEIR_CONTRACT_CRAWBL_GUARD_H

#include "rpc/rpc.h"
#include "wire/token.h"

struct crawbl_guard {
    const struct token_keys *keys; /* NULL: no token is required */
    struct str workspace, user;    /* the only identity served; empty: any */
};

/* Implements a service's authenticate(). Refusals are logged, never with the token.
 * errors  ERR_UNAUTHENTICATED no valid token; ERR_PERMISSION_DENIED not served here */
MUST_CHECK bool crawbl_guard_authenticate(const struct crawbl_guard *guard,
                                          struct rpc_call *call, struct rpc_identity *ret,
                                          struct err *e);

/* Check that this user and workspace are served here.
 * errors  ERR_PERMISSION_DENIED this daemon is restricted to another identity */
MUST_CHECK bool crawbl_guard_serves(const struct crawbl_guard *guard, struct str user,
                                    struct str workspace, struct err *e);

#endif
