#include "contract/otlp/contract.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/version.h"
#include "contract/otlp/options.h"
#include "spans/spans.h"
#include "wire/json.h"

#include <stdlib.h>

#define EVERY_MS 1000
#define SEND_MS 10000
#define LAST_MS 1000
#define HEADERS_MAX 16
#define BODY_MAX_BYTES (SPANS_MAX_BYTES + 64 * KIB)
#define ANSWER_MAX_BYTES (64 * KIB)

struct otlp_process {
    const struct otlp_options *options;
    struct loop *loop;
    struct http_pool *pool;
    const struct http_sink *sink;
    struct text url;
    struct http_header headers[HEADERS_MAX + 1];
    size_t header_count;
    struct timer due;
    struct http_call *call;
    struct buf body; /* of the call, which borrows it */
    unsigned status;
};

/* --- a batch ---------------------------------------------------------------------------------- */

static void write_text(struct json_writer *json, const char *name, struct str text) {
    json_open_object(json);
    json_member_str(json, "key", str_from(name));
    json_member_object(json, "value");
    json_member_str(json, "stringValue", text);
    json_close(json);
    json_close(json);
}

static void write_batch(const struct otlp_options *options, struct str spans, struct buf *out) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_array(&json, "resourceSpans");
    json_open_object(&json);
    json_member_object(&json, "resource");
    json_member_array(&json, "attributes");
    write_text(&json, "service.name", options->service);
    write_text(&json, "service.version", STR(WEIR_VERSION));
    json_close(&json);
    json_close(&json);
    json_member_array(&json, "scopeSpans");
    json_open_object(&json);
    json_member_object(&json, "scope");
    json_member_str(&json, "name", STR("weir"));
    json_member_str(&json, "version", STR(WEIR_VERSION));
    json_close(&json);
    json_member_array(&json, "spans");
    buf_append(out, spans);
    while (json.depth) json_close(&json);
}

/* --- sending ---------------------------------------------------------------------------------- */

static void on_head(const struct http_head *head, void *ctx) {
    struct otlp_process *otlp = ctx;
    otlp->status = head->status;
}

static void on_body(struct lent bytes, void *ctx) {
    (void)bytes, (void)ctx;
}

static void on_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct otlp_process *otlp = ctx;
    (void)stage;
    otlp->call = NULL;
    buf_release(&otlp->body);
    if (failed || otlp->status / 100 != 2)
        log_often(LOG_WARNING, "a collector of spans did not take them: %s, status %u",
                  failed ? failed->text : "refused", otlp->status);
}

static const struct http_sink sink = {on_head, on_body, on_end};

static void otlp_send(struct otlp_process *otlp, uint64_t total_ms) {
    struct buf spans;
    uint64_t dropped;
    buf_init(&spans, SPANS_MAX_BYTES + KIB);
    bool found = spans_take(&spans, &dropped);
    if (dropped)
        log_often(LOG_WARNING, "%llu spans were dropped: the collector is too slow",
                  (unsigned long long)dropped);
    if (found) {
        buf_clear(&otlp->body);
        write_batch(otlp->options, buf_str(&spans), &otlp->body);
        const struct http_request request = {.method = STR("POST"),
                                             .url = text_str(otlp->url),
                                             .headers = otlp->headers,
                                             .header_count = otlp->header_count,
                                             .body = buf_str(&otlp->body),
                                             .total_ms = total_ms,
                                             .body_max_bytes = ANSWER_MAX_BYTES};
        otlp->status = 0;
        otlp->call = http_start(otlp->pool, otlp->loop, &request, otlp->sink, otlp);
    }
    buf_done(&spans);
}

static void on_due(void *ctx) {
    struct otlp_process *otlp = ctx;
    if (!otlp->call) otlp_send(otlp, SEND_MS);
    timer_start(&otlp->due, EVERY_MS);
}

/* --- the last ones ---------------------------------------------------------------------------- */

static void on_last_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct otlp_process *otlp = ctx;
    on_end(failed, stage, ctx);
    loop_stop(otlp->loop);
}

static const struct http_sink last_sink = {on_head, on_body, on_last_end};

static void need_client(const struct otlp_process *otlp) {
    struct err e;
    if (!http_pool_need(otlp->pool, &e)) log_warning("no spans can be sent: %s", e.text);
}

/* All other loops have stopped, so it gets one of its own. */
static void send_last(struct otlp_process *otlp) {
    otlp->loop = loop_new();
    otlp->pool = http_pool_new();
    otlp->sink = &last_sink;
    http_pool_add(otlp->pool, otlp->loop);
    need_client(otlp);
    otlp_send(otlp, LAST_MS);
    if (otlp->call) loop_run(otlp->loop);
    http_pool_leave(otlp->pool, otlp->loop);
    loop_free(otlp->loop);
    http_pool_free(otlp->pool);
}

/* --- the process ------------------------------------------------------------------------------ */

static bool otlp_wanted(const struct config *config) {
    const struct otlp_options *options = otlp_options(config);
    return options->endpoint.len > 0 && !options->disabled;
}

static void read_headers(struct otlp_process *otlp, struct str text) {
    otlp->headers[otlp->header_count++] =
        (struct http_header){STR("Content-Type"), STR("application/json")};
    while (text.len && otlp->header_count < ARRAY_LEN(otlp->headers)) {
        struct str value, entry = str_split(text, ',', &text);
        struct str name = str_trim(str_split(entry, '=', &value));
        if (name.len && value.at)
            otlp->headers[otlp->header_count++] = (struct http_header){name, str_trim(value)};
    }
}

static void *otlp_open(const struct contract_process *process) {
    struct otlp_process *otlp = MEM_NEW(struct otlp_process);
    struct buf url;
    otlp->options = otlp_options(process->config);
    otlp->loop = process->loop;
    otlp->pool = process->pool;
    otlp->sink = &sink;
    buf_init(&otlp->body, BODY_MAX_BYTES);
    struct str base = otlp->options->endpoint;
    while (str_ends(base, STR("/"))) base = str_head(base, base.len - 1);
    buf_init(&url, 16 * KIB);
    buf_append(&url, base);
    buf_append(&url, STR("/v1/traces"));
    otlp->url = text_copy(buf_str(&url));
    buf_done(&url);
    read_headers(otlp, otlp->options->headers);
    timer_init(&otlp->due, otlp->loop, on_due, otlp);
    timer_start(&otlp->due, EVERY_MS);
    need_client(otlp);
    spans_start();
    return otlp;
}

static void otlp_stopped(void *state, bool forced) {
    struct otlp_process *otlp = state;
    (void)forced;
    timer_stop(&otlp->due);
    if (otlp->call) http_cancel(otlp->call);
    otlp->call = NULL;
}

static void otlp_close(void *state) {
    struct otlp_process *otlp = state;
    otlp_stopped(state, false);
    send_last(otlp);
    spans_stop();
    text_done(&otlp->url);
    buf_done(&otlp->body);
    free(otlp);
}

/* --- an instance: there is nothing in it ------------------------------------------------------ */

static void *otlp_init(const struct contract_loop *loop, const void *settings, void *state) {
    (void)loop, (void)settings;
    return state;
}

const struct contract otlp_contract = {
    .name = STR_INIT("otlp"),
    .rows = &otlp_rows,
    .wanted = otlp_wanted,
    .process = {.open = otlp_open, .stopped = otlp_stopped, .close = otlp_close},
    .instance = {.init = otlp_init},
};
