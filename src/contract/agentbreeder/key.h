/* key: the idempotency key of a request. Private to this contract.
 *
 * Memory   borrowed from the request.
 * Threads  the call's loop.
 * Source   contracts/agentbreeder.md 1.2: X-Idempotency-Key, and Idempotency-Key as upstream's
 *          proxy says it.
 */
#ifndef WEIR_CONTRACT_AGENTBREEDER_KEY_H
#define WEIR_CONTRACT_AGENTBREEDER_KEY_H

#include "route/route.h"

/* The key, or empty.
 * errors  ERR_MALFORMED it is too long, empty, not printable, or there are two */
MUST_CHECK bool key_take(struct route_call *call, struct str *ret, struct err *e);

#endif
