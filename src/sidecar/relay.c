#include "sidecar/relay.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define TO(state) (1u << (state))
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
static const struct {
    struct str name;
    unsigned may_become;
} states[RELAY_STATE_COUNT] = {
    [RELAY_READING]    = {STR_INIT("reading"),    TO(RELAY_WAITING) | TO(RELAY_ASKING) | ENDS},
    [RELAY_WAITING]    = {STR_INIT("waiting"),    TO(RELAY_ASKING) | ENDS},
    [RELAY_ASKING]     = {STR_INIT("asking"),     TO(RELAY_COLLECTING) | TO(RELAY_PASSING) |
                                                  TO(RELAY_EVENTS) | ENDS},
    [RELAY_COLLECTING] = {STR_INIT("collecting"), ENDS},
    [RELAY_PASSING]    = {STR_INIT("passing"),    ENDS},
    [RELAY_EVENTS]     = {STR_INIT("events"),     ENDS},
    [RELAY_ANSWERED]   = {STR_INIT("answered"),   TO(RELAY_OVER)},
    [RELAY_OVER]       = {STR_INIT("over"),       0},
};
/* clang-format on */

bool relay_may_become(enum relay_state state, enum relay_state next) {
    return states[state].may_become & TO(next);
}

struct str relay_state_name(enum relay_state state) {
    return states[state].name;
}

/* The only function that writes relay->state. */
void relay_move(struct relay *relay, enum relay_state next) {
    assert(relay_may_become(relay->state, next));
    relay->state = next;
}

/* --- the end ---------------------------------------------------------------------------------- */

static void relay_free(struct relay *relay) {
    list_remove(&relay->link);
    buf_done(&relay->body);
    buf_done(&relay->answer);
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

void relay_end(struct relay *relay, const struct replay_answer *answer) {
    struct sidecar *sidecar = relay->sidecar;
    struct replay *run = relay->run;
    bool drains = relay->forward && relay->drains;
    if (!drains) leave_agent(relay);
    timer_stop(&relay->slow);
    if (drains) timer_start(&relay->slow, DRAIN_MS);
    timer_stop(&relay->heartbeat);
    replay_waiter_leave(&relay->waiter);
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

static struct str header(const struct exchange *exchange, struct str name) {
    const struct field *field = exchange_field(exchange, name);
    return field ? str_trim(field->value) : (struct str){NULL, 0};
}

static bool read_key(struct relay *relay, struct err *e) {
    struct str ours = header(relay->exchange, STR("x-idempotency-key"));
    struct str plain = header(relay->exchange, STR("idempotency-key"));
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

/* What makes it the same request: where it goes and what it says. False: it was refused. */
static bool note_request(struct relay *relay) {
    struct buf request;
    struct str path = exchange_path(relay->exchange);
    if (!relay->key.len) return true;
    if (!relay_hold(relay, relay->body.len, false)) return false;
    buf_init(&request, relay->body.len + path.len + 1);
    buf_append(&request, path);
    buf_append_byte(&request, '\n');
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
    bool good = filter_json(sidecar->request_rules, buf_str(&relay->body), &passed, &result);
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

static bool write_head(struct relay *relay, int64_t length, struct err *e) {
    struct buf head;
    bool agent = relay->target.is_agent;
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
                                                    .trace = agent ? &relay->trace : NULL},
                            &head, e);
    if (good) relay->head = text_copy(buf_str(&head));
    buf_done(&head);
    return good;
}

/* False: it was refused. */
static bool prepare(struct relay *relay, int64_t length) {
    struct err e;
    if (write_head(relay, length, &e)) return true;
    if (e.code == ERR_TOO_LARGE)
        relay_refuse(relay, 431, STR("HEADERS_TOO_LARGE"), err_text(&e), false);
    else
        relay_refuse(relay, 502, STR("UPSTREAM_UNREACHABLE"), err_text(&e), false);
    return false;
}

/* The body of a collected request is complete. */
static void begin_whole(struct relay *relay) {
    if (note_request(relay) && pass_rules(relay) && prepare(relay, (int64_t)relay->body.len))
        claim(relay);
}

/* The body of another one begins, or there is none. */
static void begin_open(struct relay *relay) {
    int64_t length = exchange_content_length(relay->exchange);
    if (relay->body_ended && length < 0) length = PROXY_BODY_NONE;
    if (!relay->body_ended && length < 0) length = PROXY_BODY_CHUNKED;
    relay->chunks = length == PROXY_BODY_CHUNKED;
    if (prepare(relay, length)) relay_ask(relay);
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

static void on_body(struct exchange *exchange, struct lent bytes, void *ctx) {
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

static void on_body_end(struct exchange *exchange, void *ctx) {
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

static void on_drained(struct exchange *exchange, void *ctx) {
    (void)exchange;
    relay_drained(ctx);
}

/* A request with a key runs on. */
static void on_closed(struct exchange *exchange, enum exchange_close how, void *ctx) {
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

static const struct exchange_events exchange_events = {on_body, on_body_end, on_drained,
                                                       on_closed};

/* --- the start -------------------------------------------------------------------------------- */

static bool may_have_body(struct str method) {
    return str_equal(method, STR("POST")) || str_equal(method, STR("PUT")) ||
           str_equal(method, STR("PATCH"));
}

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
    if (!read_key(relay, &e)) {
        relay_refuse(relay, 400, STR("INVALID_INPUT"), err_text(&e), false);
        return false;
    }
    relay->collects =
        (has_rules(relay) || relay->key.len) && may_have_body(exchange_method(relay->exchange));
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

void relay_start(struct sidecar *sidecar, struct exchange *exchange,
                 const struct relay_target *target) {
    struct relay *relay = MEM_NEW(struct relay);
    relay->sidecar = sidecar;
    relay->exchange = exchange;
    relay->target = *target;
    relay->began_us = clock_mono_us();
    relay->is_head = str_equal(exchange_method(exchange), STR("HEAD"));
    trace_begin(&relay->trace, header(exchange, STR("x-trace-id")),
                header(exchange, STR("traceparent")));
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
