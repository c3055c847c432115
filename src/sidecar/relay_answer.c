/* The agent's answer on its way back. */
#include "base/clock.h"
#include "base/log.h"
#include "sidecar/openapi.h"
#include "sidecar/relay.h"

#include <stdio.h>

/* So much may wait for a client before the agent is paused, and then before it goes on. */
#define QUEUED_MOST_BYTES (256 * KIB)
#define QUEUED_LOW_BYTES (64 * KIB)

#define USAGE_MAX_BYTES (64 * KIB)

/* An event may be as long as an answer, but never has to be shorter than this. */
#define EVENT_LEAST_BYTES (1 * MIB)
#define EVENT_FREE_BYTES (64 * KIB) /* what is not counted against bodies_max */

static uint64_t latency_ms(const struct relay *relay) {
    return (clock_mono_us() - relay->began_us) / 1000;
}

static bool is_turn(const struct relay *relay) {
    return relay->target.kind == RELAY_TURN || relay->target.kind == RELAY_STREAM;
}

/* --- our fields ------------------------------------------------------------------------------- */

static struct reserved reserved_of(const struct relay *relay) {
    const struct sidecar *sidecar = relay->sidecar;
    struct spent_usage usage =
        accounts_read(sidecar->accounts, relay->account, &relay->found, clock_unix_ms());
    return (struct reserved){.trace_id = trace_id(&relay->trace),
                             .model = usage.model,
                             .input = usage.input,
                             .output = usage.output,
                             .total = usage.total,
                             .cost_nano = usage.cost_nano,
                             .latency_ms = latency_ms(relay),
                             .tokens = sidecar->options->tokens};
}

/* Usage that the agent tells in its answer. */
static void find_usage(struct json object, void *ctx) {
    struct relay *relay = ctx;
    struct spent_usage usage;
    bool tells = json_find(object, STR("usage")).kind == JSON_OBJECT ||
                 json_find(object, STR("metadata")).kind == JSON_OBJECT;
    if (!tells) return;
    struct arena *arena = arena_new(USAGE_MAX_BYTES);
    if (spent_read(object, arena, &usage)) spent_find(&relay->found, &usage);
    arena_free(arena);
}

static void write_done(struct json own, struct buf *out, void *ctx) {
    struct reserved reserved = reserved_of(ctx);
    reserved_write(own, &reserved, out);
}

/* --- heads ------------------------------------------------------------------------------------ */

/* What every answer of the agent gets. */
static void add_ours(struct relay *relay) {
    struct proxy_response *response = &relay->response;
    if (!relay->target.is_agent) return;
    proxy_response_set(response, STR("x-trace-id"), trace_id(&relay->trace));
    if (!proxy_response_find(response, STR("x-runtime-contract-version")).len)
        proxy_response_set(response, STR("x-runtime-contract-version"), CONTRACT_VERSION);
}

static void add_latency(struct relay *relay) {
    char ms[32];
    snprintf(ms, sizeof(ms), "%llu", (unsigned long long)latency_ms(relay));
    if (relay->target.is_agent)
        proxy_response_set(&relay->response, STR("x-latency-ms"), str_from(ms));
}

static void send_head(struct relay *relay) {
    relay->status = relay->response.status;
    exchange_head(relay->exchange, relay->response.status, relay->response.fields,
                  relay->response.count);
}

/* --- failures --------------------------------------------------------------------------------- */

static void reply_openapi(struct relay *relay) {
    struct buf document;
    buf_init(&document, 64 * KIB);
    openapi_write(relay->sidecar->options, &document);
    relay->status = 200;
    refusal_reply(relay->exchange, 200, STR("application/json"), buf_str(&document),
                  trace_id(&relay->trace));
    buf_done(&document);
    relay_end(relay, NULL);
}

