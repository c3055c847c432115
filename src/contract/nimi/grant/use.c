#include "contract/nimi/grant/use.h"

#include "base/clock.h"
#include "base/mem.h"
#include "proto/nimi.pb.h"

#define CROSS_APP STR("runtime.app.send.cross_app")

static struct grants *grants_of(const struct nimi_call *call) {
    return call->instance->runtime->grants;
}

/* --- the token ---------------------------------------------------------------------------- */

static bool takes_notice(const struct nimi_row *row) {
    static const struct str without[] = {
        STR_INIT("/nimi.runtime.v1.RuntimeAccountService/"),
        STR_INIT("/nimi.runtime.v1.RuntimeAuthService/"),
        STR_INIT("/nimi.runtime.v1.RuntimeGrantService/"),
    };
    if (row->guard == GUARD_OPEN) return false;
    for (size_t i = 0; i < ARRAY_LEN(without); i++) {
        if (str_starts(row->path, without[i])) return false;
    }
    return true;
}

static bool refuse_state(enum grant_state state, struct fault *fault) {
    switch (state) {
    case GRANT_GOOD: return true;
    case GRANT_REVOKED:
        return fault_set_code(fault, NIMI_APP_TOKEN_REVOKED, ERR_PERMISSION_DENIED,
                              "the access token was revoked; authorize again");
    case GRANT_EXPIRED:
        return fault_set_code(fault, NIMI_APP_TOKEN_EXPIRED, ERR_PERMISSION_DENIED,
                              "the access token has expired; authorize again");
    case GRANT_UNKNOWN: break;
    }
    return fault_set(fault, NIMI_PRINCIPAL_UNAUTHORIZED,
                     "the app of x-nimi-app-id has no such access token, or this is not its "
                     "secret");
}

static bool has_scope(const struct grant *grant, struct str scope, struct fault *fault) {
    return scope.len == 0 || grant_covers(grant->scopes, grant->scope_count, scope) ||
           fault_set(fault, NIMI_APP_SCOPE_FORBIDDEN,
                     "the access token lacks the scope " STR_FMT, STR_ARG(scope));
}

/* With the lock. NULL: refused. Without an id, or an app, none is found. */
static const struct grant *use_look(const struct nimi_call *call, struct fault *fault) {
    const struct grant_use *use = call->grant;
    const struct grant *grant = NULL;
    enum grant_state state =
        grants_check(grants_of(call), str_of(use->id, ULID_LEN), use->digest,
                     call->envelope.app_id, clock_unix_ms(), &grant);
    if (!refuse_state(state, fault)) return NULL;
    return has_scope(grant, guard_capability(call->row->guard), fault) ? grant : NULL;
}

static bool use_is_good(const struct nimi_call *call, struct fault *fault) {
    grants_lock(grants_of(call));
    bool good = use_look(call, fault) != NULL;
    grants_unlock(grants_of(call));
    return good;
}

void grant_use_take(struct nimi_call *call) {
    size_t ids, secrets;
    struct str id = lent_read(rpc_metadata(call->rpc, STR("x-nimi-access-token-id"), &ids));
    struct str secret =
        lent_read(rpc_metadata(call->rpc, STR("x-nimi-access-token-secret"), &secrets));
    if ((ids == 0 && secrets == 0) || !takes_notice(call->row)) return;
    call->grant = MEM_NEW(struct grant_use);
    if (ids == 1 && secrets == 1 && id.len == ULID_LEN) memcpy(call->grant->id, id.at, id.len);
    call->grant_id = rpc_keep(call->rpc, str_from(call->grant->id));
    random_token_digest(secret, call->grant->digest);
}

bool grant_use_begin(struct nimi_call *call, struct fault *fault) {
    return !call->grant || use_is_good(call, fault);
}

/* --- the request -------------------------------------------------------------------------- */

static struct str scope_of_request(const struct nimi_row *row, const void *request) {
    const struct nimi_send_app_message_request *message = request;
    if (row->type != &nimi_send_app_message_request_table) return STR_EMPTY;
    return str_equal(message->from_app_id, message->to_app_id) ? STR_EMPTY : CROSS_APP;
}

