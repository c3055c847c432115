/* Checks of POST /invoke when all is well. */
#include "validate/runtime.h"

static const char *const reserved[] = {"trace_id", "tokens",     "cost_usd",
                                       "model",    "latency_ms", NULL};

static bool runtime_invoke_is_good(const struct reply *reply) {
    return reply->status == 200 && !reply->failed.code && reply->json.kind == JSON_OBJECT;
}

bool runtime_invokes(struct judge *judge) {
    return runtime_invoke_is_good(runtime_probe(judge, PROBE_INVOKE)) ||
           judge_skip(judge, "/invoke does not answer its input with 200 and JSON (INVK-01)");
}

void check_invoke_string(struct judge *judge) {
    const struct reply *reply = runtime_probe(judge, PROBE_INVOKE_STRING);
    if (runtime_lets_in(judge) && judge_status(judge, reply, 200))
        judge_is_object(judge, reply);
}

#define OUTPUT_SCHEMA                                                                          \
    "{\"required\":[\"output\"],\"properties\":{\"output\":{\"type\":"                         \
    "[\"string\",\"object\",\"array\"]}}}"

void check_invoke_output(struct judge *judge) {
    if (runtime_invokes(judge))
        judge_shape(judge, runtime_probe(judge, PROBE_INVOKE), OUTPUT_SCHEMA);
}

/* An agent may take text only: 422 with a reason. */
static void check_kind(struct judge *judge, enum probe probe, const char *kind) {
    const struct reply *reply = runtime_probe(judge, probe);
    if (!judge_answered(judge, reply)) return;
    if (reply->status == 422 && reply->json.kind == JSON_OBJECT) {
        judge_warn(judge, &reply->evidence, "%s as input is refused: the agent takes text only",
                   kind);
    } else if (reply->status != 200) {
        judge_break(judge, &reply->evidence,
                    "expected 200 for %s as input, or 422 with a reason, got status %u", kind,
                    reply->status);
    }
}

/* An array is advisory: the contract's documents disagree about it. */
void check_invoke_object(struct judge *judge) {
    if (!runtime_invokes(judge)) return;
    check_kind(judge, PROBE_INVOKE_OBJECT, "an object");
    const struct reply *reply = runtime_probe(judge, PROBE_INVOKE_ARRAY);
    if (reply->status != 200)
        judge_warn(judge, &reply->evidence, "an array as input is refused, with status %u",
                   reply->status);
}

void check_invoke_shape(struct judge *judge) {
    if (runtime_invokes(judge))
        judge_shape(judge, runtime_probe(judge, PROBE_INVOKE),
                    "{\"properties\":{\"session_id\":{\"type\":\"string\"},"
                    "\"metadata\":{\"type\":[\"object\",\"null\"]}}}");
}

/* --- sessions ---------------------------------------------------------------------------------- */

static struct json session_of(const struct reply *reply) {
    return json_find(reply->json, STR("session_id"));
}

static bool honours_sessions(struct judge *judge, const struct reply *reply) {
    return session_of(reply).kind == JSON_STRING ||
           judge_skip(judge, "it returns no session_id: sessions are not honoured");
}

static void judge_session(struct judge *judge, const struct reply *reply, const char *session,
                          const char *from) {
    if (!runtime_invoke_is_good(reply))
        judge_break(judge, &reply->evidence, "expected 200 for %s, got status %u", from,
                    reply->status);
    else if (!json_is(session_of(reply), str_from(session)))
        judge_break(judge, &reply->evidence, "expected session_id '%s', from %s, got " STR_FMT,
                    session, from,
                    STR_ARG(session_of(reply).kind ? str_head(session_of(reply).raw, 200)
                                                   : STR("none")));
}

void check_invoke_echo(struct judge *judge) {
    if (!runtime_invokes(judge)) return;
    const struct reply *reply = runtime_probe(judge, PROBE_INVOKE_SESSION);
    if (!runtime_invoke_is_good(reply) || honours_sessions(judge, reply))
        judge_session(judge, reply, runtime_of(judge)->session, "the body");
}