/* A request that was sent may have had an effect, so its key is kept with the failure. */
static void relay_answer_fail(struct relay *relay, const struct err *why, bool sent) {
    bool late = why->code == ERR_DEADLINE_EXCEEDED;
    struct sidecar *sidecar = relay->sidecar;
    char message[ERR_TEXT_BYTES + 64];
    *(late ? &sidecar->counts.late : &sidecar->counts.unreachable) += 1;
    if (relay->target.is_agent && !sent) agent_health_doubt(sidecar->health);
    log_often(LOG_WARNING, "the agent failed: %s, trace %s", why->text, relay->trace.id);
    snprintf(message, sizeof(message), "upstream agent %s: %s",
             late ? "did not answer" : "unreachable", why->text);
    relay_refuse(relay, late ? 504 : 502,
                 late ? STR("UPSTREAM_TIMEOUT") : STR("UPSTREAM_UNREACHABLE"),
                 str_from(message), sent);
}

static void fail_nonsense(struct relay *relay, const char *what) {
    relay->sidecar->counts.unreachable++;
    log_often(LOG_WARNING, "the agent's answer is not one of the contract: %s, trace %s", what,
              relay->trace.id);
    relay_refuse(relay, 502, STR("UPSTREAM_INVALID"), str_from(what), true);
}

/* --- an event stream -------------------------------------------------------------------------- */

void relay_beat(void *ctx) {
    struct relay *relay = ctx;
    uint64_t every_ms = relay->sidecar->options->heartbeat_ms;
    uint64_t now_ms = loop_now_ms(relay->sidecar->loop);
    if (relay->state != RELAY_EVENTS || !relay->exchange) return;
    if (now_ms - relay->sent_ms >= every_ms) {
        exchange_send(relay->exchange, STR(": \n\n"));
        relay->sent_ms = now_ms;
    }
    timer_start(&relay->heartbeat, relay->sent_ms + every_ms - now_ms);
}

static size_t event_max(const struct sidecar_options *options) {
    size_t max = options->answer_max_bytes;
    return max > EVENT_LEAST_BYTES ? max : EVENT_LEAST_BYTES;
}

static void begin_events(struct relay *relay) {
    struct proxy_response *response = &relay->response;
    struct sidecar *sidecar = relay->sidecar;
    bool turn = relay->target.kind == RELAY_STREAM;
    relay_move(relay, RELAY_EVENTS);
    events_init(&relay->events,
                &(struct events_options){.terminates = turn,
                                         .event_max_bytes = event_max(sidecar->options),
                                         .rules = sidecar->answer_rules,
                                         .sink = {find_usage, write_done, relay}});
    relay->has_events = true;
    proxy_response_set(response, STR("content-length"), STR_EMPTY);
    add_ours(relay);
    if (turn) {
        proxy_response_set(response, STR("content-type"), STR("text/event-stream"));
        proxy_response_set(response, STR("cache-control"), STR("no-cache"));
        proxy_response_set(response, STR("x-accel-buffering"), STR("no"));
        if (exchange_http(relay->exchange) == EXCHANGE_HTTP_1_1)
            proxy_response_set(response, STR("connection"), STR("keep-alive"));
    }
    send_head(relay);
    relay->sent_ms = loop_now_ms(sidecar->loop);
    if (sidecar->options->heartbeat_ms && turn)
        timer_start(&relay->heartbeat, sidecar->options->heartbeat_ms);
}

/* Count a long event against bodies_max, until the stream is over. False: there is no room. */
static bool hold_event(struct relay *relay) {
    size_t waiting = events_waiting(&relay->events);
    if (waiting <= EVENT_FREE_BYTES || waiting <= relay->event_held) return true;
    if (!holding_add(&relay->holding, waiting - relay->event_held)) return false;
    relay->event_held = waiting;
    return true;
}

static void end_full(struct relay *relay) {
    struct err full;
    err_set(&full, ERR_RESOURCE_EXHAUSTED, "too much is in memory now: bodies_max");
    relay->sidecar->counts.full++;
    relay->error = STR("UNAVAILABLE");
    events_end(&relay->events, &full, exchange_out(relay->exchange));
}

static void report_fault(struct relay *relay) {
    if (!relay->events.fault.code) return;
    relay->sidecar->counts.unreachable++;
    relay->error = STR("STREAM_BROKEN");
    log_often(LOG_WARNING, "the agent's answer is not one of the contract: %s, trace %s",
              relay->events.fault.text, relay->trace.id);
}

