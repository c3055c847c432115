/* guard: who may call a method.
 *
 * Every row of the table names its guard. Without issuers of tokens in the settings callers are
 * anonymous and every guard lets them through. With issuers:
 *
 *     GUARD_OPEN      anyone: what an app needs before it has a token
 *     GUARD_CALLER    anyone; an anonymous caller has no subject. With nimi.require_token as below
 *     GUARD_SUBJECT   only with a valid token
 *     the others      and the token's `scope` must name the guard's capability
 *
 * Private to contract/nimi.
 *
 * Threads  any; constant.
 * Source   contracts/nimi.md 3.2 K-DAEMON-005, 5.1 "Protected capabilities".
 */
#ifndef WEIR_CONTRACT_NIMI_GUARD_H
#define WEIR_CONTRACT_NIMI_GUARD_H

#include "base/str.h"

enum nimi_guard {
    GUARD_OPEN = 1,
    GUARD_CALLER,
    GUARD_SUBJECT,
    GUARD_AUDIT_EXPORT,
    GUARD_MEMORY_READ,
    GUARD_MEMORY_WRITE,
    GUARD_AGENT_READ,
    GUARD_AGENT_WRITE,
    GUARD_COUNT,
};

/* Whether the guard lets no anonymous caller through. */
bool guard_needs_token(enum nimi_guard guard, bool require_token);

/* The capability that the token must have; empty: none. */
struct str guard_capability(enum nimi_guard guard);

/* Whether a space-separated list, as in the claim `scope` (RFC 8693 4.2), names it. */
bool guard_scope_has(struct str scope, struct str capability);

#endif
