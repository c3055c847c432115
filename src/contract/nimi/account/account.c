#include "contract/nimi/account/account.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/same.h"
#include "contract/nimi/account/inner.h"
#include "contract/nimi/guard.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define DONE NIMI_ACCOUNT_REASON_CODE_ACTION_EXECUTED
#define UNAVAILABLE NIMI_ACCOUNT_REASON_CODE_ACCOUNT_UNAVAILABLE
struct account_now account_now(struct loop *loop, struct str by) {
    return (struct account_now){loop, loop_now_ms(loop), clock_unix_ms(), by};
}

int account_common_reason(int reason) {
    switch (reason) {
    case DONE: return NIMI_ACTION_EXECUTED;
    case NIMI_ACCOUNT_REASON_CODE_PROOF_EXPIRED: return NIMI_AUTH_TOKEN_EXPIRED;
    case NIMI_ACCOUNT_REASON_CODE_PROOF_UNSUPPORTED: return NIMI_AUTH_UNSUPPORTED_PROOF_TYPE;
    case NIMI_ACCOUNT_REASON_CODE_PROOF_MISMATCHED:
    case NIMI_ACCOUNT_REASON_CODE_PROOF_CONSUMED:
    case NIMI_ACCOUNT_REASON_CODE_LOGIN_EXCHANGE_UNAVAILABLE: return NIMI_AUTH_TOKEN_INVALID;
    case NIMI_ACCOUNT_REASON_CODE_BINDING_NOT_FOUND:
    case NIMI_ACCOUNT_REASON_CODE_BINDING_STALE:
    case NIMI_ACCOUNT_REASON_CODE_BINDING_REPLAY: return NIMI_APP_GRANT_INVALID;
    default: return NIMI_PRINCIPAL_UNAUTHORIZED;
    }
}

struct nimi_account *nimi_account_new(void) {
    struct nimi_account *account = MEM_NEW(struct nimi_account);
    pthread_mutex_init(&account->lock, NULL);
    account->state = ACCOUNT_UNAVAILABLE;
    account->reason = NIMI_ACCOUNT_REASON_CODE_CUSTODY_UNAVAILABLE;
    list_init(&account->attempts);
    bindings_init(&account->bindings);
    return account;
}

static void attempt_free(struct nimi_account *account, struct attempt *attempt) {
    list_remove(&attempt->link);
    account->attempt_count--;
    text_done(&attempt->app);
    text_done(&attempt->app_instance);
    explicit_bzero(attempt, sizeof(*attempt));
    free(attempt);
}

void nimi_account_free(struct nimi_account *account) {
    if (!account) return;
    LIST_EACH(&account->attempts, link)
    attempt_free(account, CONTAINER_OF(link, struct attempt, link));
    bindings_done(&account->bindings);
    account_forget(account);
    topic_unref(account->topic);
    pthread_mutex_destroy(&account->lock);
    free(account);
}

void account_use_store(struct nimi_account *account, struct store *store) {
    account_lock(account);
    account->store = store;
    account_unlock(account);
}

bool account_wants_read(struct nimi_account *account) {
    account_lock(account);
    bool wants = !account->known && !account->writing;
    account_unlock(account);
    return wants;
}

void account_lock(struct nimi_account *account) {
    pthread_mutex_lock(&account->lock);
}

void account_unlock(struct nimi_account *account) {
    pthread_mutex_unlock(&account->lock);
}

struct topic *account_topic(struct nimi_account *account) {
    return account->topic;
}

uint64_t account_take_number(struct nimi_account *account) {
    uint64_t number = topic_last(account->topic) + 1;
    topic_skip(account->topic, number);
    return number;
}

bool account_is_foreign(const struct nimi_account *account, struct str by) {
    struct str subject = text_str(account->subject);
    return by.len && subject.len && !str_equal(by, subject);
}

