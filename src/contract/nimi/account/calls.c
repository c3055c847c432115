#include "contract/nimi/account/calls.h"

#include "base/id.h"
#include "base/mem.h"
#include "contract/nimi/account/caller.h"
#include "contract/nimi/account/hold.h"
#include "contract/nimi/moment.h"
#include "contract/nimi/subscription.h"

/* --- who calls ---------------------------------------------------------------------------- */

#define UNAUTHORIZED NIMI_ACCOUNT_REASON_CODE_CALLER_UNAUTHORIZED

/* Why each mode is refused. */
static const struct {
    int any, token;
} modes[] = {
    [NIMI_ACCOUNT_CALLER_MODE_UNSPECIFIED] = {UNAUTHORIZED, UNAUTHORIZED},
    [NIMI_ACCOUNT_CALLER_MODE_LOCAL_FIRST_PARTY_APP] = {ACCOUNT_DONE, ACCOUNT_DONE},
    [NIMI_ACCOUNT_CALLER_MODE_DESKTOP_SHELL] = {ACCOUNT_DONE, ACCOUNT_DONE},
    [NIMI_ACCOUNT_CALLER_MODE_DESKTOP_LAUNCHED_AVATAR] =
        {NIMI_ACCOUNT_REASON_CODE_AVATAR_BINDING_ONLY,
         NIMI_ACCOUNT_REASON_CODE_AVATAR_BINDING_ONLY},
    [NIMI_ACCOUNT_CALLER_MODE_MOD] = {UNAUTHORIZED,
                                      NIMI_ACCOUNT_REASON_CODE_MOD_TOKEN_FORBIDDEN},
    [NIMI_ACCOUNT_CALLER_MODE_WEB_CLOUD] = {UNAUTHORIZED, UNAUTHORIZED},
    [NIMI_ACCOUNT_CALLER_MODE_EXTERNAL_PRINCIPAL] = {UNAUTHORIZED, UNAUTHORIZED},
};

static int reason_of_caller(const struct nimi_account_caller *caller, enum account_wish wish) {
    if (!caller || caller->mode < 0 || caller->mode >= (int)ARRAY_LEN(modes))
        return UNAUTHORIZED;
    int reason =
        wish == ACCOUNT_WISH_TOKEN ? modes[caller->mode].token : modes[caller->mode].any;
    if (reason == ACCOUNT_DONE && !(id_ok(caller->app_id) && id_ok(caller->app_instance_id)))
        return UNAUTHORIZED;
    return reason;
}

bool account_admit(struct nimi_call *call, const struct nimi_account_caller *caller,
                   enum account_wish wish, int *ret_reason) {
    struct str named = call->envelope.app_id;
    if (caller && caller->app_id.len && named.len && !str_equal(named, caller->app_id)) {
        nimi_refuse_for(
            call, NIMI_PROTOCOL_DOMAIN_FIELD_CONFLICT,
            "the caller's app_id is not the app of x-nimi-app-id; a caller speaks for one "
            "app");
        return false;
    }
    *ret_reason = reason_of_caller(caller, wish);
    return true;
}

struct nimi_account *account_of(const struct nimi_call *call) {
    return call->instance->runtime->account;
}

struct account_now account_now_of(const struct nimi_call *call) {
    return account_now(call->loop, call->subject);
}

/* --- the state ---------------------------------------------------------------------------- */

static void refuse_status(struct nimi_call *call, int reason) {
    nimi_reply(
        call, &nimi_get_account_session_status_response_table,
        &(struct nimi_get_account_session_status_response){
            .reason_code = account_common_reason(reason), .account_reason_code = reason});
}

static void show_status(struct nimi_call *call, const struct account_held *held) {
    const struct account_now now = account_now_of(call);
    struct nimi_account *account = account_of(call);
    struct account_status status;
    (void)held;
    account_tick(account, &now);
    account_status(account, &status);
    struct str subject = str_from(status.subject);
    if (call->subject.len && subject.len && !str_equal(call->subject, subject)) {
        refuse_status(call, UNAUTHORIZED);
        return;
    }
    const struct nimi_account_projection projection = {.account_id = subject};
    nimi_reply(call, &nimi_get_account_session_status_response_table,
               &(struct nimi_get_account_session_status_response){
                   .state = (int32_t)status.state,
                   .account_projection = subject.len ? &projection : NULL,
                   .reason_code = account_common_reason(status.reason),
                   .account_reason_code = status.reason});
}

