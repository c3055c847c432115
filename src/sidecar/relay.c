#include "sidecar/relay.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "sidecar/request_span.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define ENDS (TO(RELAY_ANSWERED) | TO(RELAY_OVER))

#define HEAD_MAX_BYTES (256 * KIB)

/* The body of a request brings at least this much in this time. */
#define SLOW_MS 10000
#define SLOW_BYTES (10 * KIB)

/* How long an agent may take to end its stream after [DONE]. */
#define DRAIN_MS 5000

/* Of a body that is passed on, this much may wait for the agent. */
#define UNSENT_BYTES (64 * KIB)

/* --- states ----------------------------------------------------------------------------------- */

/* clang-format off */
const struct state relay_states[RELAY_STATE_COUNT] = {
    [RELAY_READING]    = {"reading",    TO(RELAY_WAITING) | TO(RELAY_ASKING) | ENDS},
    [RELAY_WAITING]    = {"waiting",    TO(RELAY_ASKING) | ENDS},
    [RELAY_ASKING]     = {"asking",     TO(RELAY_COLLECTING) | TO(RELAY_PASSING) |
                                        TO(RELAY_EVENTS) | ENDS},
    [RELAY_COLLECTING] = {"collecting", ENDS},
    [RELAY_PASSING]    = {"passing",    ENDS},
    [RELAY_EVENTS]     = {"events",     ENDS},
    [RELAY_ANSWERED]   = {"answered",   TO(RELAY_OVER)},
    [RELAY_OVER]       = {"over",       0},
};
/* clang-format on */

/* The only function that writes relay->state. */
void relay_move(struct relay *relay, enum relay_state next) {
    assert(states_allow(relay_states, relay->state, next));
    relay->state = next;
}

/* --- the end ---------------------------------------------------------------------------------- */

static void relay_free(struct relay *relay) {
    list_remove(&relay->link);
    buf_done(&relay->body);
    buf_done(&relay->answer);
    text_done(&relay->path);
    text_done(&relay->key);
    text_done(&relay->request);
    text_wipe(&relay->head);
    proxy_response_done(&relay->response);
    spent_done(&relay->found);
    holding_end(&relay->holding);
    if (relay->has_events) events_done(&relay->events);
    free(relay);
}

static void leave_agent(struct relay *relay) {
    if (relay->forward) forward_cancel(relay->forward);
    relay->forward = NULL;
}

void relay_settle(struct relay *relay) {
    if (relay->exchange || relay->forward || relay->state != RELAY_ANSWERED) return;
    relay_move(relay, RELAY_OVER);
    relay_free(relay);
}

/* --- spans ------------------------------------------------------------------------------------ */

void relay_span_rules(const struct relay *relay, uint64_t began_us, enum relay_text text) {
    request_span_part(
        &relay->trace,
        &(struct part_span){.operation = SPAN_NAME("guardrails"),
                            .what = text == RELAY_REQUEST ? STR("request") : STR("answer"),
                            .kind = SPAN_INTERNAL,
                            .took_us = clock_mono_us() - began_us});
}

static void report_asked(const struct relay *relay) {
    static const struct str ask_name = SPAN_NAME("ask"), mcp_name = SPAN_NAME("mcp");
    bool agent = relay->target.is_agent;
    if (!relay->asked_us) return;
    request_span_part(&relay->trace,
                      &(struct part_span){.operation = agent ? ask_name : mcp_name,
                                          .what = agent ? STR("agent") : relay->target.name,
                                          .kind = SPAN_CLIENT,
                                          .self = relay->trace.call,
                                          .by_agent = !agent,
                                          .took_us = clock_mono_us() - relay->asked_us,
                                          .status = relay->response.status,
                                          .error = relay->error});
}

