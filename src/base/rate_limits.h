/* rate_limits: the limits on requests of a process: of each address, of each token, to each agent.
 *
 * A door asks in this order, and stops at the first refusal. While a limit is off, asking costs
 * one load. Limits can change at any time: the buckets of a limit that changes begin full.
 *
 * Memory   owns three struct rate (base/rate.h), which bound it.
 * Threads  any; one lock, which is taken only while a limit is on.
 */
#ifndef WEIR_BASE_RATE_LIMITS_H
#define WEIR_BASE_RATE_LIMITS_H

#include "base/rate.h"

enum rate_scope { RATE_ADDRESS, RATE_TOKEN, RATE_AGENT, RATE_SCOPES };

struct rate_limits;

/* `limits` has a limit for each scope. */
struct rate_limits *rate_limits_new(const struct rate_limit limits[static RATE_SCOPES]);
void rate_limits_free(struct rate_limits *rates); /* accepts NULL */

void rate_limits_use(struct rate_limits *rates,
                     const struct rate_limit limits[static RATE_SCOPES]);

/* Take a token of `key`. False: the limit is reached; ret->wait_ms says when to come again.
 * With the limit off, or rates NULL, or an empty key: true, and ret->limit.count is 0. */
bool rate_limits_take(struct rate_limits *rates, enum rate_scope scope, struct str key,
                      uint64_t now_ms, struct rate_room *ret);

/* The same, with the refusal as an error: ERR_RESOURCE_EXHAUSTED and its retry_after_ms. */
MUST_CHECK bool rate_limits_admit(struct rate_limits *rates, enum rate_scope scope,
                                  struct str key, uint64_t now_ms, struct err *e);

/* The refusal of `scope`, which ends a sentence with when to come again. Returns false. */
bool rate_refuse(enum rate_scope scope, const struct rate_room *room, struct err *e);

/* "address", "token", "agent". */
struct str rate_scope_name(enum rate_scope scope);

/* "too many requests from this address"; and Retry-After, in whole seconds. */
struct str rate_scope_refusal(enum rate_scope scope);

static inline uint64_t rate_wait_s(const struct rate_room *room) {
    return (room->wait_ms + 999) / 1000;
}

#endif
