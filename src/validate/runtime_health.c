/* Checks of the start, of /health, of /openapi.json and of the agent card. */
#include "validate/runtime.h"

#include <stdio.h>

/* --- the start -------------------------------------------------------------------------------- */

void check_boot_answers(struct judge *judge) {
    const struct target *target = runtime_of(judge)->target;
    if (!target->start.answered)
        judge_break(judge, target->start.odd ? &target->start.odd_one.evidence : NULL,
                    "expected an HTTP response to GET /health, got none");
    else if (!target->start.healthy && target->start.loading)
        judge_break(judge, NULL,
                    "expected /health to say healthy before the boot timeout, it "
                    "still says loading");
}

void check_boot_quiet(struct judge *judge) {
    const struct target *target = runtime_of(judge)->target;
    if (target->kind == TARGET_URL) {
        judge_skip(judge, "the target was not started by this validation");
    } else if (target->start.odd) {
        judge_break(judge, &target->start.odd_one.evidence,
                    "expected a refused connection or 200 with status loading while it starts, "
                    "got something else %u times",
                    target->start.odd);
    }
}

static bool words_have_port(const char *const *words) {
    for (; *words; words++) {
        struct str word = str_from(*words);
        if (str_find(word, STR("{port}")) < word.len) return true;
    }
    return false;
}

/* Starts the target again, so this comes after the checks that do not. */
void check_boot_port(struct judge *judge) {
    struct target *target = runtime_of(judge)->target;
    struct err e;
    if (target->kind == TARGET_URL) {
        judge_skip(judge, "the target was not started by this validation");
    } else if (target->kind == TARGET_COMMAND && words_have_port(target->options->command)) {
        judge_skip(judge, "its command has {port}, so PORT did not choose the port");
    } else if (!target_boot(target, &(struct target_boot){.port = TARGET_PORT_TOLD}, &e)) {
        judge_break(judge, NULL, "expected it to listen on the port in the variable PORT: %s",
                    e.text);
    }
}

/* --- /health ---------------------------------------------------------------------------------- */

void check_health_200(struct judge *judge) {
    judge_status(judge, runtime_probe(judge, PROBE_HEALTH), 200);
}

/* A 200 with an object; else other checks say what is wrong. */
static const struct reply *health_object(struct judge *judge) {
    const struct reply *reply = runtime_probe(judge, PROBE_HEALTH);
    if (reply->status == 200 && reply->json.kind == JSON_OBJECT) return reply;
    judge_skip(judge, "/health gives no 200 with a JSON object (HLTH-01, HLTH-02)");
    return NULL;
}

void check_health_shape(struct judge *judge) {
    const struct reply *reply = runtime_probe(judge, PROBE_HEALTH);
    if (reply->status != 200) {
        judge_skip(judge, "/health gives no 200 (HLTH-01)");
        return;
    }
    judge_shape(judge, reply,
                "{\"required\":[\"status\"],\"properties\":{\"status\":{\"enum\":"
                "[\"healthy\",\"loading\",\"ok\"]}}}");
}

void check_health_names(struct judge *judge) {
    const struct reply *reply = health_object(judge);
    if (!reply) return;
    bool legacy = json_find(reply->json, STR("agent_name")).kind == JSON_NONE &&
                  json_find(reply->json, STR("agent")).kind == JSON_STRING;
    if (legacy && !judge->options->strict) {
        judge_warn(judge, &reply->evidence,
                   "expected agent_name, got the key of old servers, agent");
    } else {
        judge_shape(judge, reply,
                    "{\"required\":[\"agent_name\",\"version\"],\"properties\":{"
                    "\"agent_name\":{\"type\":\"string\"},\"version\":{\"type\":\"string\"}}}");
    }
}

void check_health_not_ok(struct judge *judge) {
    const struct reply *reply = health_object(judge);
    if (reply && json_is(json_find(reply->json, STR("status")), STR("ok")))
        judge_break(judge, &reply->evidence, "expected status healthy, got its old name, ok");
}

