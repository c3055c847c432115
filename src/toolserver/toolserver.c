#include "toolserver/toolserver.h"

#include "toolserver/exchange.h"

#define PAGE_TOOLS 50 /* in one answer to tools/list */
#define BATCH_MAX 100
#define ARENA_MAX_BYTES (16 * MIB)
#define RESULT_MAX_BYTES (16 * MIB)
#define LIST_TTL_MS 60000 /* how long a stateless client may keep a list */

#define VERSION_HEADER STR("mcp-protocol-version")
#define SESSION_HEADER STR("mcp-session-id")

void toolserver_init(struct toolserver *server, const struct toolserver_settings *settings,
                     const struct toolserver_table *table, void *table_ctx,
                     struct toolserver_sessions *sessions, struct loop *loop) {
    *server = (struct toolserver){.settings = settings,
                                  .table = table,
                                  .table_ctx = table_ctx,
                                  .sessions = sessions,
                                  .loop = loop};
    list_init(&server->exchanges);
}

void toolserver_failure_body(const struct route_failure *failure, struct buf *out) {
    jsonrpc_write_error(out, STR("null"), JSONRPC_INVALID_REQUEST, failure->message);
}

/* --- refusals ----------------------------------------------------------------------------- */

/* Always false, as the checks below answer. */
static bool toolserver_refuse(struct toolserver_exchange *exchange, int status, struct str id,
                              int64_t code, struct str message) {
    toolserver_exchange_refuse(exchange, status, id, code, message, STR_EMPTY);
    return false;
}

static bool refuse_request(struct toolserver_exchange *exchange, int status,
                           const struct toolserver_request *request, int64_t code,
                           struct str message) {
    struct str id = request->id.raw.len ? request->id.raw : STR("null");
    return toolserver_refuse(exchange, status, id, code, message);
}

/* --- what the headers say ----------------------------------------------------------------- */

static struct str toolserver_header(const struct toolserver_exchange *exchange,
                                    struct str name) {
    struct str value = lent_read(route_header(exchange->call, name));
    return value.at ? value : STR_EMPTY;
}

static struct toolserver_owner owner_of(const struct toolserver_exchange *exchange) {
    return (struct toolserver_owner){exchange->caller.workspace, exchange->caller.user};
}

/* The session must be known. Then its version counts. */
static bool toolserver_take_session(struct toolserver_exchange *exchange) {
    struct toolserver *server = exchange->server;
    struct str id = toolserver_header(exchange, SESSION_HEADER);
    struct toolserver_owner owner = owner_of(exchange);
    if (!id.len || !server->sessions) return true;
    if (!toolserver_sessions_use(server->sessions, id, &owner, loop_now_ms(server->loop),
                                 &exchange->version))
        return toolserver_refuse(
            exchange, 404, STR("null"), JSONRPC_INVALID_REQUEST,
            STR("there is no such session; begin a new one with initialize"));
    return arena_str(exchange->arena, id, &exchange->session) ||
           toolserver_refuse(exchange, 400, STR("null"), JSONRPC_INVALID_REQUEST,
                             STR("the request is larger than the server keeps"));
}

/* Without the header and without a session it is the version before the header. */
static bool take_version(struct toolserver_exchange *exchange) {
    struct str version = toolserver_header(exchange, VERSION_HEADER);
    if (version.len && !mcp_version_known(version))
        return toolserver_refuse(
            exchange, 400, STR("null"), JSONRPC_INVALID_REQUEST,
            STR("MCP-Protocol-Version names a version that is not spoken here; "
                "2025-11-25 is, and the three before it, and 2026-07-28"));
    if (version.len && !exchange->version) exchange->version = mcp_version_known(version);
    if (!exchange->version) exchange->version = mcp_version_known(STR("2025-03-26"));
    return true;
}

static bool accepts_events(const struct toolserver_exchange *exchange) {
    struct str accept = toolserver_header(exchange, STR("accept"));
    return str_find_nocase(accept, STR("text/event-stream")) < accept.len;
}

/* --- stateless requests ------------------------------------------------------------------- */

