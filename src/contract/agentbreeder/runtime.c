#include "contract/agentbreeder/runtime.h"

#include "base/log.h"
#include "base/same.h"
#include "contract/agentbreeder/describe.h"
#include "contract/agentbreeder/refusal.h"
#include "route/route_json.h"
#include "wire/json.h"
#include "wire/token.h"

#define VERSION_HEADER STR_INIT("x-runtime-contract-version")
#define VERSION "1"
#define RETRY_AFTER_S STR("5")
#define QUOTED_MAX_BYTES 200 /* of a peer's input quoted in a message */

/* --- authentication and version ----------------------------------------------------------- */

static bool runtime_refuse(struct route_failure *ret, int status, struct str code,
                           struct str message) {
    *ret = (struct route_failure){status, code, message, STR_EMPTY};
    return false;
}

/* Log the reason for the operator, never the token. */
static void note_refusal(struct route_call *call, const char *why) {
    log_often(LOG_WARNING, "a token is refused: it is %s; peer " STR_FMT, why,
              STR_ARG(exchange_peer(route_exchange(call))));
}

static bool may_enter(struct route_call *call, const struct runtime_settings *settings,
                      struct route_failure *ret) {
    struct str given = bearer_token(lent_read(route_header(call, STR("authorization"))));
    if (!given.at) {
        note_refusal(call, "missing");
        route_field(call, STR("www-authenticate"), STR("Bearer realm=\"weir\""));
        return runtime_refuse(ret, 401, STR("UNAUTHORIZED"), STR("Missing bearer token"));
    }
    if (!same_secret(given, settings->token)) {
        note_refusal(call, "not ours");
        return runtime_refuse(ret, 403, STR("FORBIDDEN"), STR("Invalid bearer token"));
    }
    log_debug("the token of the Runtime Contract, used by " STR_FMT,
              STR_ARG(exchange_peer(route_exchange(call))));
    route_caller(call, STR("runtime contract"), STR_EMPTY);
    return true;
}

/* {"supported":["1"],"requested":"2"} */
static struct str version_details(struct route_call *call, struct str asked) {
    struct buf details;
    buf_init(&details, 2 * KIB);
    struct json_writer json = json_writer(&details);
    json_open_object(&json);
    json_member_array(&json, "supported");
    json_write_str(&json, STR(VERSION));
    json_close(&json);
    json_member_str(&json, "requested", str_head(asked, QUOTED_MAX_BYTES));
    json_close(&json);
    struct str kept = route_keep(call, buf_str(&details));
    buf_done(&details);
    return kept;
}

static bool speaks_version(struct route_call *call, struct route_failure *ret) {
    struct str asked = lent_read(route_header(call, (struct str)VERSION_HEADER));
    if (!asked.at || str_equal(asked, STR(VERSION))) return true;
    runtime_refuse(ret, 400, STR("UNSUPPORTED_CONTRACT_VERSION"),
                   STR("this agent speaks Runtime Contract version " VERSION
                       "; leave the header out or send " VERSION));
    ret->details = version_details(call, asked);
    return false;
}

static bool is_loaded(const struct runtime_instance *instance) {
    return instance->guest.loaded && !instance->guest.stopping;
}

/* All checks after path and method and before the body, in the order of 1.13. Everything in
 * this table is implemented, so there is no 501. */
static enum route_entry guard(struct route_call *call, const struct route *row, void *ctx,
                              struct route_failure *ret) {
    const struct runtime_instance *instance = ctx;
    bool asks = runtime_settings(instance)->token.len > 0;
    (void)row;
    if (asks && !may_enter(call, runtime_settings(instance), ret)) return ENTRY_REFUSED;
    if (!speaks_version(call, ret)) return ENTRY_REFUSED;
    if (is_loaded(instance)) return asks ? ENTRY_PROVED : ENTRY_TRUSTED;
    route_field(call, STR("retry-after"), RETRY_AFTER_S);
    runtime_refuse(ret, 503, STR("AGENT_NOT_LOADED"), STR("Agent not loaded yet"));
    return ENTRY_REFUSED;
}

/* --- failures ----------------------------------------------------------------------------- */

/* 401 and 403 have both forms that readers know; see section 1.4 of the sheet. */
static void failure_body(const struct route_failure *failure, struct buf *out) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    if (failure->status == 401 || failure->status == 403) {
        json_member_str(&json, "detail", failure->message);
    }
    json_member_object(&json, "error");
    json_member_str(&json, "code", failure->code);
    json_member_str(&json, "message", failure->message);
    if (failure->details.len) json_member_raw(&json, "details", failure->details);
    json_close(&json);
    json_close(&json);
}

