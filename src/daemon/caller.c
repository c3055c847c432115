#include "daemon/caller.h"

#include "base/clock.h"
#include "base/same.h"

static bool refuse(struct route_failure *ret, int status, struct str code, struct str message) {
    *ret = (struct route_failure){status, code, message, STR_EMPTY};
    return false;
}

static bool is_runtime_token(const struct edition *edition, struct str given,
                             struct api_caller *ret) {
    char room[TOKEN_PAYLOAD_BYTES];
    struct token token;
    if (!edition->keys || token_verify(edition->keys, given, clock_unix_ms() / 1000, room,
                                       &token) != TOKEN_VALID) {
        return false;
    }
    if (!api_caller_set(ret, token.workspace, token.user)) return false;
    ret->proved = true;
    return true;
}

static bool is_agent_token(const struct edition *edition, struct str given,
                           struct api_caller *ret) {
    struct str token = edition->runtime.token;
    if (token.len == 0 || !same_secret(given, token)) return false;
    if (!api_caller_set(ret, edition->runtime.workspace, STR_EMPTY)) return false;
    ret->proved = true;
    return true;
}

bool caller_identify(struct route_call *call, void *ctx, struct api_caller *ret,
                     struct route_failure *ret_failure) {
    const struct edition *edition = *(struct edition **)ctx;
    struct str header = lent_read(route_header(call, STR("authorization")));
    struct str given, scheme = str_split(header, ' ', &given);
    given = str_trim(given);
    bool bearer = str_equal_nocase(scheme, STR("bearer")) && given.len > 0;
    if (!edition->secured && exchange_peer_is_loopback(route_exchange(call))) {
        if (bearer && is_runtime_token(edition, given, ret)) return true;
        *ret = (struct api_caller){.all_workspaces = true, .all_users = true};
        return true;
    }
    if (!edition->secured) {
        return refuse(ret_failure, 403, STR("FORBIDDEN"),
                      STR("without a token these routes answer only peers on this machine; set "
                          "AGENT_AUTH_TOKEN"));
    }
    if (!bearer) {
        route_field(call, STR("www-authenticate"), STR("Bearer realm=\"weir\""));
        return refuse(ret_failure, 401, STR("UNAUTHORIZED"), STR("Missing bearer token"));
    }
    if (is_runtime_token(edition, given, ret) || is_agent_token(edition, given, ret))
        return true;
    return refuse(ret_failure, 403, STR("FORBIDDEN"), STR("Invalid bearer token"));
}