/* Whether the request is of 2026-07-28, or of a version that is not known, in its manner. */
static bool is_stateless(const struct toolserver_exchange *exchange,
                         const struct toolserver_request *request) {
    return request->version.kind != JSON_NONE || request->method == TOOLSERVER_DISCOVER ||
           str_equal(toolserver_header(exchange, VERSION_HEADER), STR(MCP_STATELESS_VERSION));
}

static void write_versions(struct json_writer *w, const char *key) {
    json_member_array(w, key);
    json_write_str(w, STR(MCP_STATELESS_VERSION));
    for (size_t i = 0; i < MCP_VERSIONS; i++) json_write_str(w, mcp_version_at(i));
    json_close(w);
}

static bool refuse_version(struct toolserver_exchange *exchange,
                           const struct toolserver_request *request) {
    struct buf data;
    buf_init(&data, 4 * KIB);
    struct json_writer w = json_writer(&data);
    json_open_object(&w);
    write_versions(&w, "supported");
    json_member_raw(&w, "requested",
                    request->version.raw.len < KIB ? request->version.raw : STR("null"));
    json_close(&w);
    toolserver_exchange_refuse(
        exchange, 400, request->id.raw.len ? request->id.raw : STR("null"),
        MCP_UNSUPPORTED_VERSION, STR("this version of the protocol is not spoken here"),
        buf_str(&data));
    buf_done(&data);
    return false;
}

/* Headers repeat what the body says, so that what stands between can read it. */
static bool check_headers(struct toolserver_exchange *exchange,
                          const struct toolserver_request *request) {
    struct json name = json_find(request->params, STR("name"));
    if (!json_is(request->version, toolserver_header(exchange, VERSION_HEADER)))
        return refuse_request(exchange, 400, request, MCP_HEADER_MISMATCH,
                              STR("MCP-Protocol-Version is not the version in params._meta"));
    if (!json_is(request->version, STR(MCP_STATELESS_VERSION)))
        return refuse_version(exchange, request);
    if (request->name.kind == JSON_STRING &&
        !json_is(request->name, toolserver_header(exchange, STR("mcp-method"))))
        return refuse_request(exchange, 400, request, MCP_HEADER_MISMATCH,
                              STR("Mcp-Method is not the method of the message"));
    if (request->method == TOOLSERVER_CALL && name.kind == JSON_STRING &&
        !json_is(name, toolserver_header(exchange, STR("mcp-name"))))
        return refuse_request(exchange, 400, request, MCP_HEADER_MISMATCH,
                              STR("Mcp-Name is not the name of the tool"));
    return true;
}

static bool check_stateless(struct toolserver_exchange *exchange,
                            const struct toolserver_request *request) {
    struct err e;
    exchange->stateless = true;
    exchange->version = MCP_STATELESS_VERSION;
    if (request->method == TOOLSERVER_NOTE || request->method == TOOLSERVER_CANCELLED)
        return true;
    if (!toolserver_request_check_meta(request, &e))
        return refuse_request(exchange, 400, request, JSONRPC_INVALID_PARAMS, err_text(&e));
    if (!check_headers(exchange, request)) return false;
    bool served = request->method == TOOLSERVER_DISCOVER ||
                  request->method == TOOLSERVER_LIST || request->method == TOOLSERVER_CALL;
    return served || refuse_request(exchange, 404, request, JSONRPC_METHOD_NOT_FOUND,
                                    STR("there is no such method here"));
}

/* --- initialize, server/discover, ping ---------------------------------------------------- */

static void write_server(const struct toolserver *server, const char *key,
                         struct json_writer *w) {
    json_member_object(w, key);
    json_member_str(w, "name", server->settings->name);
    json_member_str(w, "version", server->settings->version);
    json_close(w);
}

static void write_capabilities(const struct toolserver *server, struct json_writer *w) {
    json_member_object(w, "capabilities");
    json_member_object(w, "tools");
    json_close(w);
    json_close(w);
    if (server->settings->instructions.len)
        json_member_str(w, "instructions", server->settings->instructions);
}