void check_health_open(struct judge *judge) {
    const struct reply *open = runtime_probe(judge, PROBE_HEALTH);
    if (open->status != 200 && open->status != 401 && open->status != 403) {
        judge_skip(judge, "/health gives no 200 (HLTH-01)");
        return;
    }
    judge_status(judge, open, 200);
    judge_status(judge, runtime_probe(judge, PROBE_HEALTH_WRONG_TOKEN), 200);
}

/* SemVer 2.0.0, without its rule about leading zeros. */
#define SEMVER "^[0-9]+\\\\.[0-9]+\\\\.[0-9]+(-[0-9A-Za-z.-]+)?(\\\\+[0-9A-Za-z.-]+)?$"

void check_health_optional(struct judge *judge) {
    const struct reply *reply = health_object(judge);
    if (!reply) return;
    judge_shape(judge, reply,
                "{\"properties\":{\"framework\":{\"type\":\"string\"},"
                "\"version\":{\"not\":{\"type\":\"string\",\"not\":{\"pattern\":\"" SEMVER
                "\"}}}}}");
}

void check_health_version(struct judge *judge) {
    if (health_object(judge))
        judge_status(judge, runtime_probe(judge, PROBE_HEALTH_VERSION_2), 200);
}

/* --- while it loads ----------------------------------------------------------------------------- */

static const struct target_start *seen_loading(struct judge *judge) {
    const struct target_start *start = &runtime_of(judge)->target->start;
    if (start->invoke.seen) return start; /* /stream is asked after it */
    judge_skip(judge, start->loading ? "it had loaded before /invoke answered"
                                     : "it was never seen loading");
    return NULL;
}

void check_loading_503(struct judge *judge) {
    const struct target_start *start = seen_loading(judge);
    if (!start) return;
    judge_status(judge, &start->invoke.reply, 503);
    if (start->stream.seen) judge_status(judge, &start->stream.reply, 503);
}

static void check_retry_after(struct judge *judge, const struct reply *reply) {
    struct str value = reply_field(reply, STR("retry-after"));
    uint64_t seconds;
    if (reply->status == 503 && (!value.at || !str_to_u64(value, &seconds)))
        judge_break(judge, &reply->evidence,
                    "expected Retry-After with a whole number of seconds, got '" STR_FMT "'",
                    STR_ARG(value.at ? value : STR("none")));
}

void check_loading_retry(struct judge *judge) {
    const struct target_start *start = seen_loading(judge);
    if (!start) return;
    check_retry_after(judge, &start->invoke.reply);
    if (start->stream.seen) check_retry_after(judge, &start->stream.reply);
}

/* --- /openapi.json ------------------------------------------------------------------------------ */

/* An optional document: 200 or 404. NULL: there is none, or it is no JSON. */
static const struct reply *document(struct judge *judge, enum probe probe, const char *check) {
    const struct reply *reply = runtime_probe(judge, probe);
    if (reply->status == 200 && reply->json.kind == JSON_OBJECT) return reply;
    judge_skip(judge, "there is no such document (%s)", check);
    return NULL;
}

static bool runtime_health_is_absent(struct judge *judge, const struct reply *reply) {
    if (!judge_answered(judge, reply) || reply->status == 404) return true;
    if (reply->status == 200) return false;
    judge_break(judge, &reply->evidence, "expected status 200 or 404 without a token, got %u",
                reply->status);
    return true;
}

void check_openapi(struct judge *judge) {
    const struct reply *reply = runtime_probe(judge, PROBE_OPENAPI);
    if (!runtime_health_is_absent(judge, reply))
        judge_shape(judge, reply,
                    "{\"required\":[\"openapi\"],\"properties\":{\"openapi\":{"
                    "\"type\":\"string\",\"pattern\":\"^3\\\\.\"}}}");
}

void check_openapi_version(struct judge *judge) {
    const struct reply *reply = document(judge, PROBE_OPENAPI, "OAPI-01");
    if (reply)
        judge_shape(judge, reply,
                    "{\"required\":[\"info\"],\"properties\":{\"info\":{\"required\":["
                    "\"x-agentbreeder-runtime-contract\"],\"properties\":{"
                    "\"x-agentbreeder-runtime-contract\":{\"const\":\"1\"}}}}}");
}

