#include "contract/weir/api.h"

#include "base/log.h"
#include "contract/caller.h"
#include "contract/weir/inner.h"

static bool api_caller_find(struct route_call *call, const struct contract_callers *callers,
                            struct api_caller *ret, struct route_failure *ret_failure) {
    struct contract_caller found;
    if (!contract_caller_find(call, callers, &found, ret_failure)) return false;
    if (!found.proved) {
        *ret = (struct api_caller){.all_workspaces = true, .all_users = true};
        return true;
    }
    if (!api_caller_set(ret, found.identity.workspace, found.identity.user)) {
        *ret_failure = contract_caller_unknown();
        return false;
    }
    ret->proved = true;
    return true;
}

static bool only_reads(struct route_call *call) {
    struct str method = exchange_method(route_exchange(call));
    return str_equal(method, STR("GET")) || str_equal(method, STR("HEAD"));
}

/* Whether all callers are refused now. */
static bool is_shut(struct route_call *call, const struct api_instance *instance,
                    struct route_failure *ret) {
    bool stopping = instance->loaded && instance->stopping && !only_reads(call);
    if (instance->loaded && !stopping) return false;
    route_field(call, STR("retry-after"), STR("1"));
    *ret = stopping
               ? (struct route_failure){503, STR("STOPPING"),
                                        STR("the server is stopping; try again"), STR_EMPTY}
               : (struct route_failure){503, STR("LOADING"),
                                        STR("the store is being opened; try again"), STR_EMPTY};
    return true;
}

/* Runs before the body is read. An unidentified caller gets no further. */
static enum route_entry guard(struct route_call *call, const struct route *row, void *ctx,
                              struct route_failure *ret) {
    struct api_instance *instance = ctx;
    struct api_caller caller;
    (void)row;
    if (is_shut(call, instance, ret)) return ENTRY_REFUSED;
    if (!api_caller_find(call, &instance->callers, &caller, ret)) return ENTRY_REFUSED;
    return caller.proved ? ENTRY_PROVED : ENTRY_TRUSTED;
}

/* Check again when the body has arrived: keys may have changed, or the stop may have begun. */
bool api_identify(struct route_call *call, struct api_instance *instance,
                  struct api_caller *ret) {
    struct route_failure failure;
    if (is_shut(call, instance, &failure)) {
        route_fail(call, &failure);
        return false;
    }
    if (api_caller_find(call, &instance->callers, ret, &failure)) return true;
    route_fail(call, &failure);
    return false;
}

bool api_caller_set(struct api_caller *caller, struct str workspace, struct str user) {
    *caller = (struct api_caller){.all_users = user.len == 0};
    if (workspace.len + user.len > sizeof(caller->names)) return false;
    memcpy(caller->names, workspace.at, workspace.len);
    if (user.len) memcpy(caller->names + workspace.len, user.at, user.len);
    caller->workspace_len = workspace.len;
    caller->user_len = user.len;
    return true;
}

size_t api_caller_bytes(const struct api_caller *caller) {
    return offsetof(struct api_caller, names) + caller->workspace_len + caller->user_len;
}

struct str api_workspace(const struct api_caller *caller) {
    return str_of(caller->names, caller->workspace_len);
}

struct str api_user(const struct api_caller *caller) {
    return str_of(caller->names + caller->workspace_len, caller->user_len);
}

struct audit_actor api_actor(const struct api_caller *caller) {
    return (struct audit_actor){STR("weir"), caller->all_users ? STR_EMPTY : api_user(caller)};
}

bool api_may_see(const struct api_caller *caller, struct str workspace, struct str user) {
    return (caller->all_workspaces || str_equal(api_workspace(caller), workspace)) &&
           (caller->all_users || str_equal(api_user(caller), user));
}

void api_refuse_store(struct route_call *call, const char *what, const struct err *failed) {
    log_often(LOG_WARNING, "%s: %s", what, failed->text);
    route_refuse(call, 503, STR("STORE_UNAVAILABLE"),
                 "the store cannot do that now; try again later");
}

/* Refuse a run that does not exist or that this caller may not see, with the same answer. */
static void api_refuse_unknown_run(struct route_call *call) {
    route_refuse(call, 404, STR("RUN_NOT_FOUND"), "there is no such run");
}

void api_refuse_unknown_run_late(struct route_call *call, void *ctx) {
    (void)ctx;
    api_refuse_unknown_run(call);
}