struct nimi_account_session_event account_snapshot(const struct nimi_account *account,
                                                   struct nimi_account_projection *projection) {
    *projection = (struct nimi_account_projection){.account_id = text_str(account->subject)};
    return (struct nimi_account_session_event){
        .event_type = NIMI_ACCOUNT_EVENT_TYPE_ACCOUNT_STATUS,
        .state = (int32_t)account->state,
        .reason_code = account_common_reason(account->reason),
        .account_reason_code = account->reason,
        .account_projection = projection->account_id.len ? projection : NULL};
}

/* --- the state ---------------------------------------------------------------------------- */

void account_move(struct nimi_account *account, enum account_state next) {
    assert(states_allow(account_states, account->state, next));
    log_debug("nimi account " STR_FMT " -> " STR_FMT,
              STR_ARG(states_name(account_states, account->state)),
              STR_ARG(states_name(account_states, next)));
    account->state = next;
}

void account_forget(struct nimi_account *account) {
    text_done(&account->subject);
    text_done(&account->issuer);
    text_wipe(&account->token);
    text_done(&account->scope);
    text_wipe(&account->session);
}

uint64_t account_loop_time(int64_t unix_ms, const struct account_now *now) {
    return unix_ms > now->unix_ms ? now->ms + (uint64_t)(unix_ms - now->unix_ms) : now->ms;
}

void account_status(struct nimi_account *account, struct account_status *ret) {
    account_lock(account);
    struct str subject = str_head(text_str(account->subject), ID_MAX_BYTES);
    *ret = (struct account_status){.state = account->state, .reason = account->reason};
    if (subject.len) memcpy(ret->subject, subject.at, subject.len);
    account_unlock(account);
}

/* --- bindings and the state --------------------------------------------------------------- */

void account_end_binding(struct nimi_account *account, struct binding *binding,
                         enum binding_state next, enum nimi_account_event_type type, int reason,
                         const struct account_now *now) {
    binding_move(binding, next, reason);
    account_publish(account, type, reason, binding, now);
    account_keep_binding(account, binding, true, now);
    bindings_remove(&account->bindings, binding);
}

/* End every binding, each with an event. */
static void account_end_bindings(struct nimi_account *account, int reason,
                                 const struct account_now *now) {
    LIST_EACH(&account->bindings.all, link)
    account_end_binding(account, CONTAINER_OF(link, struct binding, link), BINDING_REVOKED,
                        NIMI_ACCOUNT_EVENT_TYPE_BINDING_REVOKED, reason, now);
}

static void switch_bindings(struct nimi_account *account, enum binding_state from,
                            enum binding_state to, enum nimi_account_event_type type,
                            int reason, const struct account_now *now) {
    LIST_EACH(&account->bindings.all, link) {
        struct binding *binding = CONTAINER_OF(link, struct binding, link);
        if (binding->state != from) continue;
        binding_move(binding, to, reason);
        account_publish(account, type, reason, binding, now);
    }
}

/* --- time --------------------------------------------------------------------------------- */

static bool attempts_wait(const struct nimi_account *account) {
    LIST_EACH(&account->attempts, link) {
        if (CONTAINER_OF(link, struct attempt, link)->use != ATTEMPT_USED) return true;
    }
    return false;
}

/* A login is over without success; the state goes back unless another login is pending. */
static void login_failed(struct nimi_account *account, int reason,
                         const struct account_now *now) {
    if (account->state != ACCOUNT_LOGIN_PENDING || account->writing || attempts_wait(account))
        return;
    account_move(account, account->before_login);
    account_publish_status(account, reason, now);
}

static void tick_attempts(struct nimi_account *account, const struct account_now *now) {
    bool timed_out = false;
    LIST_EACH(&account->attempts, link) {
        struct attempt *attempt = CONTAINER_OF(link, struct attempt, link);
        if (now->ms < attempt->expires_ms || attempt->use == ATTEMPT_CHECKED) continue;
        if (attempt->use == ATTEMPT_OPEN && account->state == ACCOUNT_LOGIN_PENDING) {
            timed_out = true;
            account_publish(account, NIMI_ACCOUNT_EVENT_TYPE_LOGIN_TIMED_OUT,
                            NIMI_ACCOUNT_REASON_CODE_PROOF_EXPIRED, NULL, now);
        }
        attempt_free(account, attempt);
    }
    if (timed_out) login_failed(account, NIMI_ACCOUNT_REASON_CODE_PROOF_EXPIRED, now);
}

