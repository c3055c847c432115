/* POST /weir/v1/runs: begin a turn with any agent. The answer is its id, at once; what happens is
 * in its events, and the run goes on whether or not someone reads them.
 *
 * With an idempotency key the request begins one run, however often it is sent:
 *
 *     key ─▶ looked up ─▶ free ─▶ the run begins, and has the key
 *                │          └─▶ taken meanwhile ─▶ looked up again
 *                ├─▶ the same request was sent before ─▶ the id of its run
 *                └─▶ another request was sent with it ─▶ 409
 *
 * Source: checks.md K28. */
#include "base/id.h"
#include "base/mem.h"
#include "config/config.h"
#include "contract/http_key.h"
#include "contract/weir/inner.h"
#include "conversation/import.h"
#include "record/run_state.h"
#include "session/idempotency_lookup.h"
#include "session/waiting.h"
#include "turn/run.h"
#include "wire/digest.h"
#include "wire/json.h"

#include <stdlib.h>

#define ARENA_MAX_BYTES (8 * MIB)

static const char *const start_keys[] = {"input",     "messages", "agent", "session_id",
                                         "workspace", "user",     NULL};

static bool check_owner(struct api_request *request, const struct session_name *name) {
    struct err e;
    return (id_check("workspace", name->workspace, &e) && id_check("user", name->user, &e) &&
            id_check("session_id", name->session, &e)) ||
           api_request_refuse(request, 422, "%s", e.text);
}