/* While its account is open. */
static void report_spans(const struct relay *relay) {
    const struct sidecar *sidecar = relay->sidecar;
    if (!relay->path.len) return;
    report_asked(relay);
    if (!relay->target.is_agent) return;
    struct spent_usage usage =
        accounts_read(sidecar->accounts, relay->account, &relay->found, clock_unix_ms());
    request_span_whole(&relay->trace,
                       &(struct whole_span){.method = relay->method,
                                            .path = text_str(relay->path),
                                            .agent = sidecar->options->agent_name,
                                            .model = usage.model,
                                            .status = relay->status,
                                            .input = usage.input,
                                            .output = usage.output,
                                            .took_us = clock_mono_us() - relay->began_us,
                                            .error = relay->error});
}

void relay_end(struct relay *relay, const struct replay_answer *answer) {
    struct sidecar *sidecar = relay->sidecar;
    struct replay *run = relay->run;
    bool drains = relay->forward && relay->drains;
    if (!drains) leave_agent(relay);
    timer_stop(&relay->slow);
    if (drains) timer_start(&relay->slow, DRAIN_MS);
    timer_stop(&relay->heartbeat);
    replay_waiter_leave(&relay->waiter);
    report_spans(relay);
    accounts_close(sidecar->accounts, relay->account);
    relay->account = NULL;
    relay->run = NULL;
    relay_move(relay, RELAY_ANSWERED);
    if (run) replays_end(sidecar->replays, run, answer, loop_now_ms(sidecar->loop));
    relay_settle(relay);
}

/* Send a refusal and end. keep_key: a retry gets the same. */
static void end_refused(struct relay *relay, const struct refusal *refusal, bool keep_key) {
    struct buf body;
    relay->status = refusal->status;
    if (refusal->status >= 500 && !relay->error.len) relay->error = refusal->code;
    if (relay->exchange) refusal_send(relay->exchange, refusal);
    buf_init(&body, 64 * KIB);
    refusal_write(refusal, &body);
    const struct replay_answer answer = {refusal->status, STR("application/json"),
                                         trace_id(&relay->trace), buf_str(&body)};
    relay_end(relay, keep_key ? &answer : NULL);
    buf_done(&body);
}

void relay_refuse(struct relay *relay, int status, struct str code, struct str message,
                  bool keep_key) {
    end_refused(relay,
                &(struct refusal){.status = status,
                                  .code = code,
                                  .message = message,
                                  .trace_id = trace_id(&relay->trace)},
                keep_key);
}

bool relay_hold(struct relay *relay, size_t bytes, bool keep_key) {
    if (holding_add(&relay->holding, bytes)) return true;
    relay->sidecar->counts.full++;
    end_refused(relay,
                &(struct refusal){.status = 503,
                                  .code = STR("UNAVAILABLE"),
                                  .message = STR("too much is in memory now: bodies_max"),
                                  .trace_id = trace_id(&relay->trace),
                                  .retry_after_s = 1},
                keep_key);
    return false;
}

/* A run whose answer was blocked may have had an effect. */
void relay_block(struct relay *relay, const struct filter_result *result,
                 enum relay_text text) {
    struct str rule = guardrail_name(result->blocked_by);
    const char *what = text == RELAY_REQUEST ? "the request" : "the answer";
    char message[256];
    struct buf details;
    relay->sidecar->counts.blocked++;
    log_often(LOG_WARNING, "%s was blocked by guardrail '" STR_FMT "', trace %s", what,
              STR_ARG(str_head(rule, 128)), relay->trace.id);
    snprintf(message, sizeof(message), "%s was blocked by guardrail '" STR_FMT "'%s", what,
             STR_ARG(str_head(rule, 128)),
             result->undecided ? ", whose check was given up as too expensive" : "");
    buf_init(&details, 8 * KIB);
    struct json_writer json = json_writer(&details);
    json_open_object(&json);
    json_member_str(&json, "rule", rule);
    json_close(&json);
    end_refused(relay,
                &(struct refusal){.status = 403,
                                  .code = STR("GUARDRAIL_BLOCKED"),
                                  .message = str_from(message),
                                  .details = buf_str(&details),
                                  .rule = rule,
                                  .trace_id = trace_id(&relay->trace)},
                text == RELAY_ANSWER);
    buf_done(&details);
}

