/* call: one call of an orchestrator's tool, and the row that the audit log gets of it. */
#include "base/clock.h"
#include "base/id.h"
#include "base/mem.h"
#include "orchestrator/mcp/inner.h"

#include <assert.h>
#include <stdlib.h>

#define RESULT_MAX_BYTES (64 * MIB)

struct orchestrator_call {
    struct toolserver_call *call; /* NULL: no answer is wanted, but it is audited */
    struct loop *loop;
    struct orchestrator_endpoint *endpoint;
    struct orchestrator_call_view
        view; /* of a call without an answer: its texts are in `kept` */
    struct buf kept, arguments;
    bool refused;
    int64_t unix_ms;
    uint64_t began_ms, reports;
    void (*left)(void *ctx);
    void *left_ctx;
};

struct store *orchestrator_call_store(const struct orchestrator_call *call) {
    return call->endpoint->store;
}

struct loop *orchestrator_call_loop(const struct orchestrator_call *call) {
    return call->loop;
}

struct arena *orchestrator_call_arena(const struct orchestrator_call *call) {
    assert(call->call);
    return toolserver_call_arena(call->call);
}

/* --- audit -------------------------------------------------------------------------------- */

void orchestrator_audit_payload(struct str json, struct buf *out) {
    if (json.len <= ORCHESTRATOR_AUDIT_PAYLOAD_BYTES) {
        buf_append(out, json);
        return;
    }
    buf_printf(out, "{\"_truncated\":true,\"_original_size\":%zu,\"_limit\":%d}", json.len,
               ORCHESTRATOR_AUDIT_PAYLOAD_BYTES);
}

static void note_call(const struct orchestrator_call *call, struct str result, bool error) {
    struct orchestrator_endpoint *endpoint = call->endpoint;
    const struct orchestrator_call_view *view = &call->view;
    struct buf arguments, kept;
    if (!endpoint->audit) return;
    buf_init(&arguments, 2 * ORCHESTRATOR_AUDIT_PAYLOAD_BYTES);
    buf_init(&kept, 2 * ORCHESTRATOR_AUDIT_PAYLOAD_BYTES);
    bool given = view->arguments.kind == JSON_OBJECT;
    if (call->call)
        orchestrator_audit_payload(given ? view->arguments.raw : STR("{}"), &arguments);
    else
        buf_append(&arguments, buf_str(&call->arguments));
    orchestrator_audit_payload(result, &kept);
    const struct orchestrator_audit row = {
        .workspace = view->workspace,
        .user = view->user,
        .conversation =
            id_ok(view->conversation) ? view->conversation : STR_EMPTY, /* a model's */
        .tool = orchestrator_tools[view->tool].name,
        .arguments = buf_str(&arguments),
        .result = buf_str(&kept),
        .error = error,
        .refused = call->refused,
        .unheard = !call->call,
        .unix_ms = call->unix_ms,
        .took_ms = loop_now_ms(orchestrator_call_loop(call)) - call->began_ms};
    endpoint->audit(&row, endpoint->ctx);
    buf_done(&kept);
    buf_done(&arguments);
}

/* --- answers ------------------------------------------------------------------------------ */

static void call_free(struct orchestrator_call *call) {
    buf_done(&call->kept);
    buf_done(&call->arguments);
    free(call);
}

void orchestrator_call_answer(struct orchestrator_call *call, struct str result) {
    struct buf whole;
    if (!call->call) {
        note_call(call, result, false);
        call_free(call);
        return;
    }
    buf_init(&whole, RESULT_MAX_BYTES);
    struct json_writer w = json_writer(&whole);
    json_open_object(&w);
    json_member_array(&w, "content");
    json_open_object(&w);
    json_member_str(&w, "type", STR("text"));
    json_member_str(&w, "text", result);
    json_close(&w);
    json_close(&w);
    json_member_raw(&w, "structuredContent", result);
    json_member_bool(&w, "isError", false);
    json_close(&w);
    if (!buf_ok(&whole)) {
        orchestrator_call_fail(call, STR("the result is larger than an answer may be"));
    } else {
        note_call(call, result, false);
        toolserver_call_answer(call->call, buf_str(&whole));
        call_free(call);
    }
    buf_done(&whole);
}

void orchestrator_call_fail(struct orchestrator_call *call, struct str text) {
    struct buf error;
    buf_init(&error, RESULT_MAX_BYTES);
    struct json_writer w = json_writer(&error);
    json_open_object(&w);
    json_member_str(&w, "error", text);
    json_close(&w);
    note_call(call, buf_str(&error), true);
    buf_done(&error);
    if (call->call) toolserver_call_fail(call->call, text);
    call_free(call);
}