/* The server is named in the results of stateless requests, which know no initialize. */
static void write_meta(const struct toolserver_exchange *exchange, struct json_writer *w) {
    if (!exchange->stateless) return;
    json_member_object(w, "_meta");
    write_server(exchange->server, "io.modelcontextprotocol/serverInfo", w);
    json_close(w);
    json_member_u64(w, "ttlMs", LIST_TTL_MS);
    json_member_str(w, "cacheScope", STR("private"));
}

/* The client's version if it is spoken here, else the newest. */
static const char *negotiated(const struct toolserver_request *request, struct arena *arena) {
    struct str asked;
    const char *version = NULL;
    if (json_str(json_find(request->params, STR("protocolVersion")), arena, &asked))
        version = mcp_version_known(asked);
    return version ? version : mcp_version_at(0).at;
}

static bool open_session(struct toolserver_exchange *exchange, struct err *e) {
    struct toolserver *server = exchange->server;
    struct toolserver_owner owner = owner_of(exchange);
    char id[TOOLSERVER_SESSION_BYTES];
    if (!server->sessions) return true;
    if (!toolserver_sessions_open(server->sessions, &owner, exchange->version,
                                  loop_now_ms(server->loop), id, e))
        return false;
    route_field(exchange->call, SESSION_HEADER, str_from(id));
    return true;
}

static void initialize(struct toolserver_exchange *exchange,
                       const struct toolserver_request *request) {
    struct buf result;
    struct err e;
    exchange->version = negotiated(request, exchange->arena);
    if (exchange->is_batch) {
        toolserver_exchange_error(exchange, request->id, JSONRPC_INVALID_REQUEST,
                                  STR("initialize must not be part of a batch"));
        return;
    }
    if (!open_session(exchange, &e)) {
        refuse_request(exchange, 503, request, JSONRPC_INTERNAL_ERROR, err_text(&e));
        return;
    }
    buf_init(&result, RESULT_MAX_BYTES);
    struct json_writer w = json_writer(&result);
    json_open_object(&w);
    json_member_str(&w, "protocolVersion", str_from(exchange->version));
    write_server(exchange->server, "serverInfo", &w);
    write_capabilities(exchange->server, &w);
    json_close(&w);
    toolserver_exchange_result(exchange, request->id, buf_str(&result));
    buf_done(&result);
}

static void discover(struct toolserver_exchange *exchange,
                     const struct toolserver_request *request) {
    struct buf result;
    buf_init(&result, RESULT_MAX_BYTES);
    struct json_writer w = json_writer(&result);
    json_open_object(&w);
    write_versions(&w, "supportedVersions");
    write_capabilities(exchange->server, &w);
    write_meta(exchange, &w);
    json_close(&w);
    toolserver_exchange_result(exchange, request->id, buf_str(&result));
    buf_done(&result);
}

/* --- tools/list --------------------------------------------------------------------------- */

static void write_tool(const struct toolserver_tool *tool, struct json_writer *w) {
    json_open_object(w);
    json_member_str(w, "name", tool->name);
    if (tool->title.len) json_member_str(w, "title", tool->title);
    json_member_str(w, "description", tool->description);
    json_member_raw(w, "inputSchema", tool->input_schema);
    if (tool->output_schema.len) json_member_raw(w, "outputSchema", tool->output_schema);
    if (tool->annotations.len) json_member_raw(w, "annotations", tool->annotations);
    json_close(w);
}

/* A cursor is the index of the page's first tool. */
static bool take_cursor(const struct toolserver_request *request, struct arena *arena,
                        uint64_t *ret) {
    struct json cursor = json_find(request->params, STR("cursor"));
    struct str text;
    *ret = 0;
    if (json_is_absent(cursor)) return true;
    return json_str(cursor, arena, &text) && str_to_u64(text, ret) && *ret <= UINT32_MAX;
}