/* --- idempotency ------------------------------------------------------------------------------ */

static void claim(struct relay *relay);

static void replay(struct relay *relay, const struct replay_answer *answer) {
    relay->sidecar->counts.replayed++;
    relay->status = answer->status;
    refusal_reply(relay->exchange, answer->status, answer->content_type, answer->body,
                  answer->trace_id);
    relay_end(relay, NULL);
}

/* The run under this key has ended, or has given the key back. */
static void on_replay(const struct replay_answer *answer, void *ctx) {
    struct relay *relay = ctx;
    if (answer)
        replay(relay, answer);
    else
        claim(relay);
}

static void claim(struct relay *relay) {
    struct sidecar *sidecar = relay->sidecar;
    struct replay_answer answer;
    enum replay_claim claim = REPLAY_RUN;
    if (relay->key.len)
        claim = replays_claim(sidecar->replays, text_str(relay->key), text_str(relay->request),
                              loop_now_ms(sidecar->loop), &relay->waiter, &relay->run, &answer);
    switch (claim) {
    case REPLAY_RUN: relay_ask(relay); return;
    case REPLAY_WAIT:
        if (relay->state == RELAY_READING) relay_move(relay, RELAY_WAITING);
        return;
    case REPLAY_ANSWERED: replay(relay, &answer); return;
    case REPLAY_CONFLICT:
        relay_refuse(relay, 409, STR("IDEMPOTENCY_CONFLICT"),
                     STR("another request was sent with this idempotency key"), false);
        return;
    case REPLAY_FULL: break;
    }
    relay_refuse(relay, 503, STR("UNAVAILABLE"), STR("too many requests have keys now"), false);
}

static struct str relay_header(const struct exchange *exchange, struct str name) {
    const struct field *field = exchange_field(exchange, name);
    return field ? str_trim(field->value) : (struct str){NULL, 0};
}

static bool relay_read_key(struct relay *relay, struct err *e) {
    struct str ours = relay_header(relay->exchange, STR("x-idempotency-key"));
    struct str plain = relay_header(relay->exchange, STR("idempotency-key"));
    if (!relay->sidecar->replays || relay->target.kind != RELAY_TURN) return true;
    if (ours.at && plain.at && !str_equal(ours, plain))
        return err_set(e, ERR_MALFORMED,
                       "X-Idempotency-Key and Idempotency-Key differ; send one of them");
    struct str key = ours.at ? ours : plain;
    if (!key.at) return true;
    if (!replays_check_key(key, e)) return false;
    relay->key = text_copy(key);
    return true;
}

static void note_header(const struct relay *relay, struct str name, struct buf *out) {
    struct str value = relay_header(relay->exchange, name);
    if (value.at) buf_append(out, value);
    buf_append_byte(out, value.at ? '\n' : '\0');
}

/* What makes it the same request: where it goes, whose it is and what it says. False: it was
 * refused. */
static bool note_request(struct relay *relay) {
    struct buf request;
    struct str path = exchange_path(relay->exchange), query = exchange_query(relay->exchange);
    if (!relay->key.len) return true;
    if (!relay_hold(relay, relay->body.len, false)) return false;
    buf_init(&request, relay->body.len + HEAD_MAX_BYTES);
    buf_append(&request, path);
    buf_append_byte(&request, query.at ? '?' : '\n');
    if (query.at) buf_append(&request, query);
    buf_append_byte(&request, '\n');
    note_header(relay, STR("x-session-id"), &request);
    note_header(relay, STR("content-type"), &request);
    buf_append(&request, buf_str(&relay->body));
    relay->request = text_copy(buf_str(&request));
    buf_done(&request);
    return true;
}

/* --- the request ------------------------------------------------------------------------------ */

static bool has_rules(const struct relay *relay) {
    return relay->target.is_agent && relay->sidecar->request_rules.count > 0;
}

