/* Checks of POST /stream. */
#include "validate/runtime.h"
#include "validate/sse_body.h"

#include <stdio.h>

#define DONE STR("[DONE]")

/* A stream shorter than this says nothing about buffering. */
#define FLOW_MIN_MS 1000

/* --- the response ------------------------------------------------------------------------------- */

static bool is_event_stream(const struct reply *reply) {
    return reply->status == 200 && reply_is_type(reply, STR("text/event-stream"));
}

void check_stream_type(struct judge *judge) {
    if (!runtime_lets_in(judge)) return;
    const struct reply *reply = runtime_probe(judge, PROBE_STREAM);
    if (!reply->status) {
        judge_answered(judge, reply);
    } else if (reply->status != 200) {
        judge_break(judge, &reply->evidence, "expected status 200, got %u", reply->status);
    } else if (!is_event_stream(reply)) {
        struct str type = reply_field(reply, STR("content-type"));
        judge_break(judge, &reply->evidence,
                    "expected Content-Type text/event-stream, got '" STR_FMT "'",
                    STR_ARG(type.at ? str_head(type, 200) : STR("none")));
    }
}

/* Whether /stream is served as it should; else the check is skipped, because STRM-01 says so. */
static bool runtime_streams(struct judge *judge) {
    return is_event_stream(runtime_probe(judge, PROBE_STREAM)) ||
           judge_skip(judge, "/stream gives no event stream (STRM-01)");
}

void check_stream_cache(struct judge *judge) {
    if (runtime_streams(judge))
        judge_field(judge, runtime_probe(judge, PROBE_STREAM), STR("Cache-Control"),
                    STR("no-cache"));
}

void check_stream_buffering(struct judge *judge) {
    if (!runtime_streams(judge)) return;
    const struct reply *reply = runtime_probe(judge, PROBE_STREAM);
    struct str connection = reply_field(reply, STR("connection"));
    judge_field(judge, reply, STR("X-Accel-Buffering"), STR("no"));
    if (!connection.at || !str_equal_nocase(connection, STR("keep-alive")))
        judge_warn(judge, &reply->evidence,
                   "the contract's Connection: keep-alive is absent; no reader needs it");
}

/* --- its events ---------------------------------------------------------------------------------- */

/* The events of the stream; the caller ends them. False: there are none, and the check is
 * settled. */
static bool read_events(struct judge *judge, enum probe probe, struct sse_body *ret) {
    const struct reply *reply = runtime_probe(judge, probe);
    struct err e;
    if (sse_body_read(buf_str(&reply->body), ret, &e)) return true;
    return judge_break(judge, &reply->evidence, "expected an event stream: %s", e.text);
}

static bool is_unnamed(const struct sse_body_event *event) {
    return str_equal(event->type, STR("message"));
}

static bool is_done(const struct sse_body_event *event) {
    return is_unnamed(event) && str_equal(event->data, DONE);
}

void check_stream_grammar(struct judge *judge) {
    struct sse_body body;
    if (!runtime_streams(judge) || !read_events(judge, PROBE_STREAM, &body)) return;
    const struct reply *reply = runtime_probe(judge, PROBE_STREAM);
    if (body.valid < reply->body.len)
        judge_break(judge, &reply->evidence,
                    "expected UTF-8, got the byte 0x%02X at %zu of the body",
                    (unsigned char)reply->body.at[body.valid], body.valid);
    if (body.odd_line.at)
        judge_break(judge, &reply->evidence,
                    "expected only event, data, id, retry and comments, got the line '" STR_FMT
                    "'",
                    STR_ARG(str_head(body.odd_line, 200)));
    sse_body_done(&body);
}

static void judge_end(struct judge *judge, const struct reply *reply,
                      const struct sse_body *body) {
    size_t done = 0;
    for (size_t i = 0; i < body->count; i++) done += is_done(&body->events[i]);
    const struct evidence *evidence = &reply->evidence;
    if (reply->failed.code == ERR_TOO_LARGE)
        judge_break(judge, evidence, "expected a stream that ends: %s", reply->failed.text);
    else if (done == 0)
        judge_break(judge, evidence, "expected data: [DONE] as the last event, got none");
    else if (done > 1)
        judge_break(judge, evidence, "expected one data: [DONE], got %zu", done);
    else if (!is_done(&body->events[body->count - 1]))
        judge_break(judge, evidence, "expected nothing after data: [DONE], got another event");
    else if (body->cut)
        judge_break(judge, evidence,
                    "expected a blank line after data: [DONE] and nothing else");
    else if (reply->failed.code)
        judge_break(judge, evidence, "expected the end of the body after data: [DONE]: %s",
                    reply->failed.text);
}

void check_stream_done(struct judge *judge) {
    struct sse_body body;
    if (!runtime_streams(judge) || !read_events(judge, PROBE_STREAM, &body)) return;
    judge_end(judge, runtime_probe(judge, PROBE_STREAM), &body);
    sse_body_done(&body);
}

