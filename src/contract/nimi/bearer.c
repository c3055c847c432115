#include "contract/nimi/bearer.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/jwt.h"
#include "wire/token.h"

#include <stdlib.h>

struct token_wait {
    struct nimi_call *call;
    struct issuers *issuers;
    struct str token;      /* kept by the call */
    struct key_wait *keys; /* NULL: they have been fetched */
};

/* --- the token ---------------------------------------------------------------------------- */

static bool refuse_token(const struct nimi_call *call, const struct err *why,
                         struct fault *fault) {
    log_info("nimi " STR_FMT " app=" STR_FMT " trace=%s: token refused: %s",
             STR_ARG(call->row->path), STR_ARG(str_head(call->envelope.app_id, 80)),
             call->trace, why->text);
    return fault_set_code(fault, NIMI_AUTH_TOKEN_INVALID,
                          why->code == ERR_UNAVAILABLE ? ERR_UNAVAILABLE : ERR_UNAUTHENTICATED,
                          "%s", why->text);
}

static void keep_proof(struct nimi_call *call, const struct issuers *issuers, struct str token,
                       const struct token_check *check) {
    if (!(call->row->facts & NIMI_PROVES)) return;
    call->proof =
        (struct nimi_proof){.token = rpc_keep(call->rpc, token),
                            .issuer = rpc_keep(call->rpc, issuers_name(issuers, check->issuer)),
                            .expires_s = check->identity.expires_s};
}

static enum token_state look_at(struct nimi_call *call, struct issuers *issuers,
                                struct str token, size_t *ret_issuer, struct err *e) {
    struct arena *arena = arena_new(JWT_ARENA_BYTES);
    struct token_check check;
    enum token_state state = issuers_check(issuers, token, clock_unix_ms() / 1000,
                                           clock_mono_ms(), arena, &check, e);
    if (state == TOKEN_GOOD) {
        call->subject = rpc_keep(call->rpc, check.identity.subject);
        call->scope = rpc_keep(call->rpc, check.identity.scope);
        keep_proof(call, issuers, token, &check);
        if (check.stale) key_fetch_begin(&call->instance->keys, issuers, check.issuer);
    }
    if (state != TOKEN_REFUSED) *ret_issuer = check.issuer;
    arena_free(arena);
    return state;
}

/* --- waiting for keys --------------------------------------------------------------------- */

static void wait_free(struct token_wait *wait) {
    issuers_unref(wait->issuers);
    free(wait);
}

void bearer_leave(struct nimi_call *call) {
    struct token_wait *wait = call->token_wait;
    if (!wait) return;
    call->token_wait = NULL;
    key_wait_cancel(wait->keys);
    wait_free(wait);
}

/* The keys are there, or cannot be had. A token that still lacks its key is refused: waiting
 * again would let it wait for ever. */
static void on_keys(void *ctx) {
    struct token_wait *wait = ctx;
    struct nimi_call *call = wait->call;
    struct fault fault;
    struct err e;
    size_t issuer;
    call->token_wait = NULL;
    enum token_state state = look_at(call, wait->issuers, wait->token, &issuer, &e);
    if (state == TOKEN_GOOD) {
        nimi_resume(call);
    } else {
        if (state == TOKEN_NEEDS_KEYS)
            err_set(&e, ERR_UNAVAILABLE,
                    "the keys of the token's issuer cannot be fetched now");
        refuse_token(call, &e, &fault);
        nimi_refuse(call, &fault);
    }
    wait_free(wait);
}

static void wait_for_keys(struct nimi_call *call, struct str token, size_t issuer) {
    struct token_wait *wait = MEM_NEW(struct token_wait);
    wait->call = call;
    wait->issuers = issuers_ref(call->instance->settings->issuers);
    wait->token = rpc_keep(call->rpc, token);
    call->token_wait = wait;
    wait->keys = key_wait_start(&call->instance->keys, wait->issuers, issuer, on_keys, wait);
}

/* --- the interceptors --------------------------------------------------------------------- */

bool bearer_check(struct nimi_call *call, struct fault *fault) {
    struct issuers *issuers = call->instance->settings->issuers;
    size_t count, issuer;
    struct lent header = rpc_metadata(call->rpc, STR("authorization"), &count);
    struct str token;
    struct err e;
    if (count == 0) return true;
    if (!issuers) {
        err_set(&e, ERR_UNAUTHENTICATED,
                "this runtime knows no issuer of tokens; call without authorization");
        return refuse_token(call, &e, fault);
    }
    if (!bearer_token_from_header(lent_read(header), count, &token, &e))
        return refuse_token(call, &e, fault);
    switch (look_at(call, issuers, token, &issuer, &e)) {
    case TOKEN_GOOD: return true;
    case TOKEN_NEEDS_KEYS: wait_for_keys(call, token, issuer); return true;
    case TOKEN_REFUSED: break;
    }
    return refuse_token(call, &e, fault);
}

bool bearer_authorize(struct nimi_call *call, struct fault *fault) {
    const struct nimi_settings *settings = call->instance->settings;
    struct str capability = guard_capability(call->row->guard);
    if (!settings->issuers) return true;
    if (call->subject.len == 0)
        return !guard_needs_token(call->row->guard, settings->require_token) ||
               fault_set(fault, NIMI_AUTH_TOKEN_INVALID,
                         "this method needs a token; send authorization: Bearer ...");
    return capability.len == 0 || guard_scope_has(call->scope, capability) ||
           fault_set(fault, NIMI_APP_SCOPE_FORBIDDEN,
                     "the token lacks the capability " STR_FMT " in its scope",
                     STR_ARG(capability));
}

/* --- the request -------------------------------------------------------------------------- */

bool bearer_bind(struct nimi_call *call, void *request, struct fault *fault) {
    struct str *named = subject_in(&call->row->subject, request);
    if (!call->instance->settings->issuers || !named) return true;
    if (call->subject.len && named->len && !str_equal(*named, call->subject))
        return fault_set(fault, NIMI_PRINCIPAL_UNAUTHORIZED,
                         "the request is made for another subject than the token's");
    *named = call->subject; /* an anonymous caller has none, whatever it says */
    return true;
}

bool bearer_may_see(const struct nimi_call *call, struct str subject) {
    return !call->instance->settings->issuers || subject.len == 0 ||
           str_equal(call->subject, subject);
}
