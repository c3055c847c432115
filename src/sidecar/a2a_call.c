/* The A2A helper: a call to another agent in AgentBreeder's dialect. */
#include "base/clock.h"
#include "base/mem.h"
#include "sidecar/helpers.h"
#include "sidecar/request_span.h"
#include "sidecar/trace.h"
#include "wire/json.h"

#include <stdlib.h>

#define CALL_MS 30000
#define ANSWER_MAX_BYTES (8 * MIB)

struct a2a_call {
    struct route_call *call; /* NULL: the caller left */
    struct http_call *http;
    struct text body;
    struct trace trace;
    struct str peer;
    uint64_t began_us;
    unsigned status;
    struct buf answer;
};

static void a2a_free(struct a2a_call *a2a) {
    text_done(&a2a->body);
    buf_done(&a2a->answer);
    free(a2a);
}

static void a2a_call_fail(struct route_call *call, int status, struct str code,
                          struct str message) {
    route_fail(call, &(struct route_failure){status, code, message, STR_EMPTY});
}

/* --- the peer --------------------------------------------------------------------------------- */

static void a2a_call_on_head(const struct http_head *head, void *ctx) {
    struct a2a_call *a2a = ctx;
    a2a->status = head->status;
}

static void a2a_call_on_body(struct lent bytes, void *ctx) {
    struct a2a_call *a2a = ctx;
    buf_append(&a2a->answer, lent_read(bytes));
}

/* A response of JSON-RPC, whatever it says. */
static bool is_response(struct str body) {
    struct json json;
    struct err e;
    return json_read(body, &json, &e) && json.kind == JSON_OBJECT &&
           (json_find(json, STR("result")).kind != JSON_NONE ||
            json_find(json, STR("error")).kind != JSON_NONE);
}

static void a2a_call_report_span(const struct a2a_call *a2a, const struct err *failed) {
    request_span_part(
        &a2a->trace, &(struct part_span){.operation = SPAN_NAME("a2a"),
                                         .what = a2a->peer,
                                         .kind = SPAN_CLIENT,
                                         .self = a2a->trace.call,
                                         .by_agent = true,
                                         .took_us = clock_mono_us() - a2a->began_us,
                                         .status = (int)a2a->status,
                                         .error = failed ? err_name(failed->code) : STR_EMPTY});
}

static void a2a_call_on_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct a2a_call *a2a = ctx;
    (void)stage;
    a2a->http = NULL;
    a2a_call_report_span(a2a, failed);
    bool late = failed && failed->code == ERR_DEADLINE_EXCEEDED;
    if (failed)
        a2a_call_fail(a2a->call, late ? 504 : 502,
                      late ? STR("UPSTREAM_TIMEOUT") : STR("UPSTREAM_UNREACHABLE"),
                      err_text(failed));
    else if (a2a->status >= 500 || !is_response(buf_str(&a2a->answer)))
        a2a_call_fail(a2a->call, 502, STR("UPSTREAM_INVALID"),
                      STR("the peer's answer is no response of JSON-RPC"));
    else
        route_reply(a2a->call, 200, STR("application/json"), buf_str(&a2a->answer));
}

static const struct http_sink sink = {a2a_call_on_head, a2a_call_on_body, a2a_call_on_end};

/* --- the caller ------------------------------------------------------------------------------- */

static void a2a_call_on_left(void *ctx) {
    struct a2a_call *a2a = ctx;
    if (a2a->http) http_cancel(a2a->http);
    a2a_free(a2a);
}

static void a2a_call_on_closed(void *ctx) {
    a2a_free(ctx);
}

static const struct route_watch watch = {.left = a2a_call_on_left,
                                         .closed = a2a_call_on_closed};

/* --- the request ------------------------------------------------------------------------------ */