bool api_run_id(struct route_call *call, uint64_t *ret) {
    if (str_to_u64(lent_read(route_parameter(call, STR("id"))), ret) && *ret > 0) return true;
    api_refuse_unknown_run(call);
    return false;
}

#define BODY_MAX_BYTES (256 * KIB) /* fits a memory in which every byte is escaped */

static const struct route rows[] = {
    /* clang-format off */
    {STR_INIT("GET"),    STR_INIT("/weir/v1/runs"),             api_list_runs,     ROUTE_GUARDED, ROUTE_HEAD},
    {STR_INIT("POST"),   STR_INIT("/weir/v1/runs"),             api_start_run,     ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("GET"),    STR_INIT("/weir/v1/runs/{id}"),        api_get_run,       ROUTE_GUARDED, ROUTE_HEAD},
    {STR_INIT("POST"),   STR_INIT("/weir/v1/runs/{id}/cancel"), api_cancel_run,    ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("POST"),   STR_INIT("/weir/v1/runs/{id}/replay"), api_replay_run,    ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("GET"),    STR_INIT("/weir/v1/runs/{id}/events"), api_run_events,    ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("GET"),    STR_INIT("/weir/v1/approvals"),        api_list_approvals,  ROUTE_GUARDED, ROUTE_HEAD},
    {STR_INIT("GET"),    STR_INIT("/weir/v1/approvals/{id}"),   api_get_approval,    ROUTE_GUARDED, ROUTE_HEAD},
    {STR_INIT("POST"),   STR_INIT("/weir/v1/approvals/{id}"),   api_answer_approval, ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("GET"),    STR_INIT("/weir/v1/usage"),            api_get_usage,     ROUTE_GUARDED, ROUTE_HEAD},
    {STR_INIT("GET"),    STR_INIT("/weir/v1/status"),           api_get_status,    ROUTE_GUARDED, ROUTE_HEAD},
    {STR_INIT("GET"),    STR_INIT("/weir/v1/agents"),           api_list_agents,   ROUTE_GUARDED, ROUTE_HEAD},
    {STR_INIT("GET"),    STR_INIT("/weir/v1/budgets"),          api_list_budgets,  ROUTE_GUARDED, ROUTE_HEAD},
    {STR_INIT("GET"),    STR_INIT("/weir/v1/health"),           api_get_health,    ROUTE_GUARDED, ROUTE_HEAD},
    {STR_INIT("GET"),    STR_INIT("/weir/v1/settings"),         api_get_settings,  ROUTE_GUARDED, ROUTE_HEAD},
    {STR_INIT("GET"),    STR_INIT("/weir/v1/audit"),            api_list_audit,    ROUTE_GUARDED, ROUTE_HEAD},
    {STR_INIT("GET"),    STR_INIT("/weir/v1/audit/chain"),      api_get_audit_chain, ROUTE_GUARDED, ROUTE_HEAD},
    {STR_INIT("GET"),    STR_INIT("/weir/v1/sessions"),         api_list_sessions,   ROUTE_GUARDED, ROUTE_HEAD},
    {STR_INIT("DELETE"), STR_INIT("/weir/v1/sessions/{id}"),    api_erase_session,   ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("GET"),    STR_INIT("/weir/v1/sessions/{id}/export"), api_export_session, ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("POST"),   STR_INIT("/weir/v1/sessions/{id}/fork"), api_fork_session, ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("GET"),    STR_INIT("/weir/v1/memories"),         api_list_memories, ROUTE_GUARDED, ROUTE_HEAD},
    {STR_INIT("POST"),   STR_INIT("/weir/v1/memories"),         api_put_memory,    ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("DELETE"), STR_INIT("/weir/v1/memories/{key}"),   api_remove_memory, ROUTE_GUARDED, ROUTE_PLAIN},
    /* clang-format on */
};

void api_table(void *ctx, struct route_table *ret) {
    struct api_instance *instance = ctx;
    *ret = (struct route_table){.rows = rows,
                                .row_count = ARRAY_LEN(rows),
                                .body_max_bytes = BODY_MAX_BYTES,
                                .body_stretch_ms = instance->settings->body_stretch_ms,
                                .body_stretch_bytes = instance->settings->body_stretch_bytes,
                                .guard = guard,
                                .ctx = instance};
}
