/* call: one call of an orchestrator's tool, and the row that the audit log gets of it. */
#include "base/clock.h"
#include "base/mem.h"
#include "orchestrator/mcp/inner.h"
#include "orchestrator/mcp/serve.h"

#include <stdlib.h>

#define RESULT_MAX_BYTES (64 * MIB)

struct orchestrator_call {
    struct toolserver_call *call;
    struct orchestrator_endpoint *endpoint;
    struct orchestrator_call_view view;
    int64_t unix_ms;
    uint64_t began_ms, reports;
    void (*left)(void *ctx);
    void *left_ctx;
};

struct store *orchestrator_call_store(const struct orchestrator_call *call) {
    return call->endpoint->store;
}

struct loop *orchestrator_call_loop(const struct orchestrator_call *call) {
    return toolserver_call_loop(call->call);
}

struct arena *orchestrator_call_arena(const struct orchestrator_call *call) {
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
    orchestrator_audit_payload(given ? view->arguments.raw : STR("{}"), &arguments);
    orchestrator_audit_payload(result, &kept);
    const struct orchestrator_audit row = {
        .workspace = view->workspace,
        .user = view->user,
        .conversation = view->conversation,
        .tool = orchestrator_tools[view->tool].name,
        .arguments = buf_str(&arguments),
        .result = buf_str(&kept),
        .error = error,
        .unix_ms = call->unix_ms,
        .took_ms = loop_now_ms(orchestrator_call_loop(call)) - call->began_ms};
    endpoint->audit(&row, endpoint->ctx);
    buf_done(&kept);
    buf_done(&arguments);
}

/* --- answers ------------------------------------------------------------------------------ */

void orchestrator_call_answer(struct orchestrator_call *call, struct str result) {
    struct buf whole;
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
        free(call);
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
    toolserver_call_fail(call->call, text);
    free(call);
}

void orchestrator_call_report(struct orchestrator_call *call, struct str message) {
    toolserver_call_report(call->call, ++call->reports, message, STR_EMPTY);
}

void orchestrator_call_watch(struct orchestrator_call *call, void (*left)(void *ctx),
                             void *ctx) {
    call->left = left;
    call->left_ctx = ctx;
}

/* --- its life ----------------------------------------------------------------------------- */

static void on_gone(struct orchestrator_call *call) {
    if (call->left) call->left(call->left_ctx);
    free(call);
}

static void on_cancelled(void *ctx) {
    on_gone(ctx);
}

static void on_left(bool resumable, void *ctx) {
    (void)resumable;
    on_gone(ctx);
}

static void on_cut(void *ctx) {
    struct orchestrator_call *call = ctx;
    if (call->left) call->left(call->left_ctx);
    orchestrator_call_fail(call, STR("the server stops; try again later"));
}

static const struct toolserver_call_watch watch = {
    .cancelled = on_cancelled, .left = on_left, .cut = on_cut};

/* An argument that must be there is; what it is, is the tool's to check. */
static bool check_required(enum orchestrator_tool tool, struct json arguments, struct err *e) {
    struct json schema = json_of(orchestrator_tools[tool].input_schema);
    struct json_reader required = json_enter(json_find(schema, STR("required")));
    struct json name;
    while (json_next_item(&required, &name)) {
        struct str key = str_head(str_skip(name.raw, 1), name.raw.len - 2);
        struct json value = json_find(arguments, key);
        if (value.kind == JSON_NONE || value.kind == JSON_NULL || json_is(value, STR("")))
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
                                       .endpoint = endpoint,
                                       .view = {.tool = orchestrator_tool_find(tool->name),
                                                .workspace = caller->workspace,
                                                .user = caller->user,
                                                .arguments = arguments},
                                       .unix_ms = clock_unix_ms(),
                                       .began_ms = loop_now_ms(toolserver_call_loop(call))};
    made->view.conversation = conversation_of(&made->view, caller, toolserver_call_arena(call));
    toolserver_call_watch(call, &watch, made);
    if (!check_required(made->view.tool, arguments, &e)) {
        orchestrator_call_fail(made, err_text(&e));
    } else {
        orchestrator_serve_tool(endpoint, made->view.tool)(made, &made->view, endpoint->ctx);
    }
}
