#include "toolserver/bridge.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/text.h"
#include "toolserver/request.h"
#include "wire/sse.h"

#include <stdlib.h>

#define ANSWER_MAX_BYTES (128 * MIB)
#define HEADERS_MAX 8
#define CONNECT_MS 10000

struct toolserver_bridge {
    struct toolserver_bridge_options options;
    struct text url, authorization;
    struct text session, version; /* of the handshake, once known */
    struct list trips;
};

/* One message on its way. */
struct trip {
    struct list link;
    struct toolserver_bridge *bridge;
    struct http_call *call;
    struct buf body, got;
    struct arena *arena; /* for the parts of the message */
    struct toolserver_request request;
    struct sse *sse; /* NULL: the answer is one body */
    unsigned status;
    bool is_batch;
    bool answered;
    bool had_session;
};

/* --- its life ----------------------------------------------------------------------------- */

struct toolserver_bridge *
toolserver_bridge_new(const struct toolserver_bridge_options *options) {
    struct toolserver_bridge *bridge = MEM_NEW(struct toolserver_bridge);
    bridge->options = *options;
    bridge->url = text_copy(options->url);
    bridge->authorization = text_copy(options->authorization);
    list_init(&bridge->trips);
    return bridge;
}

static void trip_free(struct trip *trip) {
    list_remove(&trip->link);
    if (trip->call) http_cancel(trip->call);
    sse_free(trip->sse);
    arena_free(trip->arena);
    buf_done(&trip->body);
    buf_done(&trip->got);
    free(trip);
}

void toolserver_bridge_free(struct toolserver_bridge *bridge) {
    if (!bridge) return;
    LIST_EACH(&bridge->trips, link) {
        trip_free(CONTAINER_OF(link, struct trip, link));
    }
    text_done(&bridge->url);
    text_wipe(&bridge->authorization);
    text_done(&bridge->session);
    text_done(&bridge->version);
    free(bridge);
}

bool toolserver_bridge_is_idle(const struct toolserver_bridge *bridge) {
    return list_empty(&bridge->trips);
}

static void trip_over(struct trip *trip) {
    struct toolserver_bridge *bridge = trip->bridge;
    trip_free(trip);
    if (list_empty(&bridge->trips) && bridge->options.on_idle)
        bridge->options.on_idle(bridge->options.ctx);
}

/* --- to the client ------------------------------------------------------------------------ */

static void bridge_pass(struct toolserver_bridge *bridge, struct str message) {
    struct buf line;
    buf_init(&line, ANSWER_MAX_BYTES);
    json_compact(message, &line); /* without line breaks */
    if (buf_ok(&line)) bridge->options.on_message(buf_str(&line), bridge->options.ctx);
    buf_done(&line);
}

static void pass_error(struct toolserver_bridge *bridge, struct str id, int64_t code,
                       struct str message) {
    struct buf text;
    buf_init(&text, ANSWER_MAX_BYTES);
    jsonrpc_write_error(&text, id, code, message);
    bridge->options.on_message(buf_str(&text), bridge->options.ctx);
    buf_done(&text);
}

/* The version that the server chose is that of every later request. */
static void take_handshake(struct trip *trip, struct json message) {
    struct json version = json_find(json_find(message, STR("result")), STR("protocolVersion"));
    struct str text;
    if (trip->request.method != TOOLSERVER_INITIALIZE || version.kind != JSON_STRING) return;
    if (!json_str(version, trip->arena, &text)) return;
    text_done(&trip->bridge->version);
    trip->bridge->version = text_copy(text);
}

static void bridge_take_message(struct trip *trip, struct str text) {
    struct json message;
    struct err e;
    if (!json_read(text, &message, &e)) return;
    struct json id = json_find(message, STR("id"));
    if (json_find(message, STR("method")).kind == JSON_NONE &&
        (trip->is_batch || str_equal(id.raw, trip->request.id.raw)))
        trip->answered = true;
    take_handshake(trip, message);
    bridge_pass(trip->bridge, text);
}

