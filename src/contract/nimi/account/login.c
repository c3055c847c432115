/* Logging in and out, and the token.
 *
 *     CompleteLogin ─▶ attempt ─▶ token ─▶ (keys) ─▶ account_begin ─▶ disk ─▶ account_end
 *     RefreshAccountSession ───▶ token of the call ─▶      "
 *     Logout, SwitchAccount ──────────────────────▶        "
 *
 * A change that has begun is finished when its caller leaves. */
#include "base/clock.h"
#include "base/mem.h"
#include "contract/nimi/account/caller.h"
#include "contract/nimi/account/calls.h"
#include "contract/nimi/account/hold.h"
#include "contract/nimi/account/waits.h"
#include "contract/nimi/moment.h"
#include "wire/jwt.h"

#include <stdlib.h>

#define ORIGIN_MAX_BYTES 1024 /* of a callback_origin; the reply repeats it */

struct change {
    struct account_wait wait;
    enum account_act act;
    struct str attempt; /* of a login */
    struct str subject; /* of the caller's token */
    struct account_material material;
    struct issuers *issuers; /* of a login */
    struct buf texts;        /* of the four above */
};

/* --- replies ------------------------------------------------------------------------------ */

struct shown {
    struct account_status status;
    struct nimi_account_projection projection;
    bool accepted;
};

/* The state as it is now, for who made the change. */
static void login_show(struct nimi_call *call, int reason, struct shown *ret) {
    account_status(account_of(call), &ret->status);
    ret->accepted = reason == ACCOUNT_DONE;
    ret->projection =
        (struct nimi_account_projection){.account_id = str_from(ret->status.subject)};
}

#define REPLY_WITH_ACCOUNT(function, message)                                                  \
    static void function(struct nimi_call *call, int reason) {                                 \
        struct shown shown;                                                                    \
        login_show(call, reason, &shown);                                                      \
        bool told = shown.accepted && shown.projection.account_id.len;                         \
        nimi_reply(call, &message##_table,                                                     \
                   &(struct message){.accepted = shown.accepted,                               \
                                     .state = (int32_t)shown.status.state,                     \
                                     .account_projection = told ? &shown.projection : NULL,    \
                                     .reason_code = account_common_reason(reason),             \
                                     .account_reason_code = reason});                          \
    }

REPLY_WITH_ACCOUNT(reply_login, nimi_complete_login_response)
REPLY_WITH_ACCOUNT(reply_refresh, nimi_refresh_account_session_response)
REPLY_WITH_ACCOUNT(reply_switch, nimi_switch_account_response)

static void reply_logout(struct nimi_call *call, int reason) {
    struct shown shown;
    login_show(call, reason, &shown);
    nimi_reply(call, &nimi_logout_response_table,
               &(struct nimi_logout_response){.accepted = shown.accepted,
                                              .state = (int32_t)shown.status.state,
                                              .reason_code = account_common_reason(reason),
                                              .account_reason_code = reason});
}

typedef void reply_fn(struct nimi_call *call, int reason);

static reply_fn *const replies[] = {
    [ACCOUNT_LOGIN] = reply_login,
    [ACCOUNT_REFRESH] = reply_refresh,
    [ACCOUNT_LOGOUT] = reply_logout,
    [ACCOUNT_SWITCH] = reply_switch,
};

/* --- a change ----------------------------------------------------------------------------- */

static bool proves(const struct change *change) {
    return change->act == ACCOUNT_LOGIN || change->act == ACCOUNT_REFRESH;
}

static const struct account_material *material_of(const struct change *change) {
    return proves(change) ? &change->material : NULL;
}

static struct account_now now_of(const struct change *change) {
    return account_now(change->wait.instance->host->loop, change->subject);
}

static struct nimi_account *account_at(const struct change *change) {
    return change->wait.instance->runtime->account;
}

static void change_drop(struct account_wait *wait) {
    struct change *change = CONTAINER_OF(wait, struct change, wait);
    issuers_unref(change->issuers);
    if (change->texts.room) explicit_bzero(change->texts.at, change->texts.room);
    buf_done(&change->texts);
    free(change);
}

/* While it waits for keys nothing has begun, and the attempt can be used again. */
static void change_left(struct account_wait *wait) {
    const struct change *change = CONTAINER_OF(wait, struct change, wait);
    struct nimi_instance *instance = wait->instance;
    if (!wait->keys) return;
    account_return_proof(account_at(change), change->attempt);
    account_wait_end(wait);
    account_arm(instance);
}