static void end_events(struct relay *relay) {
    report_fault(relay);
    if (events_blocked_by(&relay->events)) {
        struct str rule = guardrail_name(events_blocked_by(&relay->events));
        relay->sidecar->counts.blocked++;
        log_often(LOG_WARNING, "an answer was blocked by guardrail '" STR_FMT "', trace %s",
                  STR_ARG(str_head(rule, 128)), relay->trace.id);
    }
    exchange_touch(relay->exchange);
    exchange_end(relay->exchange, NULL, 0);
    relay_end(relay, NULL);
}

static void pace(struct relay *relay) {
    if (exchange_queued(relay->exchange) < QUEUED_MOST_BYTES || relay->paused) return;
    relay->paused = true;
    forward_pause(relay->forward);
    exchange_wake_at(relay->exchange, QUEUED_LOW_BYTES);
}

static void take_events(struct relay *relay, struct str bytes) {
    struct buf *out = exchange_out(relay->exchange);
    size_t before = out->len;
    bool more = events_feed(&relay->events, bytes, out);
    if (more && !hold_event(relay)) {
        end_full(relay);
        more = false;
    }
    bool wrote = out->len > before; /* text that is held back leaves the client in silence */
    if (wrote) relay->sent_ms = loop_now_ms(relay->sidecar->loop);
    if (!more) {
        relay->drains = events_ended_well(&relay->events);
        end_events(relay);
        return;
    }
    if (wrote) exchange_touch(relay->exchange);
    pace(relay);
}

/* --- a collected answer ----------------------------------------------------------------------- */

static void relay_answer_answer_with(struct relay *relay, struct str body) {
    char length[32];
    int status = relay->response.status;
    /* A refusal was not run; a failure of the agent may have had an effect. */
    bool ran = status < 400 || (status >= 500 && status != 503);
    const struct replay_answer answer = {
        status, proxy_response_find(&relay->response, STR("content-type")),
        trace_id(&relay->trace), body};
    if (relay->exchange) {
        snprintf(length, sizeof(length), "%zu", body.len);
        add_ours(relay);
        add_latency(relay);
        proxy_response_set(&relay->response, STR("etag"), STR_EMPTY);
        proxy_response_set(&relay->response, STR("content-length"), str_from(length));
        send_head(relay);
        exchange_send(relay->exchange, body);
        exchange_end(relay->exchange, NULL, 0);
    }
    relay_end(relay, ran ? &answer : NULL);
}

/* JSON that we cannot read is one text to the rules, with its escapes; a client may read it. */
static bool rules_can_read(const struct relay *relay) {
    struct json json;
    struct err e;
    struct str type = proxy_response_find(&relay->response, STR("content-type"));
    bool turn = relay->target.kind == RELAY_TURN && relay->response.status == 200;
    if (!relay->sidecar->answer_rules.count || !relay->answer.len) return true;
    return (!turn && !proxy_is_json(type)) || json_read(buf_str(&relay->answer), &json, &e);
}

/* Append the collected answer as the rules leave it. False: it was blocked, and is answered. */
static bool pass_rules(struct relay *relay, struct buf *out) {
    struct filter_result result;
    uint64_t began_us = clock_mono_us();
    if (!rules_can_read(relay)) {
        fail_nonsense(relay, "the agent's answer is no JSON that the guardrails can read");
        return false;
    }
    bool good =
        filter_json(relay->sidecar->answer_rules, buf_str(&relay->answer), out, &result);
    if (relay->sidecar->answer_rules.count) relay_span_rules(relay, began_us, RELAY_ANSWER);
    if (good) return true;
    relay_block(relay, &result, RELAY_ANSWER);
    return false;
}

static void end_turn(struct relay *relay, struct str text) {
    struct json object;
    struct err e;
    struct buf body;
    if (!json_read(text, &object, &e)) {
        char why[ERR_TEXT_BYTES + 64];
        snprintf(why, sizeof(why), "the agent's answer is no JSON object: %s", e.text);
        fail_nonsense(relay, why);
        return;
    }
    if (object.kind != JSON_OBJECT) {
        fail_nonsense(relay, "the agent's answer is no JSON object");
        return;
    }
    find_usage(object, relay);
    struct reserved reserved = reserved_of(relay);
    buf_init(&body, text.len + MIB);
    reserved_write(object, &reserved, &body);
    proxy_response_set(&relay->response, STR("content-type"), STR("application/json"));
    relay_answer_answer_with(relay, buf_str(&body));
    buf_done(&body);
}