/* Whether the agent reads the body as JSON. */
static bool must_be_json(const struct relay *relay) {
    size_t count;
    const struct field *fields = exchange_fields(relay->exchange, &count);
    if (relay->target.kind == RELAY_TURN || relay->target.kind == RELAY_STREAM) return true;
    for (size_t i = 0; i < count; i++) {
        if (str_equal(fields[i].name, STR("content-type")) &&
            proxy_is_json(str_trim(fields[i].value)))
            return true;
    }
    return false;
}

/* An agent's reader may accept what ours refuses: NaN, a byte order mark, UTF-16. The rules
 * would read such a body as one text, with its escapes. False: it was refused. */
static bool check_json(struct relay *relay) {
    struct json json;
    struct err e;
    if (!relay->body.len || !must_be_json(relay)) return true;
    if (json_read(buf_str(&relay->body), &json, &e)) return true;
    relay_refuse(relay, 400, STR("INVALID_INPUT"), err_text(&e), false);
    return false;
}

/* False: it was refused. */
static bool pass_rules(struct relay *relay) {
    struct sidecar *sidecar = relay->sidecar;
    struct filter_result result;
    struct buf passed;
    if (!has_rules(relay)) return true;
    if (!check_json(relay)) return false;
    buf_init(&passed, 2 * sidecar->options->body_max_bytes + MIB);
    uint64_t began_us = clock_mono_us();
    bool good = filter_json(sidecar->request_rules, buf_str(&relay->body), &passed, &result);
    relay_span_rules(relay, began_us, RELAY_REQUEST);
    bool changed = good && result.redacted > 0, fits = buf_ok(&passed);
    if (changed) {
        struct buf old = relay->body;
        relay->body = passed;
        passed = old;
    }
    size_t more = changed && relay->body.len > passed.len ? relay->body.len - passed.len : 0;
    buf_done(&passed);
    if (!good) {
        relay_block(relay, &result, RELAY_REQUEST);
        return false;
    }
    if (changed && !fits)
        relay_refuse(relay, 413, STR("PAYLOAD_TOO_LARGE"),
                     STR("the request is too large once its personal data is replaced"), false);
    return (!changed || fits) && relay_hold(relay, more, false);
}

static bool relay_write_head(struct relay *relay, int64_t length, struct err *e) {
    struct buf head;
    bool agent = relay->target.is_agent, traces = agent || relay->path.len > 0;
    bool plain =
        agent && (relay->target.kind != RELAY_PLAIN || relay->sidecar->answer_rules.count > 0);
    buf_init(&head, HEAD_MAX_BYTES);
    bool good =
        proxy_write_request(&(struct proxy_request){.exchange = relay->exchange,
                                                    .base_url = relay->target.url,
                                                    .path = relay->target.path,
                                                    .body = length,
                                                    .plain = plain,
                                                    .keeps_authorization = agent,
                                                    .trace = traces ? &relay->trace : NULL},
                            &head, e);
    if (good) relay->head = text_copy(buf_str(&head));
    buf_done(&head);
    return good;
}

/* False: it was refused. */
static bool relay_prepare(struct relay *relay, int64_t length) {
    struct err e;
    if (relay_write_head(relay, length, &e)) return true;
    if (e.code == ERR_TOO_LARGE)
        relay_refuse(relay, 431, STR("HEADERS_TOO_LARGE"), err_text(&e), false);
    else
        relay_refuse(relay, 502, STR("UPSTREAM_UNREACHABLE"), err_text(&e), false);
    return false;
}

/* Of other methods a length of 0 would say that there is a body. */
static bool says_length(struct str method) {
    return str_equal(method, STR("POST")) || str_equal(method, STR("PUT")) ||
           str_equal(method, STR("PATCH"));
}

/* The body of a collected request is complete. */
static void begin_whole(struct relay *relay) {
    if (!note_request(relay) || !pass_rules(relay)) return;
    bool none = !relay->body.len && !says_length(exchange_method(relay->exchange));
    if (relay_prepare(relay, none ? PROXY_BODY_NONE : (int64_t)relay->body.len)) claim(relay);
}