static void write_page(struct toolserver_exchange *exchange, uint64_t from,
                       struct json_writer *w) {
    const struct toolserver *server = exchange->server;
    struct toolserver_tool tool;
    char room[24];
    struct buf next = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    uint64_t index = from;
    struct arena *arena = arena_new(ARENA_MAX_BYTES);
    json_member_array(w, "tools");
    while (index < from + PAGE_TOOLS &&
           server->table->at(index, &exchange->caller, arena, &tool, server->table_ctx)) {
        write_tool(&tool, w);
        index++;
    }
    json_close(w);
    bool more = index == from + PAGE_TOOLS &&
                server->table->at(index, &exchange->caller, arena, &tool, server->table_ctx);
    buf_append_u64(&next, index);
    if (more) json_member_str(w, "nextCursor", buf_str(&next));
    arena_free(arena);
}

static void list_tools(struct toolserver_exchange *exchange,
                       const struct toolserver_request *request) {
    struct buf result;
    uint64_t from;
    if (!take_cursor(request, exchange->arena, &from)) {
        toolserver_exchange_error(exchange, request->id, JSONRPC_INVALID_PARAMS,
                                  STR("cursor is not one of a page of this list"));
        return;
    }
    buf_init(&result, RESULT_MAX_BYTES);
    struct json_writer w = json_writer(&result);
    json_open_object(&w);
    write_page(exchange, from, &w);
    write_meta(exchange, &w);
    json_close(&w);
    toolserver_exchange_result(exchange, request->id, buf_str(&result));
    buf_done(&result);
}

/* --- tools/call --------------------------------------------------------------------------- */

static bool find_tool(struct toolserver_exchange *exchange, struct json name,
                      struct toolserver_tool *ret) {
    const struct toolserver *server = exchange->server;
    struct toolserver_tool tool;
    for (size_t i = 0;
         server->table->at(i, &exchange->caller, exchange->arena, &tool, server->table_ctx);
         i++) {
        if (!json_is(name, tool.name)) continue;
        *ret = tool;
        return true;
    }
    return false;
}

static void call_tool(struct toolserver_exchange *exchange,
                      const struct toolserver_request *request) {
    const struct toolserver *server = exchange->server;
    struct json name = json_find(request->params, STR("name"));
    struct json arguments = json_find(request->params, STR("arguments"));
    struct toolserver_tool tool;
    if (arguments.kind == JSON_NULL) arguments.kind = JSON_NONE;
    if (arguments.kind != JSON_NONE && arguments.kind != JSON_OBJECT) {
        toolserver_exchange_error(exchange, request->id, JSONRPC_INVALID_PARAMS,
                                  STR("arguments must be an object"));
    } else if (!find_tool(exchange, name, &tool)) {
        toolserver_exchange_error(exchange, request->id, JSONRPC_INVALID_PARAMS,
                                  STR("there is no tool of this name; see tools/list"));
    } else {
        struct toolserver_call *call =
            toolserver_call_new(exchange, request->id, request->token);
        call->tool = tool;
        call->meta = json_find(request->params, STR("_meta"));
        server->table->call(call, &call->tool, arguments, server->table_ctx);
        toolserver_call_started(call);
    }
}

/* --- messages ----------------------------------------------------------------------------- */

static void toolserver_cancel(struct toolserver_exchange *exchange,
                              const struct toolserver_request *request) {
    if (exchange->session.len)
        toolserver_sessions_cancel(exchange->server->sessions, exchange->session,
                                   request->cancels.raw);
}

static void toolserver_serve(struct toolserver_exchange *exchange,
                             const struct toolserver_request *request) {
    switch (request->method) {
    case TOOLSERVER_INITIALIZE: initialize(exchange, request); break;
    case TOOLSERVER_DISCOVER: discover(exchange, request); break;
    case TOOLSERVER_PING: toolserver_exchange_result(exchange, request->id, STR("{}")); break;
    case TOOLSERVER_LIST: list_tools(exchange, request); break;
    case TOOLSERVER_CALL: call_tool(exchange, request); break;
    case TOOLSERVER_CANCELLED: toolserver_cancel(exchange, request); break;
    case TOOLSERVER_NOTE: break;
    case TOOLSERVER_UNKNOWN:
        toolserver_exchange_error(exchange, request->id, JSONRPC_METHOD_NOT_FOUND,
                                  STR("there is no such method here"));
        break;
    }
}