/* --- open routes -------------------------------------------------------------------------- */

/* A probe never fails because of its version or its token. */
static void health(struct route_call *call, void *ctx) {
    const struct runtime_instance *instance = ctx;
    const struct runtime_settings *settings = runtime_settings(instance);
    struct route_json reply;
    struct json_writer *json = route_json_object(&reply, 8 * KIB);
    json_member_str(json, "status", is_loaded(instance) ? STR("healthy") : STR("loading"));
    json_member_str(json, "agent_name", settings->agent_name);
    json_member_str(json, "version", settings->agent_version);
    if (settings->framework.len) json_member_str(json, "framework", settings->framework);
    route_json_reply(&reply, call, 200);
}

/* What a description writes. */
typedef void describe_fn(struct route_call *call, const struct runtime_instance *instance,
                         struct buf *out);

static void write_document(struct route_call *call, const struct runtime_instance *instance,
                           struct buf *out) {
    (void)call;
    describe_openapi(instance->table, out);
}

static void write_a2a(struct route_call *call, const struct runtime_instance *instance,
                      struct json_writer *w) {
    const struct engine *engine = instance->guest.site.host->engine;
    const struct contract_callers *callers = &instance->guest.callers;
    bool secured = callers->secured && callers->secured(callers->ctx);
    agent_card_write(call, &runtime_settings(instance)->card, engine, &engine->agents[0],
                     secured, w);
}

static void write_card(struct route_call *call, const struct runtime_instance *instance,
                       struct buf *out) {
    struct json_writer w = json_writer(out);
    json_open_object(&w);
    describe_card(instance->table, runtime_settings(instance), &w);
    if (runtime_settings(instance)->card.a2a && instance->guest.site.host->engine->agent_count)
        write_a2a(call, instance, &w);
    json_close(&w);
}

static void runtime_describe(struct route_call *call, const struct runtime_instance *instance,
                             describe_fn *write) {
    struct route_failure failure;
    if (!speaks_version(call, &failure)) {
        route_fail(call, &failure);
        return;
    }
    struct route_json reply;
    (void)route_json_begin(&reply, DESCRIPTION_MAX_BYTES);
    write(call, instance, &reply.text);
    route_json_reply(&reply, call, 200);
}

static void document(struct route_call *call, void *ctx) {
    runtime_describe(call, ctx, write_document);
}

static void card(struct route_call *call, void *ctx) {
    runtime_describe(call, ctx, write_card);
}

/* --- the table ---------------------------------------------------------------------------- */

/* describe.c describes each of them. */
static const struct route rows[] = {
    /* clang-format off */
    {STR_INIT("GET"),  STR_INIT("/health"),                 health,      ROUTE_OPEN,    ROUTE_HEAD},
    {STR_INIT("POST"), STR_INIT("/invoke"),                 turn_invoke, ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("POST"), STR_INIT("/stream"),                 turn_stream, ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("POST"), STR_INIT("/resume"),                 turn_resume, ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("GET"),  STR_INIT("/openapi.json"),           document,    ROUTE_OPEN,    ROUTE_HEAD},
    {STR_INIT("GET"),  STR_INIT("/.well-known/agent.json"), card,        ROUTE_OPEN,    ROUTE_HEAD},
    /* clang-format on */
};

static const struct field always[] = {{VERSION_HEADER, STR_INIT(VERSION)}};

static void refusal_body(int status, struct str text, struct buf *out) {
    static const struct {
        int status;
        struct str code;
    } codes[] = {{408, STR_INIT("REQUEST_TIMEOUT")},
                 {413, STR_INIT("PAYLOAD_TOO_LARGE")},
                 {500, STR_INIT("INTERNAL_ERROR")},
                 {501, STR_INIT("NOT_IMPLEMENTED")}};
    struct route_failure failure = {status, STR("INVALID_INPUT"), text, STR_EMPTY};
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        if (codes[i].status == status) failure.code = codes[i].code;
    }
    failure_body(&failure, out);
}

const struct refusal_form runtime_refusal = {.content_type = STR_INIT("application/json"),
                                             .body = refusal_body,
                                             .always = always,
                                             .always_count = ARRAY_LEN(always)};

void runtime_sign(struct route_table *table) {
    table->always = always;
    table->always_count = ARRAY_LEN(always);
}

void runtime_table(void *ctx, struct route_table *ret) {
    struct runtime_instance *instance = ctx;
    guest_table(&instance->guest, rows, ARRAY_LEN(rows), failure_body, ret);
    ret->guard = guard;
    ret->rated = refusal_rated;
    runtime_sign(ret);
    instance->table = ret;
}