void account_get_status(struct nimi_call *call, const void *request) {
    const struct nimi_get_account_session_status_request *from = request;
    int reason;
    if (!account_admit(call, from->caller, ACCOUNT_WISH_ANY, &reason)) return;
    if (reason == ACCOUNT_DONE) {
        account_hold(call, &(struct account_held){.go_on = show_status});
    } else {
        refuse_status(call, reason);
    }
}

/* --- subscribing -------------------------------------------------------------------------- */

/* One event that says why, then OK. It shows nothing of the account. */
static void refuse_subscriber(struct nimi_call *call, int reason) {
    char id[ULID_LEN + 1];
    ulid_new(id);
    const struct google_timestamp at = nimi_moment(account_now_of(call).unix_ms);
    nimi_reply(call, &nimi_account_session_event_table,
               &(struct nimi_account_session_event){
                   .event_id = str_of(id, ULID_LEN),
                   .emitted_at = &at,
                   .event_type = NIMI_ACCOUNT_EVENT_TYPE_ACCOUNT_STATUS,
                   .reason_code = account_common_reason(reason),
                   .account_reason_code = reason});
}

/* The lock is held. */
static void send_snapshot(struct nimi_call *call, uint64_t number, bool truncated) {
    char id[ULID_LEN + 1];
    struct nimi_account_projection projection;
    struct buf bytes;
    ulid_new(id);
    const struct google_timestamp at = nimi_moment(account_now_of(call).unix_ms);
    struct nimi_account_session_event event = account_snapshot(account_of(call), &projection);
    event.event_id = str_of(id, ULID_LEN);
    event.sequence = number;
    event.emitted_at = &at;
    event.replay_truncated = truncated;
    buf_init(&bytes, 4 * KIB);
    if (pb_encode(&nimi_account_session_event_table, &event, &bytes))
        rpc_send(call->rpc, buf_str(&bytes));
    buf_done(&bytes);
}

/* The snapshot, then what came after `after`, then what comes. Nothing is published between, so
 * nothing is missing or repeated. */
static void begin_subscription(struct nimi_call *call, const struct account_held *held) {
    struct nimi_account *account = account_of(call);
    const struct account_now now = account_now_of(call);
    bool reaches;
    account_tick(account, &now);
    account_lock(account);
    if (account_is_foreign(account, call->subject)) {
        account_unlock(account);
        refuse_subscriber(call, UNAUTHORIZED);
        return;
    }
    struct account_filter *filter = MEM_NEW(struct account_filter);
    *filter = (struct account_filter){nimi_keep(call, held->app),
                                      nimi_keep(call, held->app_instance), call->subject};
    const struct subscription_options options = {.topic = account_topic(account),
                                                 .start = TOPIC_AFTER,
                                                 .after = held->after,
                                                 .wants = account_wants,
                                                 .filter = filter};
    uint64_t number = account_take_number(account);
    struct subscription *subscription = subscription_start(call, &options, &reaches);
    send_snapshot(call, number, held->after && !reaches);
    account_unlock(account);
    subscription_settle(call, subscription);
}

void account_subscribe(struct nimi_call *call, const void *request) {
    const struct nimi_subscribe_account_session_events_request *from = request;
    int reason;
    if (!account_admit(call, from->caller, ACCOUNT_WISH_ANY, &reason)) return;
    if (reason == ACCOUNT_DONE) {
        account_hold(call, &(struct account_held){.app = from->caller->app_id,
                                                  .app_instance = from->caller->app_instance_id,
                                                  .after = from->after_sequence,
                                                  .go_on = begin_subscription});
    } else {
        refuse_subscriber(call, reason);
    }
}

/* --- bindings ----------------------------------------------------------------------------- */

static void reply_issued(struct nimi_call *call, int reason, struct str bytes) {
    struct arena *arena = arena_new(16 * BINDINGS_RELATION_MAX_BYTES + KIB);
    struct nimi_scoped_app_binding_relation relation;
    struct err e;
    bool is = bytes.len && pb_decode_view(&nimi_scoped_app_binding_relation_table, bytes, arena,
                                          &relation, &e);
    /* The carrier names the binding and proves nothing. */
    nimi_reply(call, &nimi_issue_scoped_app_binding_response_table,
               &(struct nimi_issue_scoped_app_binding_response){
                   .accepted = is,
                   .binding_id = is ? relation.binding_id : STR_EMPTY,
                   .binding_carrier = is ? relation.binding_id : STR_EMPTY,
                   .relation = is ? &relation : NULL,
                   .reason_code = account_common_reason(reason),
                   .account_reason_code = reason});
    arena_free(arena);
}

