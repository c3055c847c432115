/* Judgements of one HTTP reply that many checks share. */
#include "schema/schema.h"
#include "validate/ask.h"

#include <assert.h>

bool judge_answered(struct judge *judge, const struct reply *reply) {
    if (reply->status && (!reply->failed.code || reply->hung_up)) return true;
    return judge_break(judge, &reply->evidence, "expected a complete HTTP response: %s",
                       reply->failed.text);
}

bool judge_status(struct judge *judge, const struct reply *reply, unsigned status) {
    if (!judge_answered(judge, reply)) return false;
    if (reply->status == status) return true;
    return judge_break(judge, &reply->evidence, "expected status %u, got %u", status,
                       reply->status);
}

bool judge_is_object(struct judge *judge, const struct reply *reply) {
    if (!judge_answered(judge, reply)) return false;
    if (reply->json.kind == JSON_OBJECT) return true;
    if (reply->json.kind != JSON_NONE)
        return judge_break(judge, &reply->evidence, "expected a JSON object, got %s",
                           json_kind_name(reply->json.kind));
    return judge_break(judge, &reply->evidence, "expected a JSON object: %s",
                       reply->not_json.text);
}

bool judge_value_shape(struct judge *judge, const struct reply *reply, struct json value,
                       const char *what, const char *text) {
    struct schema *schema;
    struct err e;
    bool read = schema_read(str_from(text), &schema, &e);
    assert(read); /* the schemas are ours */
    (void)read;
    bool good = schema_check(schema, value, &e) ||
                judge_break(judge, &reply->evidence, "%s%s%s", what, *what ? ": " : "", e.text);
    schema_free(schema);
    return good;
}

bool judge_shape(struct judge *judge, const struct reply *reply, const char *schema) {
    return judge_is_object(judge, reply) &&
           judge_value_shape(judge, reply, reply->json, "", schema);
}

static const char envelope_schema[] =
    "{\"type\":\"object\",\"required\":[\"error\"],\"properties\":{\"error\":{"
    "\"type\":\"object\",\"required\":[\"code\",\"message\"],\"properties\":{"
    "\"code\":{\"type\":\"string\",\"pattern\":\"^[A-Z][A-Z0-9_]*$\"},"
    "\"message\":{\"type\":\"string\"}}},\"trace_id\":{\"type\":\"string\"}}}";

bool judge_envelope(struct judge *judge, const struct reply *reply) {
    if (!judge_answered(judge, reply)) return false;
    if (reply->json.kind != JSON_OBJECT)
        return judge_break(
            judge, &reply->evidence,
            "expected {\"error\":{\"code\":...,\"message\":...}} with status %u, "
            "got no JSON object",
            reply->status);
    return judge_value_shape(judge, reply, reply->json, "the error envelope", envelope_schema);
}

bool judge_field(struct judge *judge, const struct reply *reply, struct str name,
                 struct str value) {
    struct str got = reply_field(reply, name);
    if (!reply->status) return judge_answered(judge, reply);
    if (reply_field_count(reply, name) > 1)
        return judge_break(judge, &reply->evidence,
                           "expected the header " STR_FMT " once with status %u, got it %zu "
                           "times",
                           STR_ARG(name), reply->status, reply_field_count(reply, name));
    if (got.at && str_equal(got, value)) return true;
    if (!got.at)
        return judge_break(judge, &reply->evidence,
                           "expected the header " STR_FMT ": " STR_FMT " with status %u, got "
                           "none",
                           STR_ARG(name), STR_ARG(value), reply->status);
    return judge_break(judge, &reply->evidence,
                       "expected the header " STR_FMT ": " STR_FMT ", got '" STR_FMT "'",
                       STR_ARG(name), STR_ARG(value), STR_ARG(str_head(got, 200)));
}