static void serve_one(struct toolserver_exchange *exchange, struct json value) {
    struct toolserver_request request;
    struct err e;
    if (!toolserver_request_read(value, &request, &e)) {
        toolserver_refuse(exchange, 400, toolserver_request_id(value), JSONRPC_INVALID_REQUEST,
                          err_text(&e));
        return;
    }
    bool known = is_stateless(exchange, &request)
                     ? check_stateless(exchange, &request)
                     : toolserver_take_session(exchange) && take_version(exchange);
    if (known) toolserver_serve(exchange, &request);
}

/* What is wrong with one of the messages is answered beside the answers to the others. */
static void serve_batch(struct toolserver_exchange *exchange, struct json batch) {
    struct json_reader reader = json_enter(batch);
    struct toolserver_request request;
    struct json value;
    struct err e;
    while (json_next_item(&reader, &value)) {
        if (toolserver_request_read(value, &request, &e)) {
            toolserver_serve(exchange, &request);
        } else {
            toolserver_exchange_error(exchange, json_of(toolserver_request_id(value)),
                                      JSONRPC_INVALID_REQUEST, err_text(&e));
        }
    }
}

static void take_batch(struct toolserver_exchange *exchange, struct json batch) {
    if (str_equal(toolserver_header(exchange, VERSION_HEADER), STR(MCP_STATELESS_VERSION))) {
        toolserver_refuse(
            exchange, 400, STR("null"), JSONRPC_INVALID_REQUEST,
            STR("this version of the protocol has no batches; send one message at a time"));
        return;
    }
    if (!toolserver_take_session(exchange) || !take_version(exchange)) return;
    size_t count = json_count(batch);
    if (!str_equal(str_from(exchange->version), STR("2025-03-26"))) {
        toolserver_refuse(
            exchange, 400, STR("null"), JSONRPC_INVALID_REQUEST,
            STR("this version of the protocol has no batches; send one message at a time"));
    } else if (count == 0 || count > BATCH_MAX) {
        toolserver_refuse(exchange, 400, STR("null"), JSONRPC_INVALID_REQUEST,
                          STR("a batch has 1 to 100 messages"));
    } else {
        exchange->is_batch = true;
        serve_batch(exchange, batch);
    }
}

static void toolserver_read_body(struct toolserver_exchange *exchange) {
    struct json value;
    struct str text;
    struct err e;
    if (!lent_keep(route_body(exchange->call), exchange->arena, &text)) {
        toolserver_refuse(exchange, 413, STR("null"), JSONRPC_INVALID_REQUEST,
                          STR("the message is larger than the server reads"));
    } else if (!json_read(text, &value, &e)) {
        toolserver_refuse(exchange, 400, STR("null"), JSONRPC_PARSE_ERROR, err_text(&e));
    } else if (value.kind == JSON_ARRAY) {
        take_batch(exchange, value);
    } else {
        serve_one(exchange, value);
    }
}

/* --- the three methods -------------------------------------------------------------------- */

/* The caller's texts are lent: keep them. */
static bool keep_caller(struct toolserver_exchange *exchange) {
    struct toolserver_caller *caller = &exchange->caller;
    return arena_str(exchange->arena, caller->workspace, &caller->workspace) &&
           arena_str(exchange->arena, caller->user, &caller->user) &&
           arena_str(exchange->arena, caller->conversation, &caller->conversation);
}

static struct toolserver_exchange *toolserver_begin(struct toolserver *server,
                                                    struct route_call *call,
                                                    const struct toolserver_caller *caller) {
    struct toolserver_exchange *exchange = toolserver_exchange_new(server, call, caller);
    exchange->accepts_events = accepts_events(exchange);
    if (keep_caller(exchange)) return exchange;
    toolserver_refuse(exchange, 400, STR("null"), JSONRPC_INVALID_REQUEST,
                      STR("its caller is too long"));
    return NULL;
}