/* The body of another one begins, or there is none. */
static void begin_open(struct relay *relay) {
    int64_t length = exchange_content_length(relay->exchange);
    if (relay->body_ended && length < 0) length = PROXY_BODY_NONE;
    if (!relay->body_ended && length < 0) length = PROXY_BODY_CHUNKED;
    relay->chunks = length == PROXY_BODY_CHUNKED;
    if (relay_prepare(relay, length)) relay_ask(relay);
}

static void pass_body(struct relay *relay, struct str bytes) {
    char size[32];
    if (relay->chunks) {
        int len = snprintf(size, sizeof(size), "%zx\r\n", bytes.len);
        forward_write(relay->forward, str_of(size, (size_t)len));
    }
    forward_write(relay->forward, bytes);
    if (relay->chunks) forward_write(relay->forward, STR("\r\n"));
    if (forward_unsent(relay->forward) < UNSENT_BYTES)
        exchange_consumed(relay->exchange, bytes.len);
    else
        relay->owed += bytes.len;
}

static void collect(struct relay *relay, struct str bytes) {
    exchange_consumed(relay->exchange, bytes.len);
    if (!relay_hold(relay, bytes.len, false) || buf_append(&relay->body, bytes)) return;
    relay_refuse(relay, 413, STR("PAYLOAD_TOO_LARGE"), STR("the request is too large"), false);
}

static void relay_on_body(struct exchange *exchange, struct lent bytes, void *ctx) {
    struct relay *relay = ctx;
    struct str read = lent_read(bytes);
    relay->received += read.len;
    if (relay->collects && relay->state == RELAY_READING) {
        collect(relay, read);
        return;
    }
    if (relay->state == RELAY_READING) begin_open(relay);
    if (relay->forward)
        pass_body(relay, read);
    else if (relay->state != RELAY_ANSWERED)
        exchange_consumed(exchange, read.len);
}

static void relay_on_body_end(struct exchange *exchange, void *ctx) {
    struct relay *relay = ctx;
    (void)exchange;
    timer_stop(&relay->slow);
    relay->body_ended = true;
    if (relay->collects && relay->state == RELAY_READING) {
        begin_whole(relay);
        return;
    }
    if (relay->state == RELAY_READING) begin_open(relay);
    if (relay->forward && relay->chunks) forward_write(relay->forward, STR("0\r\n\r\n"));
    if (relay->forward) forward_written_whole(relay->forward);
}

/* An incomplete body has to bring something in each stretch of time, unless the agent is the
 * slower side. */
static void on_slow(void *ctx) {
    struct relay *relay = ctx;
    bool agent_is_slow = relay->owed > 0;
    if (relay->state == RELAY_ANSWERED) { /* draining */
        leave_agent(relay);
        relay_settle(relay);
        return;
    }
    if (agent_is_slow || relay->received - relay->slow_from >= SLOW_BYTES) {
        relay->slow_from = relay->received;
        timer_start(&relay->slow, SLOW_MS);
    } else if (relay->state == RELAY_READING || relay->state == RELAY_ASKING) {
        relay_refuse(relay, 408, STR("REQUEST_TIMEOUT"), STR("the request came too slowly"),
                     false);
    }
}

static void relay_on_drained(struct exchange *exchange, void *ctx) {
    (void)exchange;
    relay_drained(ctx);
}

/* A request with a key runs on. */
static void relay_on_closed(struct exchange *exchange, enum exchange_close how, void *ctx) {
    struct relay *relay = ctx;
    (void)exchange;
    (void)how;
    relay->exchange = NULL;
    bool runs_on = relay->run && !relay->sidecar->stopping;
    if (relay->state == RELAY_ANSWERED)
        relay_settle(relay);
    else if (!runs_on)
        relay_end(relay, NULL);
}