void check_openapi_paths(struct judge *judge) {
    const struct reply *reply = document(judge, PROBE_OPENAPI, "OAPI-01");
    if (reply)
        judge_shape(judge, reply,
                    "{\"required\":[\"paths\"],\"properties\":{\"paths\":{\"type\":\"object\","
                    "\"required\":[\"/health\",\"/invoke\",\"/stream\"]}}}");
}

/* --- the agent card ------------------------------------------------------------------------------ */

void check_card(struct judge *judge) {
    const struct reply *reply = runtime_probe(judge, PROBE_CARD);
    if (!runtime_health_is_absent(judge, reply))
        judge_shape(judge, reply,
                    "{\"required\":[\"name\",\"version\",\"endpoints\"],\"properties\":{"
                    "\"name\":{\"type\":\"string\"},\"version\":{\"type\":\"string\"},"
                    "\"endpoints\":{\"type\":\"object\",\"additionalProperties\":{"
                    "\"type\":\"string\"}}}}");
}

/* What is no text breaks other checks. */
static bool differs(struct json a, struct json b) {
    return a.kind == JSON_STRING && b.kind == JSON_STRING && !str_equal(a.raw, b.raw);
}

/* Other checks look at these. */
static bool is_post(struct str path) {
    return str_equal(path, STR("/invoke")) || str_equal(path, STR("/stream")) ||
           str_equal(path, STR("/resume"));
}

/* Whether a path of the card is there: any answer but 404. What is no text breaks CARD-01. */
static void check_endpoint(struct judge *judge, const struct reply *card, struct json key,
                           struct json path) {
    struct runtime *runtime = runtime_of(judge);
    struct reply reply;
    struct buf text;
    buf_init(&text, 4 * KIB);
    if (!json_text(path, &text) || is_post(buf_str(&text))) {
        buf_done(&text);
        return;
    }
    if (!str_starts(buf_str(&text), STR("/"))) {
        judge_break(judge, &card->evidence, "expected a path for " STR_FMT ", got " STR_FMT,
                    STR_ARG(key.raw), STR_ARG(str_head(path.raw, 200)));
        buf_done(&text);
        return;
    }
    runtime_ask(runtime,
                &(struct question){.url = buf_str(&runtime->target->url),
                                   .method = STR("GET"),
                                   .path = buf_str(&text),
                                   .timeout_ms = runtime->options->timeout_ms},
                &reply);
    if (reply.status == 404 || reply.status == 0)
        judge_break(judge, &reply.evidence,
                    "expected the card's path " STR_FMT " to be served, got status %u",
                    STR_ARG(buf_str(&text)), reply.status);
    reply_done(&reply);
    buf_done(&text);
}

#define ENDPOINTS_ASKED_MAX 8

void check_card_agrees(struct judge *judge) {
    const struct reply *card = document(judge, PROBE_CARD, "CARD-01");
    const struct reply *health = card ? health_object(judge) : NULL;
    if (!health) return;
    if (differs(json_find(card->json, STR("name")), json_find(health->json, STR("agent_name"))))
        judge_break(judge, &card->evidence, "expected the name that /health gives, " STR_FMT,
                    STR_ARG(str_head(json_find(health->json, STR("agent_name")).raw, 200)));
    if (differs(json_find(card->json, STR("version")), json_find(health->json, STR("version"))))
        judge_break(judge, &card->evidence, "expected the version that /health gives, " STR_FMT,
                    STR_ARG(str_head(json_find(health->json, STR("version")).raw, 200)));
    struct json_reader reader = json_enter(json_find(card->json, STR("endpoints")));
    struct json key, path;
    for (unsigned i = 0; i < ENDPOINTS_ASKED_MAX && json_next_member(&reader, &key, &path); i++)
        check_endpoint(judge, card, key, path);
}