static void tick_bindings(struct nimi_account *account, const struct account_now *now) {
    LIST_EACH(&account->bindings.all, link) {
        struct binding *binding = CONTAINER_OF(link, struct binding, link);
        if (now->ms >= binding->expires_ms)
            account_end_binding(account, binding, BINDING_EXPIRED,
                                NIMI_ACCOUNT_EVENT_TYPE_BINDING_EXPIRED,
                                NIMI_ACCOUNT_REASON_CODE_BINDING_STALE, now);
    }
}

static void tick(struct nimi_account *account, const struct account_now *now) {
    if (!account->topic) return;
    tick_attempts(account, now);
    tick_bindings(account, now);
    if (account->state != ACCOUNT_AUTHENTICATED || now->ms < account->expires_ms) return;
    switch_bindings(account, BINDING_ACTIVE, BINDING_SUSPENDED,
                    NIMI_ACCOUNT_EVENT_TYPE_BINDING_SUSPENDED, UNAVAILABLE, now);
    text_wipe(&account->token);
    account_move(account, ACCOUNT_EXPIRED);
    account_publish_status(account, NIMI_ACCOUNT_REASON_CODE_PROOF_EXPIRED, now);
}

void account_tick(struct nimi_account *account, const struct account_now *now) {
    account_lock(account);
    tick(account, now);
    account_unlock(account);
}

static uint64_t earlier(uint64_t one, uint64_t other) {
    return one < other ? one : other;
}

uint64_t account_due_ms(struct nimi_account *account) {
    uint64_t due_ms = UINT64_MAX;
    account_lock(account);
    LIST_EACH(&account->attempts, link) {
        const struct attempt *attempt = CONTAINER_OF(link, struct attempt, link);
        if (attempt->use != ATTEMPT_CHECKED) due_ms = earlier(due_ms, attempt->expires_ms);
    }
    LIST_EACH(&account->bindings.all, link)
    due_ms = earlier(due_ms, CONTAINER_OF(link, struct binding, link)->expires_ms);
    if (account->state == ACCOUNT_AUTHENTICATED) due_ms = earlier(due_ms, account->expires_ms);
    if (!account->known && !account->writing) due_ms = earlier(due_ms, account->retry_ms);
    account_unlock(account);
    return due_ms;
}

/* --- login -------------------------------------------------------------------------------- */

static struct attempt *attempt_of_instance(struct nimi_account *account, struct str app,
                                           struct str app_instance) {
    LIST_EACH(&account->attempts, link) {
        struct attempt *attempt = CONTAINER_OF(link, struct attempt, link);
        if (attempt->use == ATTEMPT_OPEN && str_equal(text_str(attempt->app), app) &&
            str_equal(text_str(attempt->app_instance), app_instance))
            return attempt;
    }
    return NULL;
}

static struct attempt *attempt_new(struct nimi_account *account, struct str app,
                                   struct str app_instance, int32_t ttl_s,
                                   const struct account_now *now) {
    struct attempt *attempt = MEM_NEW(struct attempt);
    uint64_t lasts_ms = 1000 * (uint64_t)(ttl_s <= 0                    ? ACCOUNT_LOGIN_S
                                          : ttl_s > ACCOUNT_LOGIN_MAX_S ? ACCOUNT_LOGIN_MAX_S
                                                                        : ttl_s);
    ulid_new(attempt->shown.id);
    random_token_new(attempt->shown.state);
    random_token_new(attempt->shown.nonce);
    attempt->app = text_copy(app);
    attempt->app_instance = text_copy(app_instance);
    attempt->expires_ms = now->ms + lasts_ms;
    attempt->shown.expires_unix_ms = now->unix_ms + (int64_t)lasts_ms;
    list_append(&account->attempts, &attempt->link);
    account->attempt_count++;
    return attempt;
}