/* The envelope of a failure, if it is one. */
static void end_other(struct relay *relay, struct str text) {
    struct json object;
    struct err e;
    struct buf body;
    bool failed = relay->response.status >= 400 && json_read(text, &object, &e) &&
                  object.kind == JSON_OBJECT;
    if (!failed) {
        relay_answer_answer_with(relay, text);
        return;
    }
    buf_init(&body, text.len + 64 * KIB);
    reserved_write_trace(object, trace_id(&relay->trace), &body);
    relay_answer_answer_with(relay, buf_str(&body));
    buf_done(&body);
}

static void end_collected(struct relay *relay) {
    struct buf passed;
    bool turn = relay->target.kind == RELAY_TURN && relay->response.status == 200;
    buf_init(&passed, 2 * relay->sidecar->options->answer_max_bytes);
    if (pass_rules(relay, &passed)) {
        if (!buf_ok(&passed))
            fail_nonsense(relay, "the agent's answer is too large once it is redacted");
        else if (turn)
            end_turn(relay, buf_str(&passed));
        else
            end_other(relay, buf_str(&passed));
    }
    buf_done(&passed);
}

/* --- what becomes of an answer ---------------------------------------------------------------- */

static void begin_passing(struct relay *relay) {
    relay_move(relay, RELAY_PASSING);
    add_ours(relay);
    add_latency(relay);
    send_head(relay);
}

static bool is_plain(const struct relay *relay) {
    for (size_t i = 0; i < relay->response.count; i++) {
        const struct field *field = &relay->response.fields[i];
        if (str_equal(field->name, STR("content-encoding")) && field->value.len &&
            !str_equal_nocase(field->value, STR("identity")))
            return false;
    }
    return true;
}

/* Whether the rules must read this answer, or we write something into it. */
static bool wants_collecting(const struct relay *relay, struct str type) {
    bool rules = relay->sidecar->answer_rules.count > 0, json = proxy_is_json(type);
    bool text = str_starts(type, STR("text/")) || !type.len;
    if (relay->target.kind == RELAY_TURN && relay->response.status == 200) return true;
    if (relay->response.status >= 400 && json && is_plain(relay)) return true;
    return rules && (json || text);
}

static void choose(struct relay *relay) {
    struct str type = proxy_response_find(&relay->response, STR("content-type"));
    bool good = relay->response.status == 200;
    bool stream = proxy_is_type(type, STR("text/event-stream"));
    bool empty =
        relay->is_head || relay->response.status == 204 || relay->response.status == 304;
    bool rules = relay->sidecar->answer_rules.count > 0;
    if (relay->run) {
        relay_move(relay, RELAY_COLLECTING); /* others may wait for the same answer */
    } else if (relay->target.kind == RELAY_OPENAPI && !good) {
        reply_openapi(relay);
    } else if (!relay->target.is_agent || empty) {
        begin_passing(relay);
    } else if (!is_plain(relay) && (rules || (is_turn(relay) && good))) {
        fail_nonsense(relay, "the agent's answer is compressed, which was not asked for");
    } else if (relay->target.kind == RELAY_STREAM && good && !stream) {
        fail_nonsense(relay, "the agent's answer is no event stream");
    } else if (stream && ((relay->target.kind == RELAY_STREAM && good) || rules)) {
        begin_events(relay);
    } else if (wants_collecting(relay, type)) {
        relay_move(relay, RELAY_COLLECTING);
    } else {
        begin_passing(relay);
    }
}

/* --- the agent's side ------------------------------------------------------------------------- */