static void a2a_call_write_call(struct json request, struct buf *out) {
    struct trace fresh;
    struct json method = json_find(request, STR("method"));
    struct json params = json_find(request, STR("params"));
    bool named = method.kind == JSON_STRING && method.raw.len > 2;
    trace_begin(&fresh, STR_EMPTY, STR_EMPTY);
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_str(&json, "jsonrpc", STR("2.0"));
    json_member_str(&json, "id", trace_id(&fresh));
    json_member_raw(&json, "method", named ? method.raw : STR("\"tasks/send\""));
    json_member_raw(&json, "params", params.kind == JSON_OBJECT ? params.raw : STR("{}"));
    json_close(&json);
}

static void a2a_call_ask(struct sidecar *sidecar, struct a2a_call *a2a,
                         const struct sidecar_peer *peer, struct str trace) {
    struct buf url, authorization;
    struct str base = peer->url;
    struct str token = peer->token.len ? peer->token : sidecar->options->token;
    char parent[TRACE_PARENT_BYTES + 1];
    bool traces = trace.len || a2a->trace.parent[0];
    trace_write_parent(&a2a->trace, parent);
    a2a->peer = peer->name;
    a2a->began_us = clock_mono_us();
    buf_init(&url, 64 * KIB);
    buf_init(&authorization, 64 * KIB);
    while (str_ends(base, STR("/"))) base = str_head(base, base.len - 1);
    buf_append(&url, base);
    buf_append(&url, STR("/a2a"));
    buf_append(&authorization, STR("Bearer "));
    buf_append(&authorization, token);
    struct http_header headers[4] = {{STR("Content-Type"), STR("application/json")}};
    size_t count = 1;
    if (token.len)
        headers[count++] = (struct http_header){STR("Authorization"), buf_str(&authorization)};
    if (trace.len) headers[count++] = (struct http_header){STR("X-Trace-Id"), trace};
    if (traces) headers[count++] = (struct http_header){STR("traceparent"), str_from(parent)};
    const struct http_request request = {.method = STR("POST"),
                                         .url = buf_str(&url),
                                         .headers = headers,
                                         .header_count = count,
                                         .body = text_str(a2a->body),
                                         .total_ms = CALL_MS,
                                         .body_max_bytes = ANSWER_MAX_BYTES,
                                         .once = true};
    a2a->http = http_start(sidecar->pool, sidecar->loop, &request, &sink, a2a);
    buf_done(&authorization);
    buf_done(&url);
}

static const struct sidecar_peer *peer_named(const struct sidecar_options *options,
                                             struct str name) {
    for (size_t i = 0; i < options->peer_count; i++) {
        if (str_equal(options->peers[i].name, name)) return &options->peers[i];
    }
    return NULL;
}

void helpers_a2a(struct route_call *call, void *ctx) {
    struct sidecar *sidecar = ctx;
    struct json request;
    struct err e;
    struct buf body;
    const struct sidecar_peer *peer =
        peer_named(sidecar->options, lent_read(route_parameter(call, STR("peer"))));
    if (!json_read(lent_read(route_body(call)), &request, &e) || request.kind != JSON_OBJECT) {
        a2a_call_fail(call, 400, STR("INVALID_INPUT"), STR("the body is no JSON object"));
        return;
    }
    if (!peer) {
        a2a_call_fail(call, 502, STR("UPSTREAM_UNREACHABLE"), STR("there is no such peer"));
        return;
    }
    struct a2a_call *a2a = MEM_NEW(struct a2a_call);
    a2a->call = call;
    buf_init(&a2a->answer, ANSWER_MAX_BYTES);
    buf_init(&body, 16 * MIB);
    a2a_call_write_call(request, &body);
    a2a->body = text_copy(buf_str(&body));
    buf_done(&body);
    struct str trace = lent_read(route_header(call, STR("x-trace-id")));
    trace_begin(&a2a->trace, trace, lent_read(route_header(call, STR("traceparent"))));
    request_span_fork(&a2a->trace);
    route_watch(call, &watch, a2a);
    a2a_call_ask(sidecar, a2a, peer, trace_id_ok(trace) ? trace : STR_EMPTY);
}