/* Whether the request asks models, and which one; empty: several, or none by name. */
static bool asks_model(const struct nimi_row *row, const void *request, struct str *ret) {
    const struct nimi_scenario_request_head *head = NULL;
    *ret = STR_EMPTY;
    if (row->type == &nimi_stream_scenario_request_table) {
        head = ((const struct nimi_stream_scenario_request *)request)->head;
    } else if (row->type == &nimi_execute_scenario_request_table) {
        head = ((const struct nimi_execute_scenario_request *)request)->head;
    } else if (row->type == &nimi_submit_scenario_job_request_table) {
        head = ((const struct nimi_submit_scenario_job_request *)request)->head;
    } else if (row->type != &nimi_submit_workflow_request_table &&
               row->type != &nimi_open_realtime_session_request_table) {
        return false;
    }
    if (head) *ret = head->model_id;
    return true;
}

static bool selects_model(const struct grant *grant, const struct nimi_row *row,
                          const void *request, struct fault *fault) {
    const struct nimi_resource_selectors *selectors = grant->selectors;
    struct str model;
    if (!selectors || !asks_model(row, request, &model)) return true;
    for (size_t i = 0; i < selectors->labels_count; i++) {
        if (!str_equal(selectors->labels[i].key, GRANT_MODEL_LABEL) ||
            str_equal(selectors->labels[i].value, model))
            continue;
        return fault_set(fault, NIMI_APP_RESOURCE_OUT_OF_SCOPE,
                         "the access token lets ask the model " STR_FMT " alone",
                         STR_ARG(str_head(selectors->labels[i].value, 80)));
    }
    return true;
}

/* With issuers an anonymous caller stays one: a grant adds nothing to what its caller may. */
static bool bind_subject(struct nimi_call *call, const struct grant *grant, struct str *named,
                         struct fault *fault) {
    struct str caller = call->subject.len ? call->subject : named ? *named : STR_EMPTY;
    if (caller.len && !str_equal(caller, grant->subject))
        return fault_set(fault, NIMI_PRINCIPAL_UNAUTHORIZED,
                         "the call is made for another subject than the access token's");
    if (named && !call->instance->settings->issuers) *named = nimi_keep(call, grant->subject);
    return true;
}

bool grant_use_bind(struct nimi_call *call, void *request, struct fault *fault) {
    if (!call->grant) return true;
    struct grants *grants = grants_of(call);
    grants_lock(grants);
    const struct grant *grant = use_look(call, fault);
    bool ok = grant && has_scope(grant, scope_of_request(call->row, request), fault) &&
              selects_model(grant, call->row, request, fault) &&
              bind_subject(call, grant, subject_in(&call->row->subject, request), fault);
    grants_unlock(grants);
    struct timer *timer = &call->instance->grant_uses;
    if (ok && call->row->kind == RPC_SERVER_STREAM && !timer_waits(timer))
        timer_start(timer, GRANT_USE_CHECK_MS);
    return ok;
}

/* --- streams that last -------------------------------------------------------------------- */

static bool lasts(const struct nimi_call *call) {
    return call->grant && !call->over && call->row->kind == RPC_SERVER_STREAM;
}

static void on_uses(void *ctx) {
    struct nimi_instance *instance = ctx;
    bool any = false;
    LIST_EACH(&instance->calls, link) {
        struct nimi_call *call = CONTAINER_OF(link, struct nimi_call, link);
        struct fault fault = {.reason = 0};
        if (!lasts(call)) continue;
        any = true;
        if (call->row->ends == CLOSE_DONE || !call->work || use_is_good(call, &fault)) continue;
        nimi_cut(call, &fault);
    }
    if (any) timer_start(&instance->grant_uses, GRANT_USE_CHECK_MS);
}

void grant_uses_init(struct nimi_instance *instance) {
    timer_init(&instance->grant_uses, instance->host->loop, on_uses, instance);
}
