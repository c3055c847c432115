#include "contract/nimi/account/states.h"

#include "proto/nimi.pb.h"

_Static_assert((int)ACCOUNT_UNAVAILABLE == NIMI_ACCOUNT_SESSION_STATE_UNAVAILABLE,
               "the numbers are the protocol's");
_Static_assert((int)BINDING_SUPERSEDED == NIMI_SCOPED_APP_BINDING_STATE_SUPERSEDED,
               "the numbers are the protocol's");

const struct state account_states[ACCOUNT_STATE_COUNT] = {
    [0] = {"unspecified", 0},
    [ACCOUNT_ANONYMOUS] = {"anonymous", TO(ACCOUNT_LOGIN_PENDING)},
    [ACCOUNT_LOGIN_PENDING] = {"login_pending",
                               TO(ACCOUNT_AUTHENTICATED) | TO(ACCOUNT_ANONYMOUS) |
                                   TO(ACCOUNT_REAUTH_REQUIRED) | TO(ACCOUNT_UNAVAILABLE)},
    [ACCOUNT_AUTHENTICATED] = {"authenticated",
                               TO(ACCOUNT_REFRESH_PENDING) | TO(ACCOUNT_EXPIRED) |
                                   TO(ACCOUNT_SWITCHING) | TO(ACCOUNT_LOGGING_OUT)},
    [ACCOUNT_REFRESH_PENDING] = {"refresh_pending",
                                 TO(ACCOUNT_AUTHENTICATED) | TO(ACCOUNT_UNAVAILABLE)},
    [ACCOUNT_EXPIRED] = {"expired", TO(ACCOUNT_REFRESH_PENDING) | TO(ACCOUNT_LOGIN_PENDING) |
                                        TO(ACCOUNT_SWITCHING) | TO(ACCOUNT_LOGGING_OUT)},
    [ACCOUNT_REAUTH_REQUIRED] = {"reauth_required", TO(ACCOUNT_LOGIN_PENDING) |
                                                        TO(ACCOUNT_SWITCHING) |
                                                        TO(ACCOUNT_LOGGING_OUT)},
    [ACCOUNT_SWITCHING] = {"switching", TO(ACCOUNT_ANONYMOUS) | TO(ACCOUNT_UNAVAILABLE)},
    [ACCOUNT_LOGGING_OUT] = {"logging_out", TO(ACCOUNT_ANONYMOUS) | TO(ACCOUNT_UNAVAILABLE)},
    [ACCOUNT_UNAVAILABLE] = {"unavailable", TO(ACCOUNT_ANONYMOUS) | TO(ACCOUNT_AUTHENTICATED) |
                                                TO(ACCOUNT_EXPIRED) |
                                                TO(ACCOUNT_REAUTH_REQUIRED)},
};

#define OVER (TO(BINDING_REVOKED) | TO(BINDING_EXPIRED) | TO(BINDING_SUPERSEDED))

const struct state binding_states[BINDING_STATE_COUNT] = {
    [0] = {"unspecified", 0},
    [BINDING_ISSUED] = {"issued", TO(BINDING_ACTIVE)},
    [BINDING_ACTIVE] = {"active", TO(BINDING_SUSPENDED) | OVER},
    [BINDING_SUSPENDED] = {"suspended", TO(BINDING_ACTIVE) | OVER},
    [BINDING_REVOKED] = {"revoked", 0},
    [BINDING_EXPIRED] = {"expired", 0},
    [BINDING_SUPERSEDED] = {"superseded", 0},
};