static void on_line(struct str line, void *ctx) {
    struct relay *relay = ctx;
    if (relay->state != RELAY_ASKING) return; /* trailers */
    if (!proxy_response_line(&relay->response, line)) return;
    if (relay->response.overflows) {
        fail_nonsense(relay, "the agent's answer has too many headers");
        return;
    }
    choose(relay);
}

static void relay_answer_on_body(struct str bytes, void *ctx) {
    struct relay *relay = ctx;
    switch (relay->state) {
    case RELAY_EVENTS: take_events(relay, bytes); return;
    case RELAY_COLLECTING:
        if (relay_hold(relay, bytes.len, true) && !buf_append(&relay->answer, bytes))
            fail_nonsense(relay, "the agent's answer is too large");
        return;
    case RELAY_PASSING:
        exchange_send(relay->exchange, bytes);
        pace(relay);
        return;
    default: return;
    }
}

/* More of the request may follow. */
static void on_sent(void *ctx) {
    struct relay *relay = ctx;
    size_t owed = relay->owed;
    relay->owed = 0;
    if (owed && relay->exchange) exchange_consumed(relay->exchange, owed);
}

static void end_asking(struct relay *relay, const struct err *why, enum http_stage stage) {
    struct err none;
    err_set(&none, ERR_UNAVAILABLE, "it ended without an answer");
    if (relay->target.kind == RELAY_OPENAPI && relay->exchange)
        reply_openapi(relay);
    else
        relay_answer_fail(relay, why ? why : &none, stage >= HTTP_WAITING);
}

/* The client must see that a passed answer is incomplete. */
static void end_passing(struct relay *relay, const struct err *why) {
    if (why) relay->error = STR("STREAM_BROKEN");
    if (why)
        exchange_abort(relay->exchange, ABORT_INTERNAL);
    else
        exchange_end(relay->exchange, NULL, 0);
    relay_end(relay, NULL);
}

static void relay_answer_on_end(const struct err *why, enum http_stage stage, void *ctx) {
    struct relay *relay = ctx;
    relay->forward = NULL;
    switch (relay->state) {
    case RELAY_ASKING: end_asking(relay, why, stage); return;
    case RELAY_COLLECTING:
        if (why)
            relay_answer_fail(relay, why, true);
        else
            end_collected(relay);
        return;
    case RELAY_PASSING: end_passing(relay, why); return;
    case RELAY_EVENTS:
        if (why) {
            relay->error = STR("STREAM_BROKEN");
            log_often(LOG_WARNING, "the agent's stream broke: %s, trace %s", why->text,
                      relay->trace.id);
        }
        events_end(&relay->events, why, exchange_out(relay->exchange));
        end_events(relay);
        return;
    case RELAY_ANSWERED: /* it was drained */
        timer_stop(&relay->slow);
        relay_settle(relay);
        return;
    default: return;
    }
}

static const struct forward_sink sink = {.on_line = on_line,
                                         .on_body = relay_answer_on_body,
                                         .on_sent = on_sent,
                                         .on_end = relay_answer_on_end};

void relay_drained(struct relay *relay) {
    if (!relay->paused || !relay->forward) return;
    relay->paused = false;
    forward_resume(relay->forward);
}

void relay_ask(struct relay *relay) {
    struct sidecar *sidecar = relay->sidecar;
    const struct sidecar_options *options = sidecar->options;
    struct err e;
    relay_move(relay, RELAY_ASKING);
    relay->asked_us = clock_mono_us();
    relay->account = accounts_open(sidecar->accounts, trace_id(&relay->trace));
    const struct forward_request request = {
        .url = relay->target.url,
        .head = text_str(relay->head),
        .body = buf_str(&relay->body),
        .open = !relay->collects,
        .is_head = relay->is_head,
        .habit = relay->target.is_agent ? &sidecar->agent_habit : NULL,
        .connect_ms = options->connect_ms,
        .first_byte_ms = options->first_byte_ms,
        .stall_ms = options->stall_ms,
        .total_ms = options->total_ms};
    if (!forward_start(sidecar->pool, sidecar->loop, &request, &sink, relay, &relay->forward,
                       &e)) {
        relay_answer_fail(relay, &e, false);
        return;
    }
    buf_release(&relay->body);
    text_wipe(&relay->head);
}
