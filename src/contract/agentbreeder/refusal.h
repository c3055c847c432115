/* refusal: a failure as this contract answers it over HTTP.
 *
 * Threads  the call's loop.
 * Source   contracts/agentbreeder.md; K31 of checks.md.
 */
#ifndef WEIR_CONTRACT_AGENTBREEDER_REFUSAL_H
#define WEIR_CONTRACT_AGENTBREEDER_REFUSAL_H

#include "contract/agentbreeder/acted.h"
#include "route/route.h"

/* Answer a failed run: 500, 503 for "try again", or what the request itself caused. `acted`: what it
 * did, so that it must not be tried again; NULL: nothing. */
void refusal_of_run(struct route_call *call, enum err_code code, struct str reason,
                    struct str message, const struct acted *acted);

/* Answer a failure before the turn was established. */
void refusal_of_request(struct route_call *call, const struct err *why);

/* For struct route_table: an agent never answers 429, so a request too many is a 503. */
void refusal_rated(struct route_call *call, const struct rate_room *room,
                   struct route_failure *refused);

#endif
