/* POST /weir/v1/runs: begin a turn with any agent. The answer is its id, at once; what happens is
 * in its events, and the run goes on whether or not someone reads them. */
#include "contract/weir/inner.h"
#include "conversation/import.h"
#include "record/run_state.h"
#include "session/waiting.h"
#include "turn/run.h"
#include "wire/json.h"

#define ARENA_MAX_BYTES (8 * MIB)

static const char *const start_keys[] = {"input",     "messages", "agent", "session_id",
                                         "workspace", "user",     NULL};

/* A member that is a string, or empty where it is absent. */
static bool take_text(struct api_request *request, struct json body, struct str name,
                      struct str *ret) {
    struct json member = json_find(body, name);
    *ret = STR_EMPTY;
    if (member.kind == JSON_NONE) return true;
    if (member.kind != JSON_STRING)
        return api_request_refuse(request, 422, STR_FMT " must be a string, not %s",
                                  STR_ARG(name), json_kind_name(member.kind));
    return json_str(member, request->arena, ret) ||
           api_request_refuse(request, 422, STR_FMT " is too long", STR_ARG(name));
}

/* Whose session it is: the body's names, within what the caller may see. */
static bool take_owner(struct api_request *request, struct json body,
                       struct session_name *ret) {
    const struct api_caller *caller = &request->caller;
    if (!take_text(request, body, STR("workspace"), &ret->workspace) ||
        !take_text(request, body, STR("user"), &ret->user) ||
        !take_text(request, body, STR("session_id"), &ret->session))
        return false;
    if (ret->workspace.len == 0)
        ret->workspace = caller->all_workspaces ? STR("default") : api_workspace(caller);
    if (ret->user.len == 0) ret->user = caller->all_users ? STR("anonymous") : api_user(caller);
    if (ret->session.len == 0)
        return api_request_refuse(request, 400,
                                  "session_id is missing: name the conversation "
                                  "that the turn belongs to");
    if (api_may_see(caller, ret->workspace, ret->user)) return true;
    api_refuse(request->call, 403, STR("FORBIDDEN"),
               "a turn cannot be begun for another workspace or user");
    return false;
}

/* The last user message of a list is what is asked now. */
static bool take_messages(struct api_request *request, struct json list,
                          struct run_request *ret) {
    struct import import;
    struct err e;
    if (!import_read(list, request->arena, &import, &e))
        return api_request_refuse(request, 422, "%s", e.text);
    ret->messages = import.messages;
    ret->message_count = import.count;
    for (size_t i = 0; i < import.count; i++) {
        if (import.messages[i].role == MESSAGE_USER) ret->text = import.messages[i].text;
    }
    return true;
}

static bool take_input(struct api_request *request, struct json body, struct run_request *ret) {
    struct json messages = json_find(body, STR("messages"));
    bool has_input = json_find(body, STR("input")).kind != JSON_NONE;
    if (has_input == (messages.kind != JSON_NONE))
        return api_request_refuse(request, 400, "send either input or messages");
    if (!has_input) return take_messages(request, messages, ret);
    return take_text(request, body, STR("input"), &ret->text);
}

static bool read_start(struct api_request *request, struct run_request *ret) {
    struct json body;
    struct err e;
    if (!json_read(lent_read(route_body(request->call)), &body, &e) ||
        !json_check_once(body, start_keys, &e))
        return api_request_refuse(request, 400, "%s", e.text);
    if (body.kind != JSON_OBJECT)
        return api_request_refuse(request, 422,
                                  "send {\"input\":\"...\",\"session_id\":\"...\"}");
    return take_owner(request, body, &ret->name) &&
           take_text(request, body, STR("agent"), &ret->agent) &&
           take_input(request, body, ret);
}

static void report_started(struct api_request *request, const struct run_request *asked,
                           uint64_t run) {
    struct buf body;
    buf_init(&body, 64 * KIB);
    struct json_writer json = json_writer(&body);
    json_open_object(&json);
    api_write_id(&json, "id", run);
    json_member_str(&json, "workspace", asked->name.workspace);
    json_member_str(&json, "user", asked->name.user);
    json_member_str(&json, "session_id", asked->name.session);
    json_close(&json);
    route_reply(request->call, 202, STR("application/json"), buf_str(&body));
    buf_done(&body);
}

static void refuse_start(struct route_call *call, const struct err *why) {
    api_refuse(call, err_kinds[why->code].http_status, err_name(why->code), "%s", why->text);
}

static void start(struct api_request *request, struct api_instance *instance,
                  const struct run_request *asked) {
    struct run *run = NULL;
    struct err e;
    if (session_has_pending(instance->sessions, &asked->name)) {
        api_refuse(request->call, 409, STR("SESSION_WAITING"),
                   "a turn of this session waits for a human; answer it first: GET "
                   "/weir/v1/approvals");
        return;
    }
    if (!run_start(instance->host, asked, &run, &e)) {
        refuse_start(request->call, &e);
        return;
    }
    report_started(request, asked, run_id(run));
    run_leave(run, (struct leaving){.how = LEAVING_DETACHES}, STR_EMPTY);
    run_unref(run);
}

void api_start_run(struct route_call *call, void *ctx) {
    static const char *const names[] = {NULL};
    struct api_instance *instance = ctx;
    struct api_request request;
    struct run_request asked = {.contract = STR("weir"), .brought = BROUGHT_MERGE};
    if (!api_request_begin(&request, call, instance, names)) return;
    arena_free(request.arena);
    request.arena = arena_new(ARENA_MAX_BYTES);
    asked.policy = instance->settings->busy;
    if (read_start(&request, &asked)) start(&request, instance, &asked);
    arena_free(request.arena);
}
