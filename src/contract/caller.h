/* caller: who calls a route that has no token of its own.
 *
 * Such routes take the tokens of every contract. If the operator has configured no token or key,
 * only peers on this machine are admitted.
 *
 * Memory   the identity's text points into itself or into the settings of a contract: do not copy
 *          a struct contract_caller.
 * Threads  the loop of the call.
 * Source   checks.md K6, K23.
 */
#ifndef WEIR_CONTRACT_CALLER_H
#define WEIR_CONTRACT_CALLER_H

#include "contract/contract.h"

struct contract_caller {
    bool proved; /* by a token; else a peer on this machine, whom nothing names */
    struct contract_identity identity; /* if proved */
};

/* False: *ret_failure says why the call is refused. */
MUST_CHECK bool contract_caller_find(struct route_call *call,
                                     const struct contract_callers *callers,
                                     struct contract_caller *ret,
                                     struct route_failure *ret_failure);

/* The same with a token that came in another way; empty: none did. */
MUST_CHECK bool contract_caller_of(struct route_call *call,
                                   const struct contract_callers *callers, struct str token,
                                   struct contract_caller *ret,
                                   struct route_failure *ret_failure);

/* The refusal of an unknown token. */
struct route_failure contract_caller_unknown(void);

#endif