static const struct exchange_events exchange_events = {relay_on_body, relay_on_body_end,
                                                       relay_on_drained, relay_on_closed};

/* --- the start -------------------------------------------------------------------------------- */

/* In several fields a coding may be hidden from who reads the first one. */
static bool is_coded(const struct exchange *exchange) {
    size_t count;
    const struct field *fields = exchange_fields(exchange, &count);
    for (size_t i = 0; i < count; i++) {
        struct str value = str_trim(fields[i].value);
        if (str_equal(fields[i].name, STR("content-encoding")) && value.len &&
            !str_equal_nocase(value, STR("identity")))
            return true;
    }
    return false;
}

static bool check_request(struct relay *relay) {
    const struct sidecar_options *options = relay->sidecar->options;
    struct err e;
    int64_t length = exchange_content_length(relay->exchange);
    if (!relay_read_key(relay, &e)) {
        relay_refuse(relay, 400, STR("INVALID_INPUT"), err_text(&e), false);
        return false;
    }
    relay->collects = has_rules(relay) || relay->key.len;
    if (relay->collects && is_coded(relay->exchange)) {
        relay_refuse(relay, 415, STR("UNSUPPORTED_MEDIA_TYPE"),
                     STR("a compressed request cannot be read by the guardrails"), false);
        return false;
    }
    if (relay->collects && length > 0 && (uint64_t)length > options->body_max_bytes) {
        relay_refuse(relay, 413, STR("PAYLOAD_TOO_LARGE"), STR("the request is too large"),
                     false);
        return false;
    }
    return true;
}

/* As a constant: the exchange may be gone when the span is reported. */
static struct str method_of(const struct exchange *exchange) {
    static const struct str known[] = {STR_INIT("POST"),   STR_INIT("GET"),   STR_INIT("PUT"),
                                       STR_INIT("DELETE"), STR_INIT("PATCH"), STR_INIT("HEAD"),
                                       STR_INIT("OPTIONS")};
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (str_equal(exchange_method(exchange), known[i])) return known[i];
    }
    return STR("_OTHER");
}

void relay_start(struct sidecar *sidecar, struct exchange *exchange,
                 const struct relay_target *target) {
    struct relay *relay = MEM_NEW(struct relay);
    relay->sidecar = sidecar;
    relay->exchange = exchange;
    relay->target = *target;
    relay->began_us = clock_mono_us();
    relay->is_head = str_equal(exchange_method(exchange), STR("HEAD"));
    trace_begin_request(&relay->trace, exchange);
    if (request_span_wanted(&relay->trace)) {
        relay->path = text_copy(exchange_path(exchange));
        relay->method = method_of(exchange);
        request_span_fork(&relay->trace);
    }
    buf_init(&relay->body, sidecar->options->body_max_bytes);
    buf_init(&relay->answer, sidecar->options->answer_max_bytes);
    proxy_response_init(&relay->response);
    spent_init(&relay->found);
    relay->holding.held = &sidecar->held;
    timer_init(&relay->slow, sidecar->loop, on_slow, relay);
    timer_init(&relay->heartbeat, sidecar->loop, relay_beat, relay);
    replay_waiter_init(&relay->waiter);
    relay->waiter.on_answer = on_replay;
    relay->waiter.ctx = relay;
    list_append(&sidecar->relays, &relay->link);
    exchange_accept(exchange, &exchange_events, relay);
    if (check_request(relay)) timer_start(&relay->slow, SLOW_MS);
}

/* Those with an exchange are ended by the server. */
void relay_cut_all(struct sidecar *sidecar) {
    bool found = true;
    while (found) {
        found = false;
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left the list */
        LIST_EACH(&sidecar->relays, link) {
            struct relay *relay = CONTAINER_OF(link, struct relay, link);
            if (relay->exchange) continue;
            leave_agent(relay);
            timer_stop(&relay->slow);
            if (relay->state == RELAY_ANSWERED)
                relay_settle(relay);
            else
                relay_end(relay, NULL);
            found = true;
            break;
        }
    }
}