static struct change *change_new(struct nimi_call *call, enum account_act act,
                                 const struct account_material *material, struct str attempt) {
    struct change *change = MEM_NEW(struct change);
    struct str *texts[] = {&change->attempt,          &change->subject,
                           &change->material.subject, &change->material.issuer,
                           &change->material.scope,   &change->material.token,
                           &change->material.session};
    change->act = act;
    change->attempt = attempt;
    change->subject = call->subject;
    if (material) change->material = *material;
    buf_keep_texts(&change->texts, texts, ARRAY_LEN(texts));
    account_wait_begin(&change->wait, call, change_left, change_drop);
    return change;
}

static void change_end(struct change *change, int reason) {
    struct nimi_instance *instance = change->wait.instance;
    enum account_act act = change->act;
    struct nimi_call *call = account_wait_end(&change->wait);
    account_arm(instance);
    if (call) replies[act](call, reason);
}

static void change_written(struct change *change, const struct err *failed) {
    const struct account_now now = now_of(change);
    change_end(change,
               account_end(account_at(change), change->act, material_of(change), failed, &now));
}

static void login_on_written(const struct kept_record *records, size_t count,
                             const struct err *failed, void *ctx) {
    struct change *change = ctx;
    (void)records, (void)count;
    change->wait.ask = NULL;
    change_written(change, failed);
}

static void change_begin(struct change *change) {
    const struct account_now now = now_of(change);
    struct nimi_account *account = account_at(change);
    int reason = account_begin(account, change->act, material_of(change), &now);
    if (reason != ACCOUNT_DONE) {
        if (change->act == ACCOUNT_LOGIN)
            account_fail_proof(account, change->attempt, reason, &now);
        change_end(change, reason);
        return;
    }
    change->wait.ask = account_write(account, change->act, material_of(change), &now,
                                     login_on_written, change);
    if (!change->wait.ask) change_written(change, NULL); /* there is no store */
}

/* --- BeginLogin --------------------------------------------------------------------------- */

static void reply_attempt(struct nimi_call *call, int reason, const char *origin,
                          const struct account_attempt *attempt) {
    bool accepted = reason == ACCOUNT_DONE;
    const struct google_timestamp expires = nimi_moment(attempt->expires_unix_ms);
    nimi_reply(call, &nimi_begin_login_response_table,
               &(struct nimi_begin_login_response){.accepted = accepted,
                                                   .login_attempt_id = str_from(attempt->id),
                                                   .callback_origin = str_from(origin),
                                                   .state = str_from(attempt->state),
                                                   .nonce = str_from(attempt->nonce),
                                                   .expires_at = accepted ? &expires : NULL,
                                                   .reason_code = account_common_reason(reason),
                                                   .account_reason_code = reason});
}

static void begin_login(struct nimi_call *call, const struct account_held *held) {
    const struct account_now now = account_now_of(call);
    struct account_attempt attempt = {.expires_unix_ms = 0};
    int reason = account_begin_login(call->instance->runtime->account, held->app,
                                     held->app_instance, held->ttl_s, &now, &attempt);
    account_arm(call->instance);
    if (reason == ACCOUNT_FULL) {
        nimi_refuse_code(call, NIMI_APP_AUTHORIZATION_DENIED, ERR_RESOURCE_EXHAUSTED,
                         "%d logins are pending already; wait until one is over",
                         ACCOUNT_ATTEMPTS_MAX);
    } else {
        struct str origin = nimi_keep(call, held->origin);
        reply_attempt(call, reason, origin.len ? origin.at : "", &attempt);
    }
    explicit_bzero(&attempt, sizeof(attempt));
}

static bool origin_is_short(struct nimi_call *call, struct str origin) {
    if (origin.len <= ORIGIN_MAX_BYTES) return true;
    nimi_refuse_for(call, NIMI_PROTOCOL_ENVELOPE_INVALID,
                    "callback_origin has %zu bytes, at most %d are allowed", origin.len,
                    ORIGIN_MAX_BYTES);
    return false;
}

