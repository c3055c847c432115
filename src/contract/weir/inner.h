/* inner: what the files of these routes share. Private to this contract. */
#ifndef WEIR_CONTRACT_WEIR_INNER_H
#define WEIR_CONTRACT_WEIR_INNER_H

#include "contract/late.h"
#include "contract/run_summary.h"
#include "contract/weir/api.h"
#include "route/route_json.h"
#include "store/audit_record.h"
#include "wire/event_json.h"

/* A request while it is read. Each step that fails sends the refusal itself. */
struct api_request {
    struct route_call *call;
    struct arena *arena; /* holds its values; arena_free() ends the request */
    struct api_caller caller;
};

/* Identify the caller, and check that the query has no parameters except `names` (ends with NULL; NULL:
 * none). */
MUST_CHECK bool api_request_begin(struct api_request *request, struct route_call *call,
                                  struct api_instance *instance, const char *const *names);

/* The same for what shows the daemon as a whole: its operators may see it, not the token of a single
 * user. There are no parameters. */
MUST_CHECK bool api_view_begin(struct api_request *request, struct route_call *call,
                               struct api_instance *instance);

/* Always false. */
PRINTF_LIKE(3, 4)
bool api_request_refuse(struct api_request *request, int status, const char *format, ...);

/* Whether the query has this parameter, whatever its value. */
bool api_query_has(struct route_call *call, struct str name);

/* Read a query parameter; empty or 0 when it is absent. */
MUST_CHECK bool api_request_value(struct api_request *request, struct str name,
                                  struct str *ret);
MUST_CHECK bool api_request_number(struct api_request *request, struct str name, int64_t *ret);

/* Whether the body has no other members than `names`, and each once; what is no object has none. A
 * misspelt member must not be taken for one that was left out: a decision without its `args`. */
MUST_CHECK bool api_request_members(struct api_request *request, struct json body,
                                    const char *const *names);

/* Read a member of the body that is a string; empty when it is absent. An invalid one is 422 (K7). */
MUST_CHECK bool api_request_text(struct api_request *request, struct json body, struct str name,
                                 struct str *ret);

/* Read the limit: `usual` when absent, never above `most`. */
MUST_CHECK bool api_request_limit(struct api_request *request, size_t usual, size_t most,
                                  size_t *ret);

/* Whose entries to list: those of the query, within what the caller may see. at == NULL: those
 * of every workspace or user. */
MUST_CHECK bool api_request_whose(struct api_request *request, struct str *ret_workspace,
                                  struct str *ret_user);

/* The session in the path. Its owner is the one in the query, else the caller, else the default
 * of callers without a name. The result lies in the request's arena. */
MUST_CHECK bool api_request_session(struct api_request *request, struct session_name *ret);

/* Identify the caller. False: the refusal has been sent.
 *
 * A token of any contract names a workspace, and perhaps a user of it; the caller sees that
 * much. If the operator has configured no token or key, only peers on this machine are
 * admitted, and they see everything. The demo's own key does not count as configured, but a
 * token made with it still narrows what its caller sees. Source: checks.md K6, K23. */
MUST_CHECK bool api_identify(struct route_call *call, struct api_instance *instance,
                             struct api_caller *ret);

/* The workspace and the user of a caller who may not see all. */
struct str api_workspace(const struct api_caller *caller);
struct str api_user(const struct api_caller *caller);

/* Who changes something, for the audit log. */
struct audit_actor api_actor(const struct api_caller *caller);

bool api_may_see(const struct api_caller *caller, struct str workspace, struct str user);

/* The store has failed: 503. Why is for the log alone; `what` was asked of it. */
void api_refuse_store(struct route_call *call, const char *what, const struct err *failed);

/* Refuse a run that there is not, after a search whose length would reveal which of the two it was (late.h). */
late_refuse_fn api_refuse_unknown_run_late;

/* Read the run id in the path. False: it is not one, and the refusal has been sent. */
MUST_CHECK bool api_run_id(struct route_call *call, uint64_t *ret);

/* What a run asks, as one JSON object. answer: one JSON value, or empty. */
void api_write_approval(struct json_writer *json, const struct pending_view *view,
                        const char *state, struct str answer);

/* The question that the run waits with, in memory here. False: there is none. */
MUST_CHECK bool api_waiting(struct api_instance *instance, uint64_t run, struct arena *arena,
                            struct pending_view *ret);

/* All runs that the caller may see, newest first: GET /weir/v1/runs without a session. */
void api_list_newest_runs(struct route_call *call, struct api_instance *instance);

route_fn api_list_runs, api_start_run, api_get_run, api_cancel_run, api_replay_run,
    api_run_events;
route_fn api_list_approvals, api_get_approval, api_answer_approval;
route_fn api_get_usage, api_list_audit, api_list_agents, api_get_status;
route_fn api_list_budgets, api_get_health, api_get_settings, api_get_audit_chain;
route_fn api_list_sessions, api_export_session, api_fork_session, api_erase_session;
route_fn api_list_memories, api_put_memory, api_remove_memory;

#endif