void orchestrator_call_report(struct orchestrator_call *call, struct str message) {
    if (call->call) toolserver_call_report(call->call, ++call->reports, message, STR_EMPTY);
}

void orchestrator_call_watch(struct orchestrator_call *call, void (*left)(void *ctx),
                             void *ctx) {
    call->left = left;
    call->left_ctx = ctx;
}

/* --- its life ----------------------------------------------------------------------------- */

/* Its texts lie in the request, which is not there for long. */
static void keep_texts(struct orchestrator_call *call) {
    struct orchestrator_call_view *view = &call->view;
    struct str *const texts[] = {&view->workspace, &view->user, &view->conversation};
    bool given = view->arguments.kind == JSON_OBJECT;
    buf_init(&call->arguments, 2 * ORCHESTRATOR_AUDIT_PAYLOAD_BYTES);
    orchestrator_audit_payload(given ? view->arguments.raw : STR("{}"), &call->arguments);
    buf_keep_texts(&call->kept, texts, ARRAY_LEN(texts));
    view->arguments = (struct json){.kind = JSON_NONE};
}

/* No answer is wanted any more. The tool ends the call, which tells the audit log what became of
 * it. */
static void call_on_gone(struct orchestrator_call *call) {
    keep_texts(call);
    call->call = NULL;
    assert(call->left);
    call->left(call->left_ctx);
}

static void call_on_cancelled(void *ctx) {
    call_on_gone(ctx);
}

static void call_on_left(bool resumable, void *ctx) {
    (void)resumable;
    call_on_gone(ctx);
}

static void on_cut(void *ctx) {
    struct orchestrator_call *call = ctx;
    toolserver_call_fail(call->call, STR("the server stops; try again later"));
    call_on_gone(call);
}

static const struct toolserver_call_watch watch = {
    .cancelled = call_on_cancelled, .left = call_on_left, .cut = on_cut};

/* An argument that must be there is; what it is, is the tool's to check. */
static bool check_required(enum orchestrator_tool tool, struct json arguments, struct err *e) {
    struct json schema = json_of(orchestrator_tools[tool].input_schema);
    struct json_reader required = json_enter(json_find(schema, STR("required")));
    struct json name;
    while (json_next_item(&required, &name)) {
        struct str key = str_head(str_skip(name.raw, 1), name.raw.len - 2);
        struct json value = json_find(arguments, key);
        if (json_is_absent(value) || json_is(value, STR("")))
            return err_set(e, ERR_INVALID_ARGUMENT, STR_FMT " is required", STR_ARG(key));
    }
    return true;
}

/* The conversation of the turn stands in for one that is not named, but not for a search. */
static struct str conversation_of(const struct orchestrator_call_view *view,
                                  const struct toolserver_caller *caller, struct arena *arena) {
    struct str named = STR_EMPTY;
    struct json value = json_find(view->arguments, STR("conversation_id"));
    if (!json_str(value, arena, &named)) named = STR_EMPTY;
    bool searches = view->tool == ORCHESTRATOR_SEARCH_PAST_MESSAGES;
    return named.len || searches ? named : caller->conversation;
}

void orchestrator_serve_call(struct toolserver_call *call, const struct toolserver_tool *tool,
                             struct json arguments, void *ctx) {
    struct orchestrator_endpoint *endpoint = ctx;
    const struct toolserver_caller *caller = toolserver_call_caller(call);
    struct orchestrator_call *made = MEM_NEW(struct orchestrator_call);
    struct err e;
    *made = (struct orchestrator_call){.call = call,
                                       .loop = toolserver_call_loop(call),
                                       .endpoint = endpoint,
                                       .view = {.tool = orchestrator_tool_find(tool->name),
                                                .workspace = caller->workspace,
                                                .user = caller->user,
                                                .arguments = arguments},
                                       .unix_ms = clock_unix_ms(),
                                       .began_ms = loop_now_ms(toolserver_call_loop(call))};
    made->view.conversation = conversation_of(&made->view, caller, toolserver_call_arena(call));
    toolserver_call_watch(call, &watch, made);
    made->refused = endpoint->ready && !endpoint->ready(endpoint->ctx);
    if (made->refused) {
        orchestrator_call_fail(made, STR("the orchestrator is not ready; try again later"));
    } else if (!check_required(made->view.tool, arguments, &e)) {
        orchestrator_call_fail(made, err_text(&e));
    } else {
        orchestrator_serve_tool(endpoint, made->view.tool)(made, &made->view, endpoint->ctx);
    }
}
