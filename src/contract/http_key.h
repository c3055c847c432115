/* http_key: the idempotency key of an HTTP request.
 *
 * Memory   in the arena.
 * Threads  the call's loop.
 * Source   contracts/agentbreeder.md 1.2: X-Idempotency-Key, and Idempotency-Key, which
 *          upstream's proxy sends.
 */
#ifndef WEIR_CONTRACT_HTTP_KEY_H
#define WEIR_CONTRACT_HTTP_KEY_H

#include "base/arena.h"
#include "route/route.h"

/* Read the key; empty without one.
 * errors  ERR_MALFORMED it is too long, empty, not printable, or there are two;
 *         ERR_RESOURCE_EXHAUSTED the arena's limit */
MUST_CHECK bool http_key_take(struct route_call *call, struct arena *arena, struct str *ret,
                              struct err *e);

#endif