/* Whose session it is: the body's names, within what the caller may see. */
static bool take_owner(struct api_request *request, struct json body,
                       struct session_name *ret) {
    const struct api_caller *caller = &request->caller;
    if (!api_request_text(request, body, STR("workspace"), &ret->workspace) ||
        !api_request_text(request, body, STR("user"), &ret->user) ||
        !api_request_text(request, body, STR("session_id"), &ret->session))
        return false;
    if (ret->workspace.len == 0)
        ret->workspace = caller->all_workspaces ? STR("default") : api_workspace(caller);
    if (ret->user.len == 0) ret->user = caller->all_users ? STR("anonymous") : api_user(caller);
    if (ret->session.len == 0)
        return api_request_refuse(request, 400,
                                  "session_id is missing: name the conversation "
                                  "that the turn belongs to");
    if (!check_owner(request, ret)) return false;
    if (api_may_see(caller, ret->workspace, ret->user)) return true;
    route_refuse(request->call, 403, STR("FORBIDDEN"),
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
    return api_request_text(request, body, STR("input"), &ret->text);
}

/* --- one request -------------------------------------------------------------------------- */

/* A request whose texts are in its arena, so that it may wait for its key. */
struct starting {
    struct api_request request;
    struct api_instance *instance;
    struct run_request asked;
    struct idempotency_lookup *lookup;
};

static void starting_free(struct starting *starting) {
    idempotency_lookup_cancel(starting->lookup);
    arena_free(starting->request.arena);
    free(starting);
}

static void starting_left(void *ctx) {
    starting_free(ctx);
}

static const struct route_watch starting_watch = {.left = starting_left,
                                                  .closed = starting_left};

static bool starting_too_large(struct api_request *request) {
    return api_request_refuse(request, 413, "the request is larger than a turn may hold");
}

/* A key stands for the same body. */
static bool starting_take_key(struct api_request *request, struct str body,
                              struct run_request *ret) {
    const struct str parts[] = {ret->contract, body};
    uint8_t digest[DIGEST_BYTES];
    struct err e;
    if (!http_key_take(request->call, request->arena, &ret->key, &e))
        return api_request_refuse(request, err_kinds[e.code].http_status, "%s", e.text);
    if (!ret->key.len) return true;
    digest_parts(parts, ARRAY_LEN(parts), digest);
    return arena_str(request->arena, str_of(digest, sizeof(digest)), &ret->print) ||
           starting_too_large(request);
}

static bool read_start(struct api_request *request, struct run_request *ret) {
    struct str text;
    struct json body;
    struct err e;
    if (!lent_keep(route_body(request->call), request->arena, &text))
        return starting_too_large(request);
    if (!json_read(text, &body, &e)) return api_request_refuse(request, 400, "%s", e.text);
    if (!api_request_members(request, body, start_keys)) return false;
    if (body.kind != JSON_OBJECT)
        return api_request_refuse(request, 422,
                                  "send {\"input\":\"...\",\"session_id\":\"...\"}");
    return take_owner(request, body, &ret->name) &&
           api_request_text(request, body, STR("agent"), &ret->agent) &&
           take_input(request, body, ret) && starting_take_key(request, text, ret);
}

static void report_started(const struct starting *starting, uint64_t run) {
    const struct session_name *name = &starting->asked.name;
    struct route_json reply;
    struct json_writer *json = route_json_object(&reply, 64 * KIB);
    event_json_id(json, "id", run);
    json_member_str(json, "workspace", name->workspace);
    json_member_str(json, "user", name->user);
    json_member_str(json, "session_id", name->session);
    route_json_reply(&reply, starting->request.call, 202);
}

static void refuse_start(struct route_call *call, const struct err *why) {
    route_retry_after(call, why);
    route_refuse(call, err_kinds[why->code].http_status, err_name(why->code), "%s", why->text);
}

static void starting_look_up(struct starting *starting);

/* False: another request took the key meanwhile, so it is looked up again. */
static bool starting_begin(struct starting *starting) {
    struct api_instance *instance = starting->instance;
    const struct run_request *asked = &starting->asked;
    struct route_call *call = starting->request.call;
    struct run *run = NULL;
    struct err e;
    if (session_has_pending(instance->sessions, &asked->name)) {
        route_refuse(call, 409, STR("SESSION_WAITING"),
                     "a turn of this session waits for a human; answer it first: GET "
                     "/weir/v1/approvals");
    } else if (run_start(instance->host, asked, &run, &e)) {
        report_started(starting, run_id(run));
        run_leave(run, (struct leaving){.how = LEAVING_DETACHES}, STR_EMPTY);
        run_unref(run);
    } else if (asked->key.len && e.code == ERR_ALREADY_EXISTS) {
        starting_look_up(starting);
        return false;
    } else {
        refuse_start(call, &e);
    }
    return true;
}

/* --- its key ------------------------------------------------------------------------------ */

static void starting_on_key(const struct idempotency_lookup_result *result,
                            const struct err *failed, void *ctx) {
    struct starting *starting = ctx;
    struct route_call *call = starting->request.call;
    starting->lookup = NULL;
    starting->asked.key_mark = result->mark;
    if (result->answer == IDEMPOTENCY_FREE && !starting_begin(starting)) return;
    route_watch(call, NULL, NULL);
    if (result->answer == IDEMPOTENCY_RUN) report_started(starting, result->run);
    if (result->answer == IDEMPOTENCY_OTHER)
        route_refuse(
            call, 409, STR("IDEMPOTENCY_KEY_REUSED"),
            "this idempotency key was used for another request; send a new key, or the "
            "same body as then");
    if (result->answer == IDEMPOTENCY_FAILED) refuse_start(call, failed);
    starting_free(starting);
}

static void starting_look_up(struct starting *starting) {
    const struct api_instance *instance = starting->instance;
    const struct run_request *asked = &starting->asked;
    starting->lookup = idempotency_lookup_start(&(struct idempotency_lookup_options){
        .loop = instance->loop,
        .sessions = instance->sessions,
        .name = {asked->name.workspace, asked->name.user, asked->key},
        .print = asked->print,
        .kept_ms = instance->settings->config->limits.idempotency_ms,
        .failures_free = true,
        .on_answer = starting_on_key,
        .ctx = starting});
}

void api_start_run(struct route_call *call, void *ctx) {
    struct api_instance *instance = ctx;
    struct api_request request;
    if (!api_request_begin(&request, call, instance, NULL)) return;
    arena_free(request.arena);
    request.arena = arena_new(ARENA_MAX_BYTES);
    struct starting *starting = MEM_NEW(struct starting);
    *starting = (struct starting){.request = request,
                                  .instance = instance,
                                  .asked = {.contract = STR("weir"),
                                            .brought = BROUGHT_MERGE,
                                            .promised = true,
                                            .policy = instance->settings->busy}};
    bool reads = read_start(&starting->request, &starting->asked);
    if (reads && starting->asked.key.len) {
        route_watch(call, &starting_watch, starting);
        starting_look_up(starting);
        return;
    }
    if (reads) (void)starting_begin(starting);
    starting_free(starting);
}