void check_invoke_generates(struct judge *judge) {
    if (!runtime_invokes(judge)) return;
    const struct reply *one = runtime_probe(judge, PROBE_INVOKE);
    const struct reply *two = runtime_probe(judge, PROBE_INVOKE_AGAIN);
    struct json a = session_of(one), b = session_of(two);
    if (a.kind != JSON_STRING || a.raw.len <= 2)
        judge_break(judge, &one->evidence,
                    "expected a generated session_id when none is sent, got none");
    else if (!runtime_invoke_is_good(two))
        judge_break(judge, &two->evidence, "expected 200 for the same request again, got %u",
                    two->status);
    else if (str_equal(a.raw, b.raw))
        judge_break(judge, &two->evidence,
                    "expected another session_id for another call, got the same one");
}

void check_invoke_header(struct judge *judge) {
    if (!runtime_invokes(judge)) return;
    const struct runtime *runtime = runtime_of(judge);
    if (!honours_sessions(judge, runtime_probe(judge, PROBE_INVOKE_SESSION))) return;
    judge_session(judge, runtime_probe(judge, PROBE_INVOKE_SESSION_HEADER), runtime->session,
                  "X-Session-Id");
    judge_session(judge, runtime_probe(judge, PROBE_INVOKE_SESSION_BOTH), runtime->session,
                  "the body, which beats X-Session-Id");
}

/* --- what is in the response ---------------------------------------------------------------------- */

void check_invoke_reserved(struct judge *judge) {
    if (judge->options->behind_sidecar) {
        judge_skip(judge, "--behind-sidecar: the sidecar sets these fields (SIDE-01)");
        return;
    }
    if (!runtime_invokes(judge)) return;
    const struct reply *reply = runtime_probe(judge, PROBE_INVOKE);
    for (size_t i = 0; reserved[i]; i++) {
        if (json_find(reply->json, str_from(reserved[i])).kind != JSON_NONE)
            judge_break(judge, &reply->evidence,
                        "expected no key '%s': it is reserved for the sidecar", reserved[i]);
    }
}

void check_invoke_extras(struct judge *judge) {
    if (runtime_invokes(judge))
        judge_status(judge, runtime_probe(judge, PROBE_INVOKE_EXTRAS), 200);
}

void check_invoke_extremes(struct judge *judge) {
    static const enum probe extremes[] = {PROBE_INVOKE_UNICODE, PROBE_INVOKE_NUL,
                                          PROBE_INVOKE_LONG};
    if (!runtime_invokes(judge)) return;
    for (size_t i = 0; i < ARRAY_LEN(extremes); i++) {
        const struct reply *reply = runtime_probe(judge, extremes[i]);
        if (!judge_answered(judge, reply)) return;
        bool clean = reply->status == 200 || (reply->status >= 400 && reply->status < 500);
        if (!clean || reply->json.kind != JSON_OBJECT)
            judge_break(judge, &reply->evidence,
                        "expected 200 or a 4xx, with a JSON object, got status %u",
                        reply->status);
    }
}

void check_invoke_mirrors(struct judge *judge) {
    const struct reply *reply = runtime_probe(judge, PROBE_INVOKE_STRING);
    enum json_kind kind = json_find(reply->json, STR("output")).kind;
    if (!runtime_invokes(judge)) return;
    if (!runtime_invoke_is_good(reply) ||
        (kind != JSON_OBJECT && kind != JSON_ARRAY && kind != JSON_STRING)) {
        judge_skip(judge, "there is no output for a string (INVK-01, INVK-02)");
    } else if (kind != JSON_STRING) {
        judge_break(
            judge, &reply->evidence,
            "expected a string as output of a string: the dashboard shows nothing else");
    }
}
