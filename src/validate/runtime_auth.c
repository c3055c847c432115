/* Checks of authentication: which requests are refused, and how. */
#include "validate/runtime.h"

/* Whether checks of authentication make sense; else the check is skipped. */
static bool runtime_has_token(struct judge *judge) {
    if (judge->options->no_auth_probe) return judge_skip(judge, "--no-auth-probe");
    return judge->options->token.len ||
           judge_skip(judge, "there is no token to compare with: give --token, or set "
                             "AGENT_AUTH_TOKEN");
}

static bool judge_either(struct judge *judge, const struct reply *reply, unsigned a,
                         unsigned b) {
    if (!judge_answered(judge, reply)) return false;
    if (reply->status == a || reply->status == b) return true;
    if (a == b) return judge_status(judge, reply, a);
    return judge_break(judge, &reply->evidence, "expected status %u or %u, got %u", a, b,
                       reply->status);
}

/* One kind of request, on each path that a token guards. */
struct guarded {
    enum probe invoke, stream, resume;
};

static const struct guarded without = {PROBE_INVOKE_NO_TOKEN, PROBE_STREAM_NO_TOKEN,
                                       PROBE_RESUME_NO_TOKEN};
static const struct guarded wrong = {PROBE_INVOKE_WRONG_TOKEN, PROBE_STREAM_WRONG_TOKEN,
                                     PROBE_RESUME_WRONG_TOKEN};
static const struct guarded empty = {PROBE_INVOKE_EMPTY_TOKEN, PROBE_STREAM_EMPTY_TOKEN,
                                     PROBE_RESUME_EMPTY_TOKEN};
static const struct guarded basic = {PROBE_INVOKE_BASIC, PROBE_STREAM_BASIC,
                                     PROBE_RESUME_BASIC};

/* A server without the endpoint may answer 404 or 501 to anyone. /resume is optional, and that
 * /stream is missing is said by STRM-01. Where a request without a token is refused, the
 * endpoint is there, and 404 is the reply of one that let the caller in. */
static bool is_served(struct judge *judge, enum probe no_token) {
    unsigned status = runtime_probe(judge, no_token)->status;
    return status != 404 && status != 501;
}

/* That a request without a token gets another status is said by AUTH-01 and AUTH-02. */
static bool is_guarded(struct judge *judge, enum probe no_token) {
    return runtime_probe(judge, no_token)->status == 401;
}

/* On each path one of these two statuses. */
static void judge_refused(struct judge *judge, const struct guarded *asked, unsigned a,
                          unsigned b) {
    judge_either(judge, runtime_probe(judge, asked->invoke), a, b);
    if (is_guarded(judge, without.stream))
        judge_either(judge, runtime_probe(judge, asked->stream), a, b);
    if (is_guarded(judge, without.resume))
        judge_either(judge, runtime_probe(judge, asked->resume), a, b);
}

void check_auth_missing(struct judge *judge) {
    if (!runtime_has_token(judge)) return;
    judge_status(judge, runtime_probe(judge, without.invoke), 401);
    if (is_served(judge, without.stream))
        judge_status(judge, runtime_probe(judge, without.stream), 401);
}

void check_auth_missing_resume(struct judge *judge) {
    if (!runtime_has_token(judge)) return;
    if (is_served(judge, without.resume))
        judge_status(judge, runtime_probe(judge, without.resume), 401);
    else
        judge_skip(judge, "there is no /resume");
}

void check_auth_wrong(struct judge *judge) {
    if (!runtime_has_token(judge)) return;
    judge_status(judge, runtime_probe(judge, wrong.invoke), 403);
    if (is_served(judge, without.stream))
        judge_status(judge, runtime_probe(judge, wrong.stream), 403);
    if (is_served(judge, without.resume))
        judge_status(judge, runtime_probe(judge, wrong.resume), 403);
}

void check_auth_empty(struct judge *judge) {
    if (runtime_has_token(judge)) judge_refused(judge, &empty, 401, 403);
}

void check_auth_basic(struct judge *judge) {
    if (runtime_has_token(judge)) judge_refused(judge, &basic, 401, 401);
}