/* A request gets an answer, whatever became of it; anything else is not answered. */
static void bridge_give_up(struct trip *trip, struct str why) {
    struct str id = trip->request.id.raw;
    if (!trip->answered && id.len) pass_error(trip->bridge, id, JSONRPC_INTERNAL_ERROR, why);
    trip_over(trip);
}

/* --- the server's answer ------------------------------------------------------------------ */

static void bridge_on_event(const struct sse_event *event, void *ctx) {
    if (event->data.len) bridge_take_message(ctx, event->data);
}

static void bridge_on_head(const struct http_head *head, void *ctx) {
    struct trip *trip = ctx;
    trip->status = head->status;
    if (head->session.len && head->status < 300 &&
        trip->request.method == TOOLSERVER_INITIALIZE) {
        text_done(&trip->bridge->session);
        trip->bridge->session = text_copy(head->session);
    }
    if (str_find_nocase(head->content_type, STR("text/event-stream")) < head->content_type.len)
        trip->sse = sse_new(ANSWER_MAX_BYTES, bridge_on_event, trip);
}

static void bridge_on_body(struct lent lent, void *ctx) {
    struct trip *trip = ctx;
    struct err e;
    if (!trip->sse) {
        buf_append(&trip->got, lent_read(lent));
    } else if (!sse_feed(trip->sse, lent_read(lent), &e)) {
        http_cancel(trip->call);
        trip->call = NULL;
        bridge_give_up(trip, err_text(&e));
    }
}

/* The text of a refusal, as far as it has one. */
static struct str bridge_reason_of(struct trip *trip) {
    struct json body;
    struct err e;
    struct str text = STR("the server refused the message");
    if (!json_read(buf_str(&trip->got), &body, &e)) return text;
    struct json message = json_find(json_find(body, STR("error")), STR("message"));
    return json_str(message, trip->arena, &text) ? text : STR("the server refused the message");
}

static void send_trip(struct trip *trip);

/* The session is gone with the process that knew it. */
static bool send_again(struct trip *trip) {
    if (trip->status != 404 || !trip->had_session) return false;
    text_done(&trip->bridge->session);
    buf_clear(&trip->got);
    send_trip(trip);
    return true;
}

/* Whether the body of a refusal is the message that the client waits for. */
static bool is_own_answer(const struct trip *trip) {
    struct json body;
    struct err e;
    struct str id = trip->request.id.raw;
    if (!json_read(buf_str(&trip->got), &body, &e)) return false;
    return trip->is_batch || (id.len > 0 && str_equal(json_find(body, STR("id")).raw, id));
}

static void bridge_on_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct trip *trip = ctx;
    (void)stage;
    trip->call = NULL;
    if (failed) {
        bridge_give_up(trip, err_text(failed));
    } else if (trip->sse) {
        bridge_give_up(trip, STR("the server ended the stream before it answered"));
    } else if (send_again(trip)) {
        return;
    } else if (trip->got.len && (trip->status < 300 || is_own_answer(trip))) {
        bridge_take_message(trip, buf_str(&trip->got));
        trip_over(trip);
    } else if (trip->status < 300) {
        trip_over(trip); /* accepted: a notification, or a call that was cancelled */
    } else {
        bridge_give_up(trip, bridge_reason_of(trip));
    }
}

static const struct http_sink sink = {bridge_on_head, bridge_on_body, bridge_on_end};

/* --- to the server ------------------------------------------------------------------------ */

static void bridge_add_header(struct http_header *headers, size_t *count, struct str name,
                              struct str value) {
    if (value.len) headers[(*count)++] = (struct http_header){name, value};
}

/* A stateless request says in headers what it says in its body. */
static void add_own(struct trip *trip, struct http_header *headers, size_t *count) {
    const struct toolserver_request *request = &trip->request;
    struct json name = json_find(request->params, STR("name"));
    struct str text;
    if (json_str(request->version, trip->arena, &text))
        bridge_add_header(headers, count, STR("mcp-protocol-version"), text);
    if (json_str(request->name, trip->arena, &text))
        bridge_add_header(headers, count, STR("mcp-method"), text);
    if (json_str(name, trip->arena, &text))
        bridge_add_header(headers, count, STR("mcp-name"), text);
}