/* Without issuers there is nobody whose token could complete it. */
void account_login(struct nimi_call *call, const void *request) {
    const struct nimi_begin_login_request *from = request;
    const struct account_attempt none = {.expires_unix_ms = 0};
    int reason;
    if (!origin_is_short(call, from->callback_origin) ||
        !account_admit(call, from->caller, ACCOUNT_WISH_ANY, &reason))
        return;
    if (reason == ACCOUNT_DONE && !call->instance->settings->issuers)
        reason = NIMI_ACCOUNT_REASON_CODE_LOGIN_EXCHANGE_UNAVAILABLE;
    if (reason != ACCOUNT_DONE) {
        struct str origin = nimi_keep(call, from->callback_origin);
        account_arm(call->instance);
        reply_attempt(call, reason, origin.len ? origin.at : "", &none);
        return;
    }
    account_hold(call, &(struct account_held){.app = from->caller->app_id,
                                              .app_instance = from->caller->app_instance_id,
                                              .origin = from->callback_origin,
                                              .ttl_s = from->ttl_seconds,
                                              .go_on = begin_login});
}

/* --- CompleteLogin ------------------------------------------------------------------------ */

/* Why a token is refused. An expired one has a reason of its own, because a new one helps. */
static int reason_of_token(struct str token, struct arena *arena) {
    struct jwt jwt;
    struct err e;
    bool over = jwt_read(token, arena, &jwt, &e) && jwt.expires_s <= clock_unix_ms() / 1000;
    return over ? NIMI_ACCOUNT_REASON_CODE_PROOF_EXPIRED
                : NIMI_ACCOUNT_REASON_CODE_PROOF_MISMATCHED;
}

static void fail_login(struct change *change, int reason) {
    const struct account_now now = now_of(change);
    account_fail_proof(account_at(change), change->attempt, reason, &now);
    change_end(change, reason);
}

/* The issuer's keys cannot be had now: the attempt may be used again. */
static void postpone_login(struct change *change) {
    account_return_proof(account_at(change), change->attempt);
    change_end(change, NIMI_ACCOUNT_REASON_CODE_LOGIN_EXCHANGE_UNAVAILABLE);
}

static void keep_identity(struct change *change, const struct token_check *check) {
    struct account_material *material = &change->material;
    struct buf old = change->texts;
    struct str *texts[] = {&change->attempt,  &change->subject, &material->subject,
                           &material->issuer, &material->scope, &material->token,
                           &material->session};
    material->subject = check->identity.subject;
    material->scope = check->identity.scope;
    material->issuer = issuers_name(change->issuers, check->issuer);
    material->expires_unix_ms = 1000 * check->identity.expires_s;
    buf_keep_texts(&change->texts, texts, ARRAY_LEN(texts));
    if (old.room) explicit_bzero(old.at, old.room);
    buf_done(&old);
}

static void login_check_token(struct change *change, bool may_wait);

static void on_keys(void *ctx) {
    struct change *change = ctx;
    change->wait.keys = NULL;
    login_check_token(change, false);
}

static void login_check_token(struct change *change, bool may_wait) {
    struct arena *arena = arena_new(2 * JWT_ARENA_BYTES);
    struct key_fetcher *keys = &change->wait.instance->keys;
    struct str token = change->material.token;
    struct token_check check;
    struct err e;
    switch (issuers_check(change->issuers, token, clock_unix_ms() / 1000, clock_mono_ms(),
                          arena, &check, &e)) {
    case TOKEN_GOOD:
        keep_identity(change, &check);
        change_begin(change);
        break;
    case TOKEN_NEEDS_KEYS:
        if (may_wait) {
            change->wait.keys =
                key_wait_start(keys, change->issuers, check.issuer, on_keys, change);
        } else {
            postpone_login(change);
        }
        break;
    case TOKEN_REFUSED:
        if (e.code == ERR_UNAVAILABLE) {
            postpone_login(change);
        } else {
            fail_login(change, reason_of_token(token, arena));
        }
        break;
    }
    arena_free(arena);
}

/* What a proof must have; what it is worth is seen later. */
static int reason_of_proof(const struct nimi_complete_login_request *from) {
    if (from->sealed_completion_ticket.len) return NIMI_ACCOUNT_REASON_CODE_PROOF_UNSUPPORTED;
    if (!from->login_attempt_id.len || !from->code.len || from->code.len > JWT_MAX_BYTES)
        return NIMI_ACCOUNT_REASON_CODE_PROOF_MISMATCHED;
    return ACCOUNT_DONE;
}

