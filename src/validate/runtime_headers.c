/* Checks of headers, of the version, of HTTP itself, and of life with a sidecar. */
#include "validate/runtime.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define VERSION_FIELD STR("X-Runtime-Contract-Version")

/* --- the version -------------------------------------------------------------------------------- */

/* A higher version may still be compatible; a reader warns. */
static void judge_version(struct judge *judge, const struct reply *reply) {
    judge_field(judge, reply, VERSION_FIELD, STR("1"));
}

void check_version_good(struct judge *judge) {
    static const enum probe good[] = {PROBE_HEALTH, PROBE_INVOKE, PROBE_STREAM};
    bool seen = false;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        const struct reply *reply = runtime_probe(judge, good[i]);
        if (reply->status != 200 || (reply->failed.code && good[i] != PROBE_STREAM)) continue;
        seen = true;
        judge_version(judge, reply);
    }
    if (!seen) judge_skip(judge, "there was no 200 to look at");
}

static bool is_error(unsigned status) {
    static const unsigned errors[] = {400, 401, 403, 404, 405, 422, 500, 501, 503};
    for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
        if (status == errors[i]) return true;
    }
    return false;
}

/* Asks for one of each kind of error, then looks at all replies. */
void check_version_bad(struct judge *judge) {
    static const enum probe errors[] = {PROBE_BAD_JSON, PROBE_WRONG_TYPE, PROBE_NO_PATH,
                                        PROBE_RESUME_UNKNOWN};
    const struct target_start *start = &runtime_of(judge)->target->start;
    const struct reply *reply;
    enum probe probe;
    size_t at = 0;
    for (size_t i = 0; i < ARRAY_LEN(errors); i++) (void)runtime_probe(judge, errors[i]);
    if (judge->options->token.len && !judge->options->no_auth_probe) {
        (void)runtime_probe(judge, PROBE_INVOKE_NO_TOKEN);
        (void)runtime_probe(judge, PROBE_INVOKE_WRONG_TOKEN);
    }
    while ((reply = runtime_next_reply(runtime_of(judge), &at, &probe))) {
        if (is_error(reply->status) && !reply->failed.code) judge_version(judge, reply);
    }
    if (start->invoke.seen && start->invoke.reply.status == 503)
        judge_version(judge, &start->invoke.reply);
}

void check_version_choice(struct judge *judge) {
    if (!runtime_invokes(judge)) return;
    judge_status(judge, runtime_probe(judge, PROBE_INVOKE_VERSION_2), 400);
    if (runtime_probe(judge, PROBE_STREAM)->status == 200)
        judge_status(judge, runtime_probe(judge, PROBE_STREAM_VERSION_2), 400);
    judge_status(judge, runtime_probe(judge, PROBE_INVOKE_VERSION_1), 200);
}

/* --- media types ---------------------------------------------------------------------------------- */

/* Replies of /stream are judged by STRM-01 and STRM-10. */
void check_media_types(struct judge *judge) {
    static const enum probe asked[] = {PROBE_HEALTH, PROBE_INVOKE, PROBE_BAD_JSON,
                                       PROBE_RESUME_UNKNOWN};
    const struct reply *reply;
    enum probe probe;
    size_t at = 0;
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) (void)runtime_probe(judge, asked[i]);
    while ((reply = runtime_next_reply(runtime_of(judge), &at, &probe))) {
        struct str type = reply_field(reply, STR("content-type"));
        if (probe_is_stream(probe) || probe == PROBE_NO_PATH || probe == PROBE_NO_METHOD ||
            reply->json.kind != JSON_OBJECT)
            continue;
        if (!reply_is_type(reply, STR("application/json")))
            judge_break(judge, &reply->evidence,
                        "expected Content-Type application/json for a JSON body, got '" STR_FMT
                        "'",
                        STR_ARG(type.at ? str_head(type, 200) : STR("none")));
    }
}

/* --- HTTP ------------------------------------------------------------------------------------------ */

static void judge_manner(struct judge *judge, enum probe probe, const char *what) {
    const struct reply *reply = runtime_probe(judge, probe);
    if (reply->status != 200 || reply->failed.code)
        judge_break(judge, &reply->evidence, "expected 200 %s, got status %u%s%s", what,
                    reply->status, reply->failed.code ? ": " : "",
                    reply->failed.code ? reply->failed.text : "");
}

/* A connection may be closed at any time, so it is only expected that one that stays open
 * serves a second request. */
void check_http_manners(struct judge *judge) {
    if (!runtime_invokes(judge)) return;
    judge_manner(judge, PROBE_INVOKE_TRACED,
                 "with X-Trace-Id, X-Request-Id and X-Idempotency-Key");
    judge_manner(judge, PROBE_INVOKE_CHUNKED, "for a chunked request body");
    judge_manner(judge, PROBE_INVOKE_EXPECT, "for Expect: 100-continue");
    judge_manner(judge, PROBE_INVOKE_KEPT, "on a connection to keep");
    judge_manner(judge, PROBE_INVOKE_REUSED, "for a second request on one connection");
    const struct reply *reply = runtime_probe(judge, PROBE_INVOKE_REUSED);
    if (!reply->reused)
        judge_break(judge, &reply->evidence,
                    "expected the connection to stay open after a response (keep-alive)");
}