static bool is_stateless(const struct trip *trip) {
    return trip->request.version.kind == JSON_STRING;
}

static void send_trip(struct trip *trip) {
    struct toolserver_bridge *bridge = trip->bridge;
    struct http_header headers[HEADERS_MAX];
    size_t count = 0;
    bool greets = trip->request.method == TOOLSERVER_INITIALIZE;
    bridge_add_header(headers, &count, STR("content-type"), STR("application/json"));
    bridge_add_header(headers, &count, STR("accept"),
                      STR("application/json, text/event-stream"));
    bridge_add_header(headers, &count, STR("authorization"), text_str(bridge->authorization));
    if (is_stateless(trip)) {
        add_own(trip, headers, &count);
    } else if (!greets) {
        bridge_add_header(headers, &count, STR("mcp-session-id"), text_str(bridge->session));
        bridge_add_header(headers, &count, STR("mcp-protocol-version"),
                          text_str(bridge->version));
    }
    trip->had_session = !is_stateless(trip) && !greets && bridge->session.len > 0;
    trip->call = http_start(bridge->options.pool, bridge->options.loop,
                            &(struct http_request){.method = STR("POST"),
                                                   .url = text_str(bridge->url),
                                                   .headers = headers,
                                                   .header_count = count,
                                                   .body = buf_str(&trip->body),
                                                   .connect_ms = CONNECT_MS,
                                                   .once = true},
                            &sink, trip);
}

/* Without a session the server knows no other trip: the connection of that one is closed. */
static bool cancel_here(struct toolserver_bridge *bridge, const struct trip *cancelling) {
    LIST_EACH(&bridge->trips, link) {
        struct trip *trip = CONTAINER_OF(link, struct trip, link);
        bool meant = trip != cancelling && trip->request.id.raw.len &&
                     str_equal(trip->request.id.raw, cancelling->request.cancels.raw);
        if (!meant || trip->had_session) continue;
        trip_free(trip);
        return true;
    }
    return false;
}

static void start_trip(struct toolserver_bridge *bridge, struct trip *trip) {
    trip->bridge = bridge;
    list_append(&bridge->trips, &trip->link);
    if (trip->request.method == TOOLSERVER_CANCELLED && cancel_here(bridge, trip)) {
        trip_over(trip);
    } else {
        send_trip(trip);
    }
}

/* The parts of the request are views of the trip's own copy. */
static bool read_line(struct trip *trip, struct str line, struct str *ret_id, int64_t *ret_code,
                      struct err *e) {
    struct json value;
    *ret_id = STR("null");
    *ret_code = JSONRPC_PARSE_ERROR;
    buf_append(&trip->body, line);
    if (!buf_ok(&trip->body)) return err_set(e, ERR_TOO_LARGE, "the message is too long");
    if (!json_read(buf_str(&trip->body), &value, e)) return false;
    trip->is_batch = value.kind == JSON_ARRAY;
    trip->request.method = TOOLSERVER_NOTE;
    if (trip->is_batch || toolserver_request_read(value, &trip->request, e)) return true;
    *ret_id = toolserver_request_id(value);
    *ret_code = JSONRPC_INVALID_REQUEST;
    return false;
}

void toolserver_bridge_take(struct toolserver_bridge *bridge, struct str line) {
    struct str id;
    struct err e;
    int64_t code;
    if (str_trim(line).len == 0) return;
    struct trip *trip = MEM_NEW(struct trip);
    list_init(&trip->link);
    trip->arena = arena_new(64 * KIB);
    buf_init(&trip->body, TOOLSERVER_LINE_MAX_BYTES);
    buf_init(&trip->got, ANSWER_MAX_BYTES);
    if (read_line(trip, line, &id, &code, &e)) {
        start_trip(bridge, trip);
        return;
    }
    pass_error(bridge, id, code, err_text(&e));
    trip_free(trip);
}
