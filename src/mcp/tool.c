#include "mcp/tool.h"

#include "base/log.h"
#include "base/mem.h"
#include "mcp/param_headers.h"
#include "mcp/tool_result.h"
#include "wire/trace_context.h"

#include <stdlib.h>

/* Room for the largest answer with every byte escaped. */
#define RESULT_MAX_BYTES (32 * MIB)
#define PROGRESS_MAX_BYTES 1000

struct mcp_tool {
    struct tool base;
    struct mcp_client *client; /* NULL: the tool belongs to a server of the hub */
    struct mcp_server *server;
    struct str remote_name; /* the server's own name for it */
    struct buf texts;       /* of that and of `base` */
    struct schema *schema;  /* NULL: none, or not supported */
    bool has_headers;       /* some arguments go as headers, too */
};

struct tool_call {
    struct mcp_call *asked;    /* a call through a client */
    struct mcp_remote *remote; /* a call through the hub */
    tool_progress_fn *progress;
    tool_done_fn *done;
    void *ctx;
};

/* --- a call ------------------------------------------------------------------------------- */

static void tool_on_answer(struct json result, const struct err *failed, void *ctx) {
    struct tool_call *call = ctx;
    struct buf out;
    struct err e;
    buf_init(&out, RESULT_MAX_BYTES);
    if (!failed && !mcp_tool_result(result, &out, &e)) failed = &e;
    call->done(buf_str(&out), failed, call->ctx);
    buf_done(&out);
    free(call);
}

/* "reading (3 of 10)": what there is of it. */
static void on_progress(struct json params, void *ctx) {
    struct tool_call *call = ctx;
    struct json now = json_find(params, STR("progress"));
    struct json total = json_find(params, STR("total"));
    struct buf text;
    buf_init(&text, PROGRESS_MAX_BYTES);
    json_text(json_find(params, STR("message")), &text);
    if (!text.len) buf_append(&text, STR("progress"));
    if (now.kind == JSON_NUMBER) buf_printf(&text, " (" STR_FMT, STR_ARG(now.raw));
    if (now.kind == JSON_NUMBER && total.kind == JSON_NUMBER)
        buf_printf(&text, " of " STR_FMT, STR_ARG(total.raw));
    if (now.kind == JSON_NUMBER) buf_append_byte(&text, ')');
    if (buf_ok(&text)) call->progress(buf_str(&text), call->ctx);
    buf_done(&text);
}

/* Its headers would be those of a connection, and a program has none. */
static void write_trace(const struct trace_context *trace, struct json_writer *w) {
    char parent[TRACE_PARENT_BYTES + 1];
    trace_context_write(trace, parent);
    json_member_object(w, "_meta");
    json_member_str(w, "traceparent", str_from(parent));
    if (trace->state.len) json_member_str(w, "tracestate", trace->state);
    json_close(w);
}

static void write_params(const struct mcp_tool *tool, const struct tool_request *request,
                         struct buf *out) {
    struct json_writer w = json_writer(out);
    json_open_object(&w);
    if (request->trace) write_trace(request->trace, &w);
    json_member_str(&w, "name", tool->remote_name);
    json_member_raw(&w, "arguments", request->args);
    json_close(&w);
}

static struct tool_call *mcp_tool_start(struct tool *base, struct loop *loop,
                                        const struct tool_request *request, tool_done_fn *done,
                                        void *ctx) {
    struct mcp_tool *tool = CONTAINER_OF(base, struct mcp_tool, base);
    struct tool_call *call = MEM_NEW(struct tool_call);
    struct buf params;
    *call = (struct tool_call){.progress = request->progress, .done = done, .ctx = ctx};
    buf_init(&params, SIZE_MAX);
    write_params(tool, request, &params);
    struct mcp_request asked = {
        .caller = {request->user, request->workspace, request->session},
        .method = "tools/call",
        .name = tool->remote_name,
        .params = buf_str(&params),
        .schema = tool->has_headers ? base->parameters : STR_EMPTY,
        /* An orchestrator's contract knows no tokens. */
        .progress = tool->server && request->progress ? on_progress : NULL,
        .repeatable = base->idempotent,
    };
    if (tool->client) {
        call->asked = mcp_call_start(tool->client, &asked, tool_on_answer, call);
    } else {
        call->remote = mcp_remote_start(tool->server, loop, &asked, tool_on_answer, call);
    }
    buf_done(&params);
    return call;
}

static void tool_cancel(struct tool_call *call) {
    if (call->asked) mcp_call_cancel(call->asked);
    if (call->remote) mcp_remote_cancel(call->remote);
    free(call);
}

/* --- the tool ----------------------------------------------------------------------------- */

static void free_tool(struct tool *base) {
    struct mcp_tool *tool = CONTAINER_OF(base, struct mcp_tool, base);
    schema_free(tool->schema);
    mcp_client_unref(tool->client);
    mcp_server_unref(tool->server);
    buf_done(&tool->texts);
    free(tool);
}

static const struct tool_kind kind = {
    .name = "mcp", .start = mcp_tool_start, .cancel = tool_cancel, .free = free_tool};

static struct mcp_tool *tool_make(const struct mcp_tool_info *info, struct str name) {
    struct mcp_tool *tool = MEM_NEW(struct mcp_tool);
    struct err e;
    tool->remote_name = info->name;
    tool->base = (struct tool){.kind = &kind,
                               .name = name,
                               .description = info->description,
                               .parameters = info->schema,
                               .idempotent = info->idempotent,
                               .timeout_ms = MCP_TOOL_MS};
    struct str *texts[] = {&tool->remote_name, &tool->base.name, &tool->base.description,
                           &tool->base.parameters};
    buf_keep_texts(&tool->texts, texts, ARRAY_LEN(texts));
    if (!schema_read(tool->base.parameters, &tool->schema, &e))
        log_often(LOG_WARNING,
                  "the arguments of the MCP tool '" STR_FMT
                  "' are not checked here, its schema asks for "
                  "something unknown: %s",
                  STR_ARG(name), e.text);
    tool->base.schema = tool->schema;
    tool->has_headers = param_headers_wanted(tool->base.parameters);
    return tool;
}

struct tool *mcp_tool_new(struct mcp_client *client, const struct mcp_tool_info *info) {
    struct mcp_tool *tool = tool_make(info, info->name);
    tool->client = mcp_client_ref(client);
    return &tool->base;
}

struct tool *mcp_server_tool_new(struct mcp_server *server, const struct mcp_tool_info *info,
                                 struct str name, uint64_t timeout_ms) {
    struct mcp_tool *tool = tool_make(info, name);
    tool->server = mcp_server_ref(server);
    if (timeout_ms) tool->base.timeout_ms = timeout_ms;
    return &tool->base;
}