/* An event without a name: {"delta": "..."}, or what old servers send. */
static void judge_data(struct judge *judge, const struct reply *reply,
                       const struct sse_body_event *event) {
    struct json delta = json_find(event->json, STR("delta"));
    struct json text = json_find(event->json, STR("text"));
    bool holds = delta.kind == JSON_STRING || (!delta.kind && text.kind == JSON_STRING);
    struct str data = str_head(event->data, 200);
    if (event->json.kind == JSON_NONE) {
        judge_break(judge, &reply->evidence,
                    "expected JSON, or [DONE], as data, got '" STR_FMT "'", STR_ARG(data));
    } else if (!is_unnamed(event)) {
        return;
    } else if (!holds && json_find(event->json, STR("error")).kind != JSON_STRING) {
        judge_break(judge, &reply->evidence,
                    "expected {\"delta\": text} from an event without a name, got " STR_FMT,
                    STR_ARG(data));
    } else if (json_count(event->json) > 1 || !holds) {
        judge_warn(judge, &reply->evidence, "an event without a name has other keys: " STR_FMT,
                   STR_ARG(data));
    }
}

void check_stream_data(struct judge *judge) {
    struct sse_body body;
    if (!runtime_streams(judge) || !read_events(judge, PROBE_STREAM, &body)) return;
    for (size_t i = 0; i < body.count; i++) {
        if (!is_done(&body.events[i]))
            judge_data(judge, runtime_probe(judge, PROBE_STREAM), &body.events[i]);
    }
    sse_body_done(&body);
}

void check_stream_delta(struct judge *judge) {
    struct sse_body body;
    if (!runtime_streams(judge) || !read_events(judge, PROBE_STREAM, &body)) return;
    for (size_t i = 0; i < body.count; i++) {
        const struct sse_body_event *event = &body.events[i];
        if (is_unnamed(event) && json_find(event->json, STR("text")).kind == JSON_STRING &&
            !json_find(event->json, STR("delta")).kind)
            judge_break(judge, &runtime_probe(judge, PROBE_STREAM)->evidence,
                        "expected the key delta, got its old name, text");
    }
    sse_body_done(&body);
}

/* --- events with a name --------------------------------------------------------------------------- */

static const struct {
    struct str name;
    const char *schema;
} named[] = {
    {STR_INIT("step"), "{\"type\":\"object\",\"required\":[\"description\"],\"properties\":{"
                       "\"description\":{\"type\":\"string\"}}}"},
    {STR_INIT("tool_call"), "{\"type\":\"object\",\"required\":[\"name\"],\"properties\":{"
                            "\"name\":{\"type\":\"string\"},\"args\":{\"type\":\"object\"}}}"},
    {STR_INIT("error"), "{\"type\":\"object\",\"required\":[\"error\"],\"properties\":{"
                        "\"error\":{\"type\":\"string\"}}}"},
    {STR_INIT("result"), "{\"type\":\"object\",\"required\":[\"output\"]}"},
    {STR_INIT("done"), "{\"type\":\"object\"}"},
};

static void judge_named(struct judge *judge, const struct reply *reply,
                        const struct sse_body_event *event) {
    char what[64];
    for (size_t i = 0; i < ARRAY_LEN(named); i++) {
        if (!str_equal(event->type, named[i].name)) continue;
        snprintf(what, sizeof(what), "the event %.20s", named[i].name.at);
        judge_value_shape(judge, reply, event->json, what, named[i].schema);
        return;
    }
    judge_warn(judge, &reply->evidence, "the contract knows no event '" STR_FMT "'",
               STR_ARG(str_head(event->type, 100)));
}

/* Data that is no JSON at all breaks STRM-04 already. */
void check_stream_named(struct judge *judge) {
    struct sse_body body;
    bool seen = false;
    if (!runtime_streams(judge) || !read_events(judge, PROBE_STREAM, &body)) return;
    for (size_t i = 0; i < body.count; i++) {
        if (is_unnamed(&body.events[i]) || !body.events[i].json.kind) continue;
        seen = true;
        judge_named(judge, runtime_probe(judge, PROBE_STREAM), &body.events[i]);
    }
    if (!seen) judge_skip(judge, "the stream had no events with a name");
    sse_body_done(&body);
}

/* --- failures -------------------------------------------------------------------------------------- */

void check_stream_failed(struct judge *judge) {
    struct sse_body body;
    if (!judge->options->error_input.len) {
        judge_skip(judge, "no input is known that makes the agent fail: give --error-input");
        return;
    }
    if (!runtime_streams(judge)) return;
    const struct reply *reply = runtime_probe(judge, PROBE_STREAM_ERROR);
    if (reply->status && !is_event_stream(reply)) {
        if (reply->status >= 400)
            judge_skip(judge, "the run failed before its stream began, with status %u",
                       reply->status);
        else
            judge_break(judge, &reply->evidence,
                        "expected an event stream, or a status of 400 or more, got status %u",
                        reply->status);
        return;
    }
    if (!judge_answered(judge, reply) || !read_events(judge, PROBE_STREAM_ERROR, &body)) return;
    judge_end(judge, reply, &body);
    for (size_t i = 0; i < body.count; i++) {
        if (str_equal(body.events[i].type, STR("error")))
            judge_named(judge, reply, &body.events[i]);
    }
    sse_body_done(&body);
}

