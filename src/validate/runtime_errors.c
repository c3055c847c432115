/* Checks of requests that are wrong, and of /resume. */
#include "validate/runtime.h"

/* --- wrong requests ---------------------------------------------------------------------------- */

/* `wanted` is the contract's status; `other` is what common servers send instead. */
static void judge_refusal(struct judge *judge, enum probe probe, unsigned wanted,
                          unsigned other) {
    const struct reply *reply = runtime_probe(judge, probe);
    if (!runtime_lets_in(judge) || !judge_answered(judge, reply) || reply->status == wanted)
        return;
    if (reply->status == other)
        judge_warn(judge, &reply->evidence, "expected status %u, got %u, which is tolerated",
                   wanted, other);
    else
        judge_status(judge, reply, wanted);
}

void check_error_json(struct judge *judge) {
    judge_refusal(judge, PROBE_BAD_JSON, 400, 422);
}

void check_error_missing(struct judge *judge) {
    judge_refusal(judge, PROBE_NO_INPUT, 400, 422);
}

void check_error_types(struct judge *judge) {
    judge_refusal(judge, PROBE_WRONG_TYPE, 422, 400);
}

void check_error_media(struct judge *judge) {
    judge_refusal(judge, PROBE_TEXT_PLAIN, 400, 422);
}

/* That /stream is missing is said by STRM-01, and by STRM-10 that its refusal is no JSON. */
static bool envelope_is_judged(enum probe probe, const struct reply *reply) {
    return !probe_is_stream(probe) ||
           (reply->json.kind && reply->status != 404 && reply->status != 501);
}

void check_error_envelope(struct judge *judge) {
    static const enum probe wrong[] = {PROBE_BAD_JSON, PROBE_NO_INPUT, PROBE_WRONG_TYPE,
                                       PROBE_TEXT_PLAIN, PROBE_STREAM_BAD_JSON};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        const struct reply *reply = runtime_probe(judge, wrong[i]);
        if (!runtime_lets_in(judge)) return;
        if (reply->status >= 400 && envelope_is_judged(wrong[i], reply))
            judge_envelope(judge, reply);
    }
}

void check_error_500(struct judge *judge) {
    if (!judge->options->error_input.len) {
        judge_skip(judge, "no input is known that makes the agent fail: give --error-input");
        return;
    }
    const struct reply *reply = runtime_probe(judge, PROBE_INVOKE_ERROR);
    if (runtime_lets_in(judge) && judge_status(judge, reply, 500)) judge_envelope(judge, reply);
}

void check_error_routes(struct judge *judge) {
    judge_status(judge, runtime_probe(judge, PROBE_NO_PATH), 404);
    judge_status(judge, runtime_probe(judge, PROBE_NO_METHOD), 405);
    struct runtime *runtime = runtime_of(judge);
    struct reply reply;
    runtime_ask_health(runtime, &reply);
    if (!reply.status)
        judge_break(judge, &reply.evidence,
                    "expected the server to be alive after wrong requests: %s",
                    reply.failed.text);
    reply_done(&reply);
}

/* Looks at every reply there was, so it comes after the other checks. */
void check_error_statuses(struct judge *judge) {
    const struct reply *reply;
    enum probe probe;
    size_t at = 0;
    (void)runtime_probe(judge, PROBE_INVOKE);
    (void)runtime_probe(judge, PROBE_STREAM);
    while ((reply = runtime_next_reply(runtime_of(judge), &at, &probe))) {
        if (reply->status == 429 || reply->status == 202)
            judge_break(judge, &reply->evidence,
                        "expected no status %u from an agent: it is reserved", reply->status);
    }
}

/* --- /resume ----------------------------------------------------------------------------------- */

static bool one_of_three(unsigned status) {
    return status == 200 || status == 404 || status == 501;
}

void check_resume_empty(struct judge *judge) {
    const struct reply *reply = runtime_probe(judge, PROBE_RESUME_EMPTY);
    if (runtime_lets_in(judge) && judge_answered(judge, reply) && !one_of_three(reply->status))
        judge_break(judge, &reply->evidence,
                    "expected status 200, 404 or 501 for an empty thread_id, got %u",
                    reply->status);
}