/* --- the sidecar ------------------------------------------------------------------------------------ */

static const char reserved_schema[] =
    "{\"required\":[\"trace_id\",\"tokens\",\"cost_usd\",\"model\",\"latency_ms\"],"
    "\"properties\":{\"trace_id\":{\"type\":\"string\"},\"tokens\":{\"type\":\"object\","
    "\"required\":[\"input\",\"output\",\"total\"],\"additionalProperties\":{"
    "\"type\":\"integer\",\"minimum\":0}},\"cost_usd\":{\"type\":\"number\",\"minimum\":0},"
    "\"model\":{\"type\":\"string\"},\"latency_ms\":{\"type\":\"integer\",\"minimum\":0}}}";

void check_sidecar_fields(struct judge *judge) {
    if (!judge->options->behind_sidecar) {
        judge_skip(judge, "the target does not stand behind a sidecar (--behind-sidecar)");
        return;
    }
    if (!runtime_invokes(judge)) return;
    judge_shape(judge, runtime_probe(judge, PROBE_INVOKE), reserved_schema);
    const struct reply *stream = runtime_probe(judge, PROBE_STREAM);
    struct str body = buf_str(&stream->body);
    size_t done = str_find(body, STR("event: done\n"));
    if (stream->status == 200 && done >= str_find(body, STR("data: [DONE]")))
        judge_break(judge, &stream->evidence, "expected an event done before data: [DONE]");
}

/* A port of this machine that must not be called. Returns its descriptor, or -1. */
static int listen_for_spans(bool from_container, uint16_t *ret_port) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr =
                                      htonl(from_container ? INADDR_ANY : INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    if (bind(fd, (struct sockaddr *)&address, len) == 0 && listen(fd, 16) == 0 &&
        getsockname(fd, (struct sockaddr *)&address, &len) == 0) {
        *ret_port = ntohs(address.sin_port);
        return fd;
    }
    close(fd);
    return -1;
}

/* How long an exporter has to call after a run, with the delays below. */
#define SPANS_WAIT_MS 1500

static bool boot_with_collector(struct judge *judge, uint16_t port) {
    struct target *target = runtime_of(judge)->target;
    struct err e;
    char endpoint[96], other[96];
    const char *host = target->kind == TARGET_IMAGE ? "host.docker.internal" : "127.0.0.1";
    snprintf(endpoint, sizeof(endpoint), "OTEL_EXPORTER_OTLP_ENDPOINT=http://%s:%u", host,
             port);
    snprintf(other, sizeof(other), "OPENTELEMETRY_ENDPOINT=http://%s:%u", host, port);
    const char *const more[] = {
        "AGENTBREEDER_SIDECAR_ACTIVE=1",   endpoint, other, "OTEL_BSP_SCHEDULE_DELAY=200",
        "OTEL_METRIC_EXPORT_INTERVAL=200", NULL};
    return target_boot(target, &(struct target_boot){.more = more}, &e) ||
           judge_break(judge, NULL,
                       "expected it to start with AGENTBREEDER_SIDECAR_ACTIVE=1: %s", e.text);
}

static void ask_one_turn(struct judge *judge) {
    struct runtime *runtime = runtime_of(judge);
    if (runtime->asked[PROBE_INVOKE_STRING]) reply_done(&runtime->replies[PROBE_INVOKE_STRING]);
    if (runtime->asked[PROBE_INVOKE]) reply_done(&runtime->replies[PROBE_INVOKE]);
    runtime->asked[PROBE_INVOKE] = runtime->asked[PROBE_INVOKE_STRING] = false;
    (void)runtime_probe(judge, PROBE_INVOKE);
}

/* Starts the target again, so this comes after the checks that do not. */
void check_sidecar_quiet(struct judge *judge) {
    struct target *target = runtime_of(judge)->target;
    uint16_t port = 0;
    if (target->kind == TARGET_URL) {
        judge_skip(judge, "the target was not started by this validation");
        return;
    }
    int fd = listen_for_spans(target->kind == TARGET_IMAGE, &port);
    if (fd < 0) {
        judge_skip(judge, "there is no free port for a collector");
        return;
    }
    if (boot_with_collector(judge, port)) {
        ask_one_turn(judge);
        asker_wait(target->asker, SPANS_WAIT_MS);
        int caller = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        if (caller >= 0) {
            close(caller);
            judge_break(
                judge, NULL,
                "expected no call of the collector while AGENTBREEDER_SIDECAR_ACTIVE=1, "
                "got a connection");
        }
    }
    close(fd);
}

void check_rotation(struct judge *judge) {
    judge_skip(judge, "that a token is not replaced at run time cannot be seen over HTTP");
}
