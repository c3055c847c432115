/* use: what a call that brings a grant's token may do.
 *
 * A call brings one in x-nimi-access-token-id and -secret. The token only limits: what the guard
 * of the method demands, it demands still. A call without one is as free as its caller.
 *
 *     grant_use_take ─▶ _begin ─▶ _bind (the request) ─▶ the row's begin() ─▶ a stream that lasts:
 *                                                        looked at again each GRANT_USE_CHECK_MS
 *
 * The token must be good, of the app of x-nimi-app-id, and have the scope that the method needs.
 * The call is made for the grant's subject. A grant that selects the label `model` lets ask that
 * model alone. Methods that an app needs to come by a token take no notice of it: those that are
 * open to all, and the services of apps, sessions, accounts and grants.
 *
 * Private to contract/nimi.
 *
 * Memory   grant_use belongs to its call.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 5.1 "x-nimi-access-token-id", "Protected capabilities".
 */
#ifndef WEIR_CONTRACT_NIMI_GRANT_USE_H
#define WEIR_CONTRACT_NIMI_GRANT_USE_H

#include "contract/nimi/call.h"
#include "contract/nimi/grant/grants.h"

#define GRANT_USE_CHECK_MS 1000

struct grant_use {
    char id[ULID_LEN + 1];                     /* empty: what came cannot be one */
    uint8_t digest[RANDOM_TOKEN_DIGEST_BYTES]; /* of the secret that the caller knows */
};

/* Part of the interceptor `authn`: take the token from the metadata, which is not there any more
 * when a call has waited for keys. */
void grant_use_take(struct nimi_call *call);

/* Part of the interceptor `authz`.
 * errors  PRINCIPAL_UNAUTHORIZED no such token of this app, or half of it; APP_TOKEN_REVOKED,
 *         APP_TOKEN_EXPIRED; APP_SCOPE_FORBIDDEN the method needs a scope that it has not */
MUST_CHECK bool grant_use_begin(struct nimi_call *call, struct fault *fault);

/* Look again, and at the request. It is made for the grant's subject from then on.
 * errors  those above; PRINCIPAL_UNAUTHORIZED it names another subject;
 *         APP_RESOURCE_OUT_OF_SCOPE it asks a model that the grant does not select */
MUST_CHECK bool grant_use_bind(struct nimi_call *call, void *request, struct fault *fault);

/* Of an instance: look at streams that last, and end those whose grant is over. Reading a model's
 * words (close mode A) is not interrupted: it was admitted when it began, and is bounded. */
void grant_uses_init(struct nimi_instance *instance);

#endif
