/* bearer: who the caller is, and whether that is enough for the method.
 *
 * A call without a token is anonymous. A call with one has the token's subject, or is refused;
 * an invalid token never makes its caller anonymous. When the keys of the token's issuer must be
 * fetched first, the call waits: its message is held (call.h), and goes on once the keys
 * are there.
 *
 *     bearer_check ─▶ known | anonymous ─▶ bearer_authorize ─▶ ... ─▶ bearer_bind (the request)
 *          └▶ waits ─▶ nimi_resume() | refused
 *
 * Private to contract/nimi.
 *
 * Memory   the call keeps the texts.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 3.3 steps 2, 4 and 6, 5.1.
 */
#ifndef WEIR_CONTRACT_NIMI_BEARER_H
#define WEIR_CONTRACT_NIMI_BEARER_H

#include "contract/nimi/call.h"

/* The interceptor `authn`. With call->token_wait set afterwards the call waits.
 * errors  AUTH_TOKEN_INVALID */
MUST_CHECK bool bearer_check(struct nimi_call *call, struct fault *fault);

/* The interceptor `authz`: what the row's guard demands.
 * errors  AUTH_TOKEN_INVALID a token is needed; APP_SCOPE_FORBIDDEN it has not the capability */
MUST_CHECK bool bearer_authorize(struct nimi_call *call, struct fault *fault);

/* Make the subject of the request the caller's. What the request says itself must be the same.
 * errors  PRINCIPAL_UNAUTHORIZED it names another subject */
MUST_CHECK bool bearer_bind(struct nimi_call *call, void *request, struct fault *fault);

/* Whether the caller may see what was made for this subject. Everyone sees what an anonymous
 * caller made (an empty subject): the real SDK submits local jobs without its token, and asks
 * about them with it. */
bool bearer_may_see(const struct nimi_call *call, struct str subject);

/* The call is over; it waits no more. */
void bearer_leave(struct nimi_call *call);

#endif