void account_complete_login(struct nimi_call *call, const void *request) {
    const struct nimi_complete_login_request *from = request;
    struct issuers *issuers = call->instance->settings->issuers;
    const struct account_now now = account_now_of(call);
    int reason;
    if (!account_admit(call, from->caller, ACCOUNT_WISH_ANY, &reason)) return;
    if (reason == ACCOUNT_DONE && !issuers)
        reason = NIMI_ACCOUNT_REASON_CODE_LOGIN_EXCHANGE_UNAVAILABLE;
    if (reason == ACCOUNT_DONE) reason = reason_of_proof(from);
    if (reason == ACCOUNT_DONE)
        reason = account_take_proof(
            account_of(call),
            &(struct account_proof){from->login_attempt_id, from->caller->app_id,
                                    from->caller->app_instance_id, from->state, from->nonce},
            &now);
    if (reason != ACCOUNT_DONE) {
        reply_login(call, reason);
        return;
    }
    const struct account_material material = {.token = from->code, .session = call->session};
    struct change *change = change_new(call, ACCOUNT_LOGIN, &material, from->login_attempt_id);
    change->issuers = issuers_ref(issuers);
    login_check_token(change, true);
}

/* --- the others --------------------------------------------------------------------------- */

/* There is nothing here to refresh with: the newer token is the call's own. */
void account_refresh(struct nimi_call *call, const void *request) {
    const struct nimi_refresh_account_session_request *from = request;
    int reason;
    if (!account_admit(call, from->caller, ACCOUNT_WISH_ANY, &reason)) return;
    if (reason == ACCOUNT_DONE && !call->proof.token.len)
        reason = NIMI_ACCOUNT_REASON_CODE_LOGIN_EXCHANGE_UNAVAILABLE;
    if (reason != ACCOUNT_DONE) {
        reply_refresh(call, reason);
        return;
    }
    const struct account_material material = {.subject = call->subject,
                                              .issuer = call->proof.issuer,
                                              .scope = call->scope,
                                              .token = call->proof.token,
                                              .session = call->session,
                                              .expires_unix_ms = 1000 * call->proof.expires_s};
    change_begin(change_new(call, ACCOUNT_REFRESH, &material, STR_EMPTY));
}

static void login_leave(struct nimi_call *call, const struct nimi_account_caller *caller,
                        enum account_act act) {
    int reason;
    if (!account_admit(call, caller, ACCOUNT_WISH_ANY, &reason)) return;
    if (reason == ACCOUNT_DONE) {
        change_begin(change_new(call, act, NULL, STR_EMPTY));
    } else {
        replies[act](call, reason);
    }
}

/* Who is not logged in is logged out. */
void account_logout(struct nimi_call *call, const void *request) {
    const struct nimi_logout_request *from = request;
    struct account_status status;
    int reason;
    account_status(account_of(call), &status);
    if (status.state != ACCOUNT_ANONYMOUS) {
        login_leave(call, from->caller, ACCOUNT_LOGOUT);
    } else if (account_admit(call, from->caller, ACCOUNT_WISH_ANY, &reason)) {
        reply_logout(call, reason);
    }
}

/* The account is left; another one logs in afterwards. */
void account_switch(struct nimi_call *call, const void *request) {
    const struct nimi_switch_account_request *from = request;
    login_leave(call, from->caller, ACCOUNT_SWITCH);
}

/* --- GetAccessToken ----------------------------------------------------------------------- */

void account_get_token(struct nimi_call *call, const void *request) {
    const struct nimi_get_access_token_request *from = request;
    const struct account_now now = account_now_of(call);
    struct text token = {.at = NULL};
    int64_t expires_unix_ms = 0;
    int reason;
    if (!account_admit(call, from->caller, ACCOUNT_WISH_TOKEN, &reason)) return;
    if (reason == ACCOUNT_DONE)
        reason = account_token(account_of(call), call->session, from->requested_scopes,
                               from->requested_scopes_count, &now, &token, &expires_unix_ms);
    const struct google_timestamp expires = nimi_moment(expires_unix_ms);
    nimi_reply(call, &nimi_get_access_token_response_table,
               &(struct nimi_get_access_token_response){
                   .accepted = reason == ACCOUNT_DONE,
                   .access_token = text_str(token),
                   .expires_at = reason == ACCOUNT_DONE ? &expires : NULL,
                   .reason_code = account_common_reason(reason),
                   .account_reason_code = reason});
    text_wipe(&token);
}
