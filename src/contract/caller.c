#include "contract/caller.h"

#include "wire/token.h"

static bool caller_refuse(struct route_failure *ret, int status, struct str code,
                          struct str message) {
    *ret = (struct route_failure){status, code, message, STR_EMPTY};
    return false;
}

struct route_failure contract_caller_unknown(void) {
    return (struct route_failure){403, STR("FORBIDDEN"), STR("Invalid bearer token"),
                                  STR_EMPTY};
}

bool contract_caller_of(struct route_call *call, const struct contract_callers *callers,
                        struct str token, struct contract_caller *ret,
                        struct route_failure *ret_failure) {
    bool secured = callers->secured(callers->ctx);
    if (!secured && !exchange_peer_is_loopback(route_exchange(call))) {
        return caller_refuse(
            ret_failure, 403, STR("FORBIDDEN"),
            STR("without a token these routes answer only peers on this machine; set "
                "AGENT_AUTH_TOKEN"));
    }
    if (secured && !token.len) {
        route_field(call, STR("www-authenticate"), STR("Bearer realm=\"weir\""));
        return caller_refuse(ret_failure, 401, STR("UNAUTHORIZED"),
                             STR("Missing bearer token"));
    }
    ret->proved = token.len && callers->identify(token, &ret->identity, callers->ctx);
    if (ret->proved) route_caller(call, ret->identity.workspace, ret->identity.user);
    if (ret->proved || !secured) return true;
    *ret_failure = contract_caller_unknown();
    return false;
}

bool contract_caller_find(struct route_call *call, const struct contract_callers *callers,
                          struct contract_caller *ret, struct route_failure *ret_failure) {
    struct str token = bearer_token(lent_read(route_header(call, STR("authorization"))));
    return contract_caller_of(call, callers, token, ret, ret_failure);
}
