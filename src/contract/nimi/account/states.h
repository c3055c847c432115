/* states: of the account of this machine, and of a scoped app binding.
 *
 *     unavailable ─▶ anonymous | authenticated | expired | reauth_required   (the store was read)
 *     anonymous, expired, reauth_required ─▶ login_pending ─▶ authenticated
 *                                  └▶ anonymous | reauth_required   (it failed)
 *     authenticated ─▶ expired;   both ─▶ refresh_pending ─▶ authenticated
 *     authenticated, expired, reauth_required ─▶ logging_out | switching ─▶ anonymous
 *     what is pending ─▶ unavailable   (it could not be written)
 *
 *     issued ─▶ active ⇄ suspended ─▶ revoked | expired | superseded
 *
 * The numbers are the protocol's. What is pending waits for the disk, or (a login) for its
 * proof.
 *
 * Memory   constant.
 * Threads  any.
 * Source   contracts/nimi.md 1.10.
 */
#ifndef WEIR_CONTRACT_NIMI_ACCOUNT_STATES_H
#define WEIR_CONTRACT_NIMI_ACCOUNT_STATES_H

#include "base/states.h"

enum account_state {
    ACCOUNT_ANONYMOUS = 1,
    ACCOUNT_LOGIN_PENDING,
    ACCOUNT_AUTHENTICATED,
    ACCOUNT_REFRESH_PENDING,
    ACCOUNT_EXPIRED,
    ACCOUNT_REAUTH_REQUIRED,
    ACCOUNT_SWITCHING,
    ACCOUNT_LOGGING_OUT,
    ACCOUNT_UNAVAILABLE, /* not known: the store was not read, or could not be written */
    ACCOUNT_STATE_COUNT,
};

extern const struct state account_states[ACCOUNT_STATE_COUNT];

enum binding_state {
    BINDING_ISSUED = 1,
    BINDING_ACTIVE,
    BINDING_SUSPENDED, /* while the account has expired */
    BINDING_REVOKED,
    BINDING_EXPIRED,
    BINDING_SUPERSEDED, /* the same relation was bound again */
    BINDING_STATE_COUNT,
};

extern const struct state binding_states[BINDING_STATE_COUNT];

#endif