void toolserver_post(struct toolserver *server, struct route_call *call,
                     const struct toolserver_caller *caller) {
    struct toolserver_exchange *exchange = toolserver_begin(server, call, caller);
    if (!exchange) return;
    toolserver_read_body(exchange);
    exchange->reading = false;
    toolserver_exchange_read(exchange);
}

static void refuse_method(struct toolserver_exchange *exchange, struct str allowed,
                          struct str why) {
    route_field(exchange->call, STR("allow"), allowed);
    toolserver_refuse(exchange, 405, STR("null"), JSONRPC_INVALID_REQUEST, why);
}

static struct str allowed_by(const struct toolserver *server) {
    return server->sessions ? STR("POST, DELETE") : STR("POST");
}

/* An exchange of its own answers the rest of the call. */
static void toolserver_resume(struct toolserver_exchange *exchange,
                              const struct toolserver_cursor *cursor) {
    struct toolserver *server = exchange->server;
    struct toolserver_call *call = toolserver_call_new(exchange, cursor->id, cursor->token);
    call->resumes = true;
    toolserver_call_set_run(call, cursor->run, cursor->seq);
    server->table->resume(call, cursor->run, cursor->seq, server->table_ctx);
    toolserver_call_started(call);
}

void toolserver_get(struct toolserver *server, struct route_call *call,
                    const struct toolserver_caller *caller) {
    struct toolserver_cursor cursor;
    struct toolserver_exchange *exchange = toolserver_begin(server, call, caller);
    if (!exchange) return;
    struct str last = toolserver_header(exchange, STR("last-event-id"));
    if (!last.len || !server->sessions || !server->table->resume) {
        refuse_method(exchange, allowed_by(server),
                      STR("the server sends nothing outside calls; a GET goes on with a call "
                          "whose stream broke, after its Last-Event-ID"));
    } else if (!exchange->accepts_events) {
        toolserver_refuse(exchange, 406, STR("null"), JSONRPC_INVALID_REQUEST,
                          STR("Accept must have text/event-stream"));
    } else if (toolserver_take_session(exchange) && take_version(exchange)) {
        if (!exchange->session.len) {
            toolserver_refuse(
                exchange, 400, STR("null"), JSONRPC_INVALID_REQUEST,
                STR("Mcp-Session-Id is missing: only a call of a session can go on"));
        } else if (!toolserver_cursor_read(last, exchange->arena, &cursor)) {
            toolserver_refuse(exchange, 400, STR("null"), JSONRPC_INVALID_REQUEST,
                              STR("Last-Event-ID is not the id of an event of this server"));
        } else {
            toolserver_resume(exchange, &cursor);
        }
    }
    exchange->reading = false;
    toolserver_exchange_read(exchange);
}

void toolserver_delete(struct toolserver *server, struct route_call *call,
                       const struct toolserver_caller *caller) {
    struct toolserver_exchange *exchange = toolserver_begin(server, call, caller);
    if (!exchange) return;
    struct str id = toolserver_header(exchange, SESSION_HEADER);
    struct toolserver_owner owner = owner_of(exchange);
    if (!server->sessions) {
        refuse_method(exchange, allowed_by(server), STR("the server has no sessions"));
    } else if (!id.len) {
        toolserver_refuse(exchange, 400, STR("null"), JSONRPC_INVALID_REQUEST,
                          STR("Mcp-Session-Id is missing: which session is over?"));
    } else if (!toolserver_sessions_close(server->sessions, id, &owner)) {
        toolserver_refuse(exchange, 404, STR("null"), JSONRPC_INVALID_REQUEST,
                          STR("there is no such session"));
    } else {
        toolserver_exchange_empty(exchange, 204);
    }
}

void toolserver_cut(struct toolserver *server) {
    LIST_EACH(&server->exchanges, link) {
        struct toolserver_exchange *exchange =
            CONTAINER_OF(link, struct toolserver_exchange, link);
        LIST_EACH(&exchange->calls, at) {
            struct toolserver_call *call = CONTAINER_OF(at, struct toolserver_call, link);
            if (call->state == TOOLSERVER_CALL_RUNNING) call->watch->cut(call->ctx);
        }
    }
}
