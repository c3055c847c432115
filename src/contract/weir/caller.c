#include "contract/weir/inner.h"

static bool caller_refuse(struct route_failure *ret, int status, struct str code,
                          struct str message) {
    *ret = (struct route_failure){status, code, message, STR_EMPTY};
    return false;
}

static bool is_known(const struct contract_callers *callers, struct str bearer,
                     struct api_caller *ret) {
    struct contract_identity identity;
    if (!callers->identify(bearer, &identity, callers->ctx)) return false;
    if (!api_caller_set(ret, identity.workspace, identity.user)) return false;
    ret->proved = true;
    return true;
}

bool api_caller_find(struct route_call *call, const struct contract_callers *callers,
                     struct api_caller *ret, struct route_failure *ret_failure) {
    struct str header = lent_read(route_header(call, STR("authorization")));
    struct str given, scheme = str_split(header, ' ', &given);
    given = str_trim(given);
    bool secured = callers->secured(callers->ctx);
    bool bearer = str_equal_nocase(scheme, STR("bearer")) && given.len > 0;
    if (!secured && exchange_peer_is_loopback(route_exchange(call))) {
        if (bearer && is_known(callers, given, ret)) return true;
        *ret = (struct api_caller){.all_workspaces = true, .all_users = true};
        return true;
    }
    if (!secured) {
        return caller_refuse(
            ret_failure, 403, STR("FORBIDDEN"),
            STR("without a token these routes answer only peers on this machine; set "
                "AGENT_AUTH_TOKEN"));
    }
    if (!bearer) {
        route_field(call, STR("www-authenticate"), STR("Bearer realm=\"weir\""));
        return caller_refuse(ret_failure, 401, STR("UNAUTHORIZED"),
                             STR("Missing bearer token"));
    }
    if (is_known(callers, given, ret)) return true;
    return caller_refuse(ret_failure, 403, STR("FORBIDDEN"), STR("Invalid bearer token"));
}