static bool relation_fits(const struct nimi_scoped_app_binding_relation *relation,
                          struct fault *fault) {
    size_t len = pb_encoded_len(&nimi_scoped_app_binding_relation_table, relation);
    return len <= BINDINGS_RELATION_MAX_BYTES / 2 ||
           fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                     "the relation has %zu bytes, and %zu are allowed", len,
                     BINDINGS_RELATION_MAX_BYTES / 2);
}

/* What a relation must name. The app is the caller's own. */
static int reason_of_relation(const struct nimi_account_caller *caller,
                              const struct nimi_scoped_app_binding_relation *of) {
    if (!of || !id_ok(of->runtime_app_id) || !id_ok(of->agent_id))
        return NIMI_ACCOUNT_REASON_CODE_BINDING_STALE;
    if (!str_equal(of->runtime_app_id, caller->app_id) ||
        !str_equal(of->app_instance_id, caller->app_instance_id))
        return UNAUTHORIZED;
    bool is_avatars = of->purpose == NIMI_SCOPED_APP_BINDING_PURPOSE_AVATAR_INTERACTION_CONSUME;
    if (is_avatars &&
        !(of->avatar_instance_id.len && of->conversation_anchor_id.len && of->window_id.len))
        return NIMI_ACCOUNT_REASON_CODE_BINDING_STALE;
    return ACCOUNT_DONE;
}

static void issue(struct nimi_call *call,
                  const struct nimi_issue_scoped_app_binding_request *from) {
    const struct account_now now = account_now_of(call);
    struct fault fault;
    struct buf bytes;
    if (!relation_fits(from->relation, &fault)) {
        nimi_refuse(call, &fault);
        return;
    }
    buf_init(&bytes, 2 * BINDINGS_RELATION_MAX_BYTES);
    int reason =
        account_bind(account_of(call), from->relation, from->ttl_seconds, &now, &bytes);
    account_arm(call->instance);
    if (reason == ACCOUNT_FULL) {
        nimi_refuse_code(
            call, NIMI_APP_AUTHORIZATION_DENIED, ERR_RESOURCE_EXHAUSTED,
            "an app's instance may have %d bindings, and all together %d; revoke some",
            BINDINGS_PER_INSTANCE, BINDINGS_MAX);
    } else {
        reply_issued(call, reason, buf_str(&bytes));
    }
    buf_done(&bytes);
}

void account_issue_binding(struct nimi_call *call, const void *request) {
    const struct nimi_issue_scoped_app_binding_request *from = request;
    int reason;
    if (!account_admit(call, from->caller, ACCOUNT_WISH_ANY, &reason)) return;
    if (reason == ACCOUNT_DONE) reason = reason_of_relation(from->caller, from->relation);
    if (reason == ACCOUNT_DONE) {
        issue(call, from);
    } else {
        reply_issued(call, reason, STR_EMPTY);
    }
}

static void reply_revoked(struct nimi_call *call, int reason, struct str bytes) {
    struct arena *arena = arena_new(16 * BINDINGS_RELATION_MAX_BYTES + KIB);
    struct nimi_scoped_app_binding_relation relation;
    struct err e;
    bool is = bytes.len && pb_decode_view(&nimi_scoped_app_binding_relation_table, bytes, arena,
                                          &relation, &e);
    nimi_reply(call, &nimi_revoke_scoped_app_binding_response_table,
               &(struct nimi_revoke_scoped_app_binding_response){
                   .accepted = is,
                   .relation = is ? &relation : NULL,
                   .reason_code = is ? NIMI_ACTION_EXECUTED : account_common_reason(reason),
                   .account_reason_code = reason});
    arena_free(arena);
}

void account_revoke_binding(struct nimi_call *call, const void *request) {
    const struct nimi_revoke_scoped_app_binding_request *from = request;
    const struct account_now now = account_now_of(call);
    struct buf bytes;
    int reason;
    if (!account_admit(call, from->caller, ACCOUNT_WISH_ANY, &reason)) return;
    buf_init(&bytes, 2 * BINDINGS_RELATION_MAX_BYTES);
    if (reason == ACCOUNT_DONE) {
        int why = from->reason_code ? from->reason_code : ACCOUNT_DONE;
        reason = account_unbind(account_of(call), from->binding_id, from->caller->app_id,
                                from->caller->app_instance_id, why, &now, &bytes);
    }
    reply_revoked(call, reason, buf_str(&bytes));
    buf_done(&bytes);
}