static bool is_refusal(const struct reply *reply) {
    return reply->status == 401 || reply->status == 403;
}

bool runtime_lets_in(struct judge *judge) {
    return !is_refusal(runtime_probe(judge, PROBE_INVOKE)) ||
           judge_skip(judge, "the token is refused (AUTH-06)");
}

/* A server without a token lets everyone in. */
void check_auth_right(struct judge *judge) {
    const struct reply *reply = runtime_probe(judge, PROBE_INVOKE);
    if (!reply->status)
        judge_skip(judge, "/invoke gives no response (INVK-01)");
    else if (is_refusal(reply))
        judge_break(judge, &reply->evidence,
                    "expected the token to be accepted, got status %u%s", reply->status,
                    judge->options->token.len ? "" : " (no token was given)");
}

static void judge_refusal_body(struct judge *judge, enum probe probe) {
    const struct reply *reply = runtime_probe(judge, probe);
    struct json detail = json_find(reply->json, STR("detail"));
    if (is_refusal(reply) && detail.kind != JSON_STRING) judge_envelope(judge, reply);
}

/* Of /stream, STRM-10 judges that it is JSON. */
void check_auth_bodies(struct judge *judge) {
    static const struct guarded *const refused[] = {&without, &wrong, &empty, &basic};
    if (!runtime_has_token(judge)) return;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        judge_refusal_body(judge, refused[i]->invoke);
        judge_refusal_body(judge, refused[i]->stream);
        judge_refusal_body(judge, refused[i]->resume);
    }
}

/* --- without a token ------------------------------------------------------------------------ */

static void check_open_path(struct judge *judge, enum probe probe) {
    const struct reply *reply = runtime_probe(judge, probe);
    if (judge_answered(judge, reply) && is_refusal(reply))
        judge_break(judge, &reply->evidence,
                    "expected every request to pass when AGENT_AUTH_TOKEN is unset, got status "
                    "%u",
                    reply->status);
}

/* Forget the replies of the server with a token, so that they are asked for again. */
static void runtime_auth_forget(struct runtime *runtime, enum probe probe) {
    if (runtime->asked[probe]) reply_done(&runtime->replies[probe]);
    runtime->asked[probe] = false;
}

/* Starts the target again, so this comes after the checks that do not. */
void check_auth_open(struct judge *judge) {
    const enum probe open[] = {without.invoke, without.stream, without.resume};
    struct runtime *runtime = runtime_of(judge);
    struct err e;
    if (runtime->target->kind == TARGET_URL) {
        judge_skip(judge, "the target was not started by this validation");
        return;
    }
    if (!target_boot(runtime->target, &(struct target_boot){.open = true}, &e)) {
        judge_break(judge, NULL, "expected it to start without AGENT_AUTH_TOKEN: %s", e.text);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(open); i++) {
        runtime_auth_forget(runtime, open[i]);
        check_open_path(judge, open[i]);
    }
}

/* --- strange tokens --------------------------------------------------------------------------- */

void check_auth_strange(struct judge *judge) {
    if (!runtime_has_token(judge)) return;
    const struct reply *reply = runtime_probe(judge, without.invoke);
    if (reply->status == 401 && !reply_field(reply, STR("www-authenticate")).len)
        judge_break(judge, &reply->evidence, "expected WWW-Authenticate with status 401");
    static const enum probe strange[] = {PROBE_INVOKE_TOKEN_HEAD, PROBE_INVOKE_TOKEN_TAIL,
                                         PROBE_INVOKE_TOKEN_TWICE};
    for (size_t i = 0; i < ARRAY_LEN(strange); i++) {
        const struct reply *got = runtime_probe(judge, strange[i]);
        if (judge_answered(judge, got) && got->status < 400)
            judge_break(judge, &got->evidence, "expected a refusal of %s, got status %u",
                        strange[i] == PROBE_INVOKE_TOKEN_TWICE
                            ? "two Authorization fields, of which the second is wrong"
                            : "a token that lacks a byte",
                        got->status);
    }
}