static int begin_login(struct nimi_account *account, struct str app, struct str app_instance,
                       int32_t ttl_s, const struct account_now *now,
                       struct account_attempt *ret) {
    const unsigned from = TO(ACCOUNT_ANONYMOUS) | TO(ACCOUNT_LOGIN_PENDING) |
                          TO(ACCOUNT_EXPIRED) | TO(ACCOUNT_REAUTH_REQUIRED);
    if (!(from & TO(account->state)) || account->writing) return UNAVAILABLE;
    struct attempt *attempt = attempt_of_instance(account, app, app_instance);
    if (!attempt) {
        if (account->attempt_count >= ACCOUNT_ATTEMPTS_MAX) return ACCOUNT_FULL;
        attempt = attempt_new(account, app, app_instance, ttl_s, now);
        if (account->state != ACCOUNT_LOGIN_PENDING) {
            account->before_login = account->state == ACCOUNT_ANONYMOUS
                                        ? ACCOUNT_ANONYMOUS
                                        : ACCOUNT_REAUTH_REQUIRED;
            account_move(account, ACCOUNT_LOGIN_PENDING);
        }
        account_publish(account, NIMI_ACCOUNT_EVENT_TYPE_LOGIN_STARTED, DONE, NULL, now);
        account_publish_status(account, DONE, now);
    }
    *ret = attempt->shown;
    return DONE;
}

int account_begin_login(struct nimi_account *account, struct str app, struct str app_instance,
                        int32_t ttl_s, const struct account_now *now,
                        struct account_attempt *ret) {
    account_lock(account);
    tick(account, now);
    int reason = begin_login(account, app, app_instance, ttl_s, now, ret);
    account_unlock(account);
    return reason;
}

static struct attempt *attempt_find(struct nimi_account *account, struct str id) {
    LIST_EACH(&account->attempts, link) {
        struct attempt *attempt = CONTAINER_OF(link, struct attempt, link);
        if (str_equal(str_from(attempt->shown.id), id)) return attempt;
    }
    return NULL;
}

/* An attempt that has expired is gone, and as unknown as one that never was. */
static int take_proof(struct nimi_account *account, const struct account_proof *proof) {
    struct attempt *attempt = attempt_find(account, proof->attempt);
    if (!attempt || !str_equal(text_str(attempt->app), proof->app) ||
        !str_equal(text_str(attempt->app_instance), proof->app_instance))
        return NIMI_ACCOUNT_REASON_CODE_PROOF_MISMATCHED;
    if (attempt->use != ATTEMPT_OPEN) return NIMI_ACCOUNT_REASON_CODE_PROOF_CONSUMED;
    if (!same_secret(proof->state, str_from(attempt->shown.state)) ||
        !same_secret(proof->nonce, str_from(attempt->shown.nonce)))
        return NIMI_ACCOUNT_REASON_CODE_PROOF_MISMATCHED;
    if (account->state != ACCOUNT_LOGIN_PENDING || account->writing) return UNAVAILABLE;
    attempt->use = ATTEMPT_CHECKED;
    return DONE;
}

int account_take_proof(struct nimi_account *account, const struct account_proof *proof,
                       const struct account_now *now) {
    account_lock(account);
    struct attempt *attempt = attempt_find(account, proof->attempt);
    bool expired = attempt && now->ms >= attempt->expires_ms;
    tick(account, now);
    int reason = expired ? NIMI_ACCOUNT_REASON_CODE_PROOF_EXPIRED : take_proof(account, proof);
    account_unlock(account);
    return reason;
}

void account_return_proof(struct nimi_account *account, struct str id) {
    account_lock(account);
    struct attempt *attempt = attempt_find(account, id);
    if (attempt) attempt->use = ATTEMPT_OPEN;
    account_unlock(account);
}

