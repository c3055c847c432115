#include "contract/agentbreeder/runtime.h"

#include "base/log.h"
#include "contract/agentbreeder/turn.h"

#include <nettle/memops.h>

#define VERSION_HEADER STR_INIT("x-runtime-contract-version")
#define RETRY_AFTER_S STR("5")

/* --- /health ------------------------------------------------------------------------------ */

static void health(struct route_call *call, void *ctx) {
    const struct runtime_desk *desk = ctx;
    const struct runtime_settings *settings = desk->settings;
    struct buf body;
    buf_init(&body, 8 * KIB);
    struct json_writer json = json_writer(&body);
    json_open_object(&json);
    json_member_str(&json, "status", desk->loaded ? STR("healthy") : STR("loading"));
    json_member_str(&json, "agent_name", settings->agent_name);
    json_member_str(&json, "version", settings->agent_version);
    if (settings->framework.len) json_member_str(&json, "framework", settings->framework);
    json_close(&json);
    route_reply(call, 200, STR("application/json"), buf_str(&body));
    buf_done(&body);
}

/* --- who may come in ---------------------------------------------------------------------- */

static bool refuse(struct route_failure *ret, int status, struct str code, struct str message) {
    *ret = (struct route_failure){status, code, message, STR_EMPTY};
    return false;
}

/* For the operator; never the token. */
static void note_refusal(struct route_call *call, const char *why) {
    log_often(LOG_WARNING, "a token is refused: it is %s; peer " STR_FMT, why,
              STR_ARG(exchange_peer(route_exchange(call))));
}

/* Constant time in the token's content; its length is no secret. */
static bool is_token(struct str given, struct str token) {
    return given.len == token.len && memeql_sec(given.at, token.at, token.len);
}

static bool may_enter(struct route_call *call, const struct runtime_settings *settings,
                      struct route_failure *ret) {
    if (settings->token.len == 0) return true;
    struct str header = route_header(call, STR("authorization"));
    struct str given;
    struct str scheme = str_split(header, ' ', &given);
    given = str_trim(given);
    if (!header.at || !str_equal_nocase(scheme, STR("bearer")) || given.len == 0) {
        note_refusal(call, "missing");
        route_field(call, STR("www-authenticate"), STR("Bearer realm=\"weir\""));
        return refuse(ret, 401, STR("UNAUTHORIZED"), STR("Missing bearer token"));
    }
    if (!is_token(given, settings->token)) {
        note_refusal(call, "not ours");
        return refuse(ret, 403, STR("FORBIDDEN"), STR("Invalid bearer token"));
    }
    log_debug("the token of the Runtime Contract, used by " STR_FMT,
              STR_ARG(exchange_peer(route_exchange(call))));
    return true;
}

static bool speaks_version(struct route_call *call, struct route_failure *ret) {
    struct str asked = route_header(call, (struct str)VERSION_HEADER);
    if (!asked.at || str_equal(asked, STR("1"))) return true;
    return refuse(ret, 400, STR("UNSUPPORTED_CONTRACT_VERSION"),
                  STR("this agent speaks Runtime Contract version 1; leave the header out or "
                      "send 1"));
}

static bool guard(struct route_call *call, const struct route *row, void *ctx,
                  struct route_failure *ret) {
    const struct runtime_desk *desk = ctx;
    if (!(row->needs & ROUTE_AUTH)) return true;
    if (!may_enter(call, desk->settings, ret) || !speaks_version(call, ret)) return false;
    if (desk->loaded) return true;
    route_field(call, STR("retry-after"), RETRY_AFTER_S);
    return refuse(ret, 503, STR("AGENT_NOT_LOADED"), STR("Agent not loaded yet"));
}

/* --- failures ----------------------------------------------------------------------------- */

/* 401 and 403 carry both shapes that readers know; see section 1.4 of the sheet. */
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

/* --- the table ---------------------------------------------------------------------------- */

static const struct route rows[] = {
    /* clang-format off */
    {STR_INIT("GET"),  STR_INIT("/health"), health,      ROUTE_HEAD},
    {STR_INIT("POST"), STR_INIT("/invoke"), turn_invoke, ROUTE_AUTH | ROUTE_JSON},
    {STR_INIT("POST"), STR_INIT("/stream"), turn_stream, ROUTE_AUTH | ROUTE_JSON},
    /* clang-format on */
};

static const struct field always[] = {{VERSION_HEADER, STR_INIT("1")}};

void runtime_desk_init(struct runtime_desk *desk, const struct runtime_settings *settings,
                       struct run_host *host) {
    *desk = (struct runtime_desk){.settings = settings, .host = host};
    list_init(&desk->calls);
}

void runtime_table(struct runtime_desk *desk, struct route_table *ret) {
    *ret = (struct route_table){.rows = rows,
                                .row_count = ARRAY_LEN(rows),
                                .always = always,
                                .always_count = ARRAY_LEN(always),
                                .body_max_bytes = desk->settings->body_max_bytes,
                                .body_stretch_ms = desk->settings->body_stretch_ms,
                                .body_stretch_bytes = desk->settings->body_stretch_bytes,
                                .guard = guard,
                                .failure_body = failure_body,
                                .ctx = desk};
}

void runtime_desk_cut(struct runtime_desk *desk) {
    LIST_EACH(&desk->calls, link) {
        struct turn *turn = CONTAINER_OF(link, struct turn, link);
        stream_end(turn->stream, CAUSE_STOPPING);
    }
}