void check_resume_unknown(struct judge *judge) {
    const struct reply *reply = runtime_probe(judge, PROBE_RESUME_UNKNOWN);
    if (!runtime_lets_in(judge) || !judge_answered(judge, reply)) return;
    if (reply->status == 200)
        judge_warn(judge, &reply->evidence,
                   "expected 404 for a thread that nobody has begun, got 200");
    else if (!one_of_three(reply->status))
        judge_break(judge, &reply->evidence,
                    "expected status 404 or 501 for an unknown thread_id, got %u",
                    reply->status);
}

static const enum probe resumes[] = {PROBE_RESUME_EMPTY, PROBE_RESUME_UNKNOWN};

void check_resume_shape(struct judge *judge) {
    bool seen = false;
    for (size_t i = 0; i < ARRAY_LEN(resumes); i++) {
        const struct reply *reply = runtime_probe(judge, resumes[i]);
        if (reply->status != 200) continue;
        seen = true;
        judge_shape(judge, reply,
                    "{\"required\":[\"output\"],\"properties\":{\"output\":{\"type\":"
                    "[\"string\",\"object\",\"array\"]},\"session_id\":{\"type\":\"string\"},"
                    "\"metadata\":{\"type\":[\"object\",\"null\"]}}}");
    }
    if (!seen) judge_skip(judge, "/resume gave no 200");
}

void check_resume_envelope(struct judge *judge) {
    bool seen = false;
    for (size_t i = 0; i < ARRAY_LEN(resumes); i++) {
        const struct reply *reply = runtime_probe(judge, resumes[i]);
        if (reply->status != 404 && reply->status != 501) continue;
        seen = true;
        judge_envelope(judge, reply);
    }
    if (!seen) judge_skip(judge, "/resume gave neither 404 nor 501");
}

/* A name for the paused run: what its response says, else the one that was sent. */
static bool put_thread(const struct runtime *runtime, const struct reply *paused,
                       struct buf *out) {
    struct json thread = json_find(paused->json, STR("thread_id"));
    if (thread.kind != JSON_STRING) thread = json_find(paused->json, STR("session_id"));
    if (thread.kind == JSON_STRING) return buf_append(out, thread.raw);
    return json_put_str(out, str_from(runtime->other_session));
}

static void runtime_errors_resume(struct judge *judge, const struct reply *paused) {
    struct runtime *runtime = runtime_of(judge);
    struct buf fields, body;
    struct reply reply;
    buf_init(&fields, 64 * KIB);
    buf_init(&body, 64 * KIB);
    if (runtime->options->token.len) runtime_put_bearer(runtime->options->token, &fields);
    buf_append(&fields, STR("Content-Type: application/json\r\n"));
    buf_append(&body, STR("{\"thread_id\":"));
    put_thread(runtime, paused, &body);
    buf_append(&body, STR(",\"human_input\":\"yes\"}"));
    runtime_ask(runtime,
                &(struct question){.url = buf_str(&runtime->target->url),
                                   .method = STR("POST"),
                                   .path = STR("/resume"),
                                   .fields = buf_str(&fields),
                                   .body = buf_str(&body),
                                   .timeout_ms = runtime->options->timeout_ms},
                &reply);
    judge_status(judge, &reply, 200);
    reply_done(&reply);
    buf_done(&fields);
    buf_done(&body);
}

void check_resume_hitl(struct judge *judge) {
    if (!judge->options->hitl_input.len) {
        judge_skip(judge,
                   "no input is known that makes the agent ask a human: give --hitl-input");
        return;
    }
    const struct reply *paused = runtime_probe(judge, PROBE_INVOKE_HITL);
    if (runtime_invokes(judge) && judge_status(judge, paused, 200) &&
        judge_shape(judge, paused,
                    "{\"required\":[\"metadata\"],\"properties\":{\"metadata\":{\"type\":"
                    "\"object\",\"required\":[\"interrupted\"],\"properties\":{"
                    "\"interrupted\":{\"const\":true}}}}}"))
        runtime_errors_resume(judge, paused);
}