void account_fail_proof(struct nimi_account *account, struct str id, int reason,
                        const struct account_now *now) {
    account_lock(account);
    struct attempt *attempt = attempt_find(account, id);
    if (attempt) attempt->use = ATTEMPT_USED;
    if (account->state == ACCOUNT_LOGIN_PENDING) {
        account_publish(account, NIMI_ACCOUNT_EVENT_TYPE_LOGIN_FAILED, reason, NULL, now);
        login_failed(account, reason, now);
    }
    account_unlock(account);
}

/* --- changes that wait for the disk ------------------------------------------------------- */

/* 0: no event. */
static const struct {
    unsigned from;
    enum account_state pending, done;
    enum nimi_account_event_type started, completed, failed;
} acts[] = {
    [ACCOUNT_LOGIN] = {TO(ACCOUNT_LOGIN_PENDING), ACCOUNT_LOGIN_PENDING, ACCOUNT_AUTHENTICATED,
                       0, NIMI_ACCOUNT_EVENT_TYPE_LOGIN_COMPLETED,
                       NIMI_ACCOUNT_EVENT_TYPE_LOGIN_FAILED},
    [ACCOUNT_REFRESH] = {TO(ACCOUNT_AUTHENTICATED) | TO(ACCOUNT_EXPIRED),
                         ACCOUNT_REFRESH_PENDING, ACCOUNT_AUTHENTICATED,
                         NIMI_ACCOUNT_EVENT_TYPE_REFRESH_STARTED,
                         NIMI_ACCOUNT_EVENT_TYPE_REFRESH_COMPLETED,
                         NIMI_ACCOUNT_EVENT_TYPE_REFRESH_FAILED},
    [ACCOUNT_LOGOUT] = {TO(ACCOUNT_AUTHENTICATED) | TO(ACCOUNT_EXPIRED) |
                            TO(ACCOUNT_REAUTH_REQUIRED),
                        ACCOUNT_LOGGING_OUT, ACCOUNT_ANONYMOUS,
                        NIMI_ACCOUNT_EVENT_TYPE_LOGOUT_STARTED,
                        NIMI_ACCOUNT_EVENT_TYPE_LOGOUT_COMPLETED, 0},
    [ACCOUNT_SWITCH] = {TO(ACCOUNT_AUTHENTICATED) | TO(ACCOUNT_EXPIRED) |
                            TO(ACCOUNT_REAUTH_REQUIRED),
                        ACCOUNT_SWITCHING, ACCOUNT_ANONYMOUS,
                        NIMI_ACCOUNT_EVENT_TYPE_SWITCH_STARTED,
                        NIMI_ACCOUNT_EVENT_TYPE_SWITCH_COMPLETED, 0},
};

static int begin_act(struct nimi_account *account, enum account_act act,
                     const struct account_material *material, const struct account_now *now) {
    if (act != ACCOUNT_LOGIN && account_is_foreign(account, now->by))
        return NIMI_ACCOUNT_REASON_CODE_CALLER_UNAUTHORIZED;
    if (!(acts[act].from & TO(account->state)) || account->writing) return UNAVAILABLE;
    if (material) {
        if (material->expires_unix_ms <= now->unix_ms)
            return NIMI_ACCOUNT_REASON_CODE_PROOF_EXPIRED;
        if (act == ACCOUNT_REFRESH && !str_equal(text_str(account->subject), material->subject))
            return NIMI_ACCOUNT_REASON_CODE_PROOF_MISMATCHED;
    }
    if (account->state != acts[act].pending) account_move(account, acts[act].pending);
    if (acts[act].started) account_publish(account, acts[act].started, DONE, NULL, now);
    account->writing = true;
    return DONE;
}

int account_begin(struct nimi_account *account, enum account_act act,
                  const struct account_material *material, const struct account_now *now) {
    account_lock(account);
    tick(account, now);
    int reason = begin_act(account, act, material, now);
    account_unlock(account);
    return reason;
}

/* One login was completed, so the others cannot be. */
static void use_attempts(struct nimi_account *account) {
    LIST_EACH(&account->attempts, link)
    CONTAINER_OF(link, struct attempt, link)->use = ATTEMPT_USED;
}