static void judge_json_refusal(struct judge *judge, const struct reply *reply) {
    struct str type = reply_field(reply, STR("content-type"));
    bool json = reply_is_type(reply, STR("application/json"));
    if (!judge_answered(judge, reply) || (reply->status >= 400 && json && reply->json.kind))
        return;
    if (reply->status >= 400)
        judge_break(judge, &reply->evidence,
                    "expected JSON with status %u, got Content-Type '" STR_FMT "'",
                    reply->status, STR_ARG(type.at ? str_head(type, 200) : STR("none")));
}

/* Which status each gets is judged by AUTH-01, AUTH-03 and, here, only for malformed JSON. */
void check_stream_refusals(struct judge *judge) {
    if (!runtime_streams(judge)) return;
    const struct reply *bad = runtime_probe(judge, PROBE_STREAM_BAD_JSON);
    if (judge_answered(judge, bad) && bad->status < 400)
        judge_break(judge, &bad->evidence,
                    "expected a 4xx in JSON for malformed JSON, got status %u", bad->status);
    judge_json_refusal(judge, bad);
    if (judge->options->token.len && !judge->options->no_auth_probe) {
        judge_json_refusal(judge, runtime_probe(judge, PROBE_STREAM_NO_TOKEN));
        judge_json_refusal(judge, runtime_probe(judge, PROBE_STREAM_WRONG_TOKEN));
    }
    const struct target_start *start = &runtime_of(judge)->target->start;
    if (start->stream.seen) judge_json_refusal(judge, &start->stream.reply);
}

/* --- time ------------------------------------------------------------------------------------------- */

/* Buffered: all that there is comes in the last tenth. */
void check_stream_flow(struct judge *judge) {
    if (!runtime_streams(judge)) return;
    const struct reply *reply = runtime_probe(judge, PROBE_STREAM);
    uint64_t total_ms = reply->end_ms - reply->began_ms;
    uint64_t first_ms =
        reply->first_byte_ms ? reply->first_byte_ms - reply->began_ms : total_ms;
    if (total_ms < FLOW_MIN_MS)
        judge_skip(judge, "the stream took %llu ms, too short to tell",
                   (unsigned long long)total_ms);
    else if (first_ms > total_ms - total_ms / 10)
        judge_break(judge, &reply->evidence,
                    "expected events to come as they happen, got the first byte of the body "
                    "after %llu of %llu ms",
                    (unsigned long long)first_ms, (unsigned long long)total_ms);
}

void check_stream_left(struct judge *judge) {
    if (!runtime_streams(judge)) return;
    const struct reply *left = runtime_probe(judge, PROBE_STREAM_LEFT);
    struct runtime *runtime = runtime_of(judge);
    struct reply reply;
    runtime_ask_health(runtime, &reply);
    if (!judge_answered(judge, left)) {
        reply_done(&reply);
        return;
    }
    if (!reply.status)
        judge_break(judge, &reply.evidence,
                    "expected the server to serve on after a client hung up on a stream: %s",
                    reply.failed.text);
    reply_done(&reply);
}

/* --- deltas and the result ---------------------------------------------------------------------------- */

static struct json delta_of(const struct sse_body_event *event) {
    struct json delta = json_find(event->json, STR("delta"));
    return delta.kind ? delta : json_find(event->json, STR("text"));
}

/* checks.md K30: the deltas end with the output, and need not equal it. */
static void judge_agreement(struct judge *judge, const struct reply *reply,
                            const struct sse_body *body) {
    struct buf text, output;
    struct json result = {.kind = JSON_NONE};
    buf_init(&text, REPLY_BODY_MAX_BYTES);
    buf_init(&output, REPLY_BODY_MAX_BYTES);
    for (size_t i = 0; i < body->count; i++) {
        const struct sse_body_event *event = &body->events[i];
        if (is_unnamed(event)) json_text(delta_of(event), &text);
        if (str_equal(event->type, STR("result")))
            result = json_find(event->json, STR("output"));
    }
    if (result.kind != JSON_STRING || text.len == 0)
        judge_skip(judge, "the stream has no text to compare, or no result");
    else if (json_text(result, &output) && !str_ends(buf_str(&text), buf_str(&output)))
        judge_break(judge, &reply->evidence,
                    "expected the text of the deltas to end with the output of the result");
    buf_done(&text);
    buf_done(&output);
}

void check_stream_agrees(struct judge *judge) {
    struct sse_body body;
    if (!runtime_streams(judge) || !read_events(judge, PROBE_STREAM, &body)) return;
    judge_agreement(judge, runtime_probe(judge, PROBE_STREAM), &body);
    sse_body_done(&body);
}
