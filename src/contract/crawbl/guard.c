#include "contract/crawbl/guard.h"

#include "base/clock.h"
#include "base/log.h"

bool crawbl_guard_serves(const struct crawbl_guard *guard, struct str user,
                         struct str workspace, struct err *e) {
    bool other_workspace = guard->workspace.len && !str_equal(workspace, guard->workspace);
    bool other_user = guard->user.len && !str_equal(user, guard->user);
    if (!other_workspace && !other_user) return true;
    return err_set(e, ERR_PERMISSION_DENIED, "this server does not serve that %s",
                   other_workspace ? "workspace" : "user");
}

/* Log the reason for the operator, never to the peer, and never the token. */
static void note_refusal(struct rpc_call *call, const char *why) {
    log_often(LOG_WARNING, "a token is refused: it is %s; peer " STR_FMT, why,
              STR_ARG(exchange_peer(rpc_exchange(call))));
}

static bool crawbl_guard_check_token(struct rpc_call *call, const struct token_keys *keys,
                                     struct str header, size_t count,
                                     char room[static TOKEN_PAYLOAD_BYTES], struct token *ret,
                                     struct err *e) {
    struct str text;
    if (!bearer_token_from_header(header, count, &text, e)) {
        note_refusal(call, "missing");
        return false;
    }
    enum token_verdict verdict = token_verify(keys, text, clock_unix_ms() / 1000, room, ret);
    if (verdict == TOKEN_VALID) return true;
    note_refusal(call, token_verdict_name(verdict));
    return err_set(e, ERR_UNAUTHENTICATED, "invalid bearer token");
}

bool crawbl_guard_authenticate(const struct crawbl_guard *guard, struct rpc_call *call,
                               struct rpc_identity *ret, struct err *e) {
    if (!guard->keys) {
        *ret = (struct rpc_identity){.known = false};
        return true;
    }
    size_t count;
    struct str header = lent_read(rpc_metadata(call, STR("authorization"), &count));
    struct token token;
    char room[TOKEN_PAYLOAD_BYTES];
    if (!crawbl_guard_check_token(call, guard->keys, header, count, room, &token, e))
        return false;
    if (!crawbl_guard_serves(guard, token.user, token.workspace, e)) {
        note_refusal(call, "of an identity that is not served here");
        return false;
    }
    log_debug("a token of user " STR_FMT ", workspace " STR_FMT ", used by " STR_FMT,
              STR_ARG(token.user), STR_ARG(token.workspace),
              STR_ARG(exchange_peer(rpc_exchange(call))));
    *ret = (struct rpc_identity){.known = true,
                                 .user = rpc_keep(call, token.user),
                                 .workspace = rpc_keep(call, token.workspace)};
    return true;
}