static void take_material(struct nimi_account *account, const struct account_material *from,
                          const struct account_now *now) {
    if (!str_equal(text_str(account->subject), from->subject))
        account_end_bindings(account, UNAVAILABLE, now);
    account_forget(account);
    account->subject = text_copy(from->subject);
    account->issuer = text_copy(from->issuer);
    account->scope = text_copy(from->scope);
    if (from->session.len) {
        account->token = text_copy(from->token);
        account->session = text_copy(from->session);
    }
    account->expires_unix_ms = from->expires_unix_ms;
    account->expires_ms = account_loop_time(from->expires_unix_ms, now);
}

/* Nothing is certain any more but what the disk will say. */
static int end_unwritten(struct nimi_account *account, enum account_act act,
                         const struct account_now *now) {
    const int reason = NIMI_ACCOUNT_REASON_CODE_CUSTODY_UNAVAILABLE;
    account_end_bindings(account, reason, now);
    if (acts[act].failed) account_publish(account, acts[act].failed, reason, NULL, now);
    account_forget(account);
    account->known = false;
    account->retry_ms = now->ms + ACCOUNT_RETRY_MS;
    account_move(account, ACCOUNT_UNAVAILABLE);
    account_publish(account, NIMI_ACCOUNT_EVENT_TYPE_CUSTODY_UNAVAILABLE, reason, NULL, now);
    account_publish_status(account, reason, now);
    return reason;
}

static int end_act(struct nimi_account *account, enum account_act act,
                   const struct account_material *material, const struct account_now *now) {
    if (material) {
        take_material(account, material, now);
    } else {
        account_end_bindings(account, DONE, now);
        account_forget(account);
    }
    account_move(account, acts[act].done);
    account_publish(account, acts[act].completed, DONE, NULL, now);
    account_publish_status(account, DONE, now);
    if (material)
        switch_bindings(account, BINDING_SUSPENDED, BINDING_ACTIVE,
                        NIMI_ACCOUNT_EVENT_TYPE_BINDING_ACTIVATED, DONE, now);
    return DONE;
}

int account_end(struct nimi_account *account, enum account_act act,
                const struct account_material *material, const struct err *failed,
                const struct account_now *now) {
    account_lock(account);
    account->writing = false;
    if (act == ACCOUNT_LOGIN) use_attempts(account);
    int reason =
        failed ? end_unwritten(account, act, now) : end_act(account, act, material, now);
    account_unlock(account);
    return reason;
}

/* --- the token ---------------------------------------------------------------------------- */

static int give_token(struct nimi_account *account, struct str session,
                      const struct str *scopes, size_t scope_count, struct text *ret,
                      int64_t *ret_expires_unix_ms) {
    if (account->state != ACCOUNT_AUTHENTICATED) return UNAVAILABLE;
    if (!account->token.at) return NIMI_ACCOUNT_REASON_CODE_CUSTODY_UNAVAILABLE;
    if (!session.len || !str_equal(session, text_str(account->session)))
        return NIMI_ACCOUNT_REASON_CODE_CALLER_UNAUTHORIZED;
    for (size_t i = 0; i < scope_count; i++) {
        if (!guard_scope_has(text_str(account->scope), scopes[i]))
            return NIMI_ACCOUNT_REASON_CODE_CALLER_UNAUTHORIZED;
    }
    *ret = text_copy(text_str(account->token));
    *ret_expires_unix_ms = account->expires_unix_ms;
    return DONE;
}

int account_token(struct nimi_account *account, struct str session, const struct str *scopes,
                  size_t scope_count, const struct account_now *now, struct text *ret,
                  int64_t *ret_expires_unix_ms) {
    account_lock(account);
    tick(account, now);
    int reason =
        account_is_foreign(account, now->by)
            ? NIMI_ACCOUNT_REASON_CODE_CALLER_UNAUTHORIZED
            : give_token(account, session, scopes, scope_count, ret, ret_expires_unix_ms);
    account_unlock(account);
    return reason;
}
