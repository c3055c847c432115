/* owner: of whom the things are that a caller keeps here: of its app and its subject.
 *
 * With issuers of tokens in the settings the subject is the token's, whatever the request says.
 * What belongs to one owner is found by no other: an id of another's answers like an id that
 * never was.
 *
 * Private to contract/nimi.
 *
 * Memory   views of the request and of the call.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 5.1; checks.md M1, M3, M4.
 */
#ifndef WEIR_CONTRACT_NIMI_OWNER_H
#define WEIR_CONTRACT_NIMI_OWNER_H

#include "contract/nimi/call.h"
#include "store/event_log.h"

/* errors  PROTOCOL_ENVELOPE_INVALID no app, or what is no id
 *         PROTOCOL_DOMAIN_FIELD_CONFLICT the request and x-nimi-app-id name different apps */
MUST_CHECK bool owner_of(const struct nimi_call *call, struct str app, struct str subject,
                         struct store_owner *ret, struct fault *fault);

/* An id in the request, as PROTOCOL_ENVELOPE_INVALID otherwise. */
MUST_CHECK bool owner_id(const char *name, struct str id, struct fault *fault);

/* The app in the request, which is also that of x-nimi-app-id if there is one.
 * errors  PROTOCOL_ENVELOPE_INVALID it is no id; PROTOCOL_DOMAIN_FIELD_CONFLICT it is another */
MUST_CHECK bool owner_app(const struct nimi_call *call, struct str app, struct fault *fault);

/* A limit or page size that must not be negative. */
MUST_CHECK bool owner_size(const char *name, int32_t size, struct fault *fault);

/* The store; NULL: there is none, and the call has been refused. */
struct store *owner_store(struct nimi_call *call);

/* Refuse the call because the store failed. */
void owner_refuse(struct nimi_call *call, const struct err *failed);

#endif
