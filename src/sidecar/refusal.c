#include "sidecar/refusal.h"

#include "wire/json.h"

#include <stdio.h>

#define BODY_MAX_BYTES (64 * KIB)
#define FIELDS_MAX 8

struct fields {
    struct field at[FIELDS_MAX];
    size_t count;
};

static void refusal_add(struct fields *fields, struct str name, struct str value) {
    fields->at[fields->count++] = (struct field){name, value};
}

static void send(struct exchange *exchange, int status, struct fields *fields,
                 struct str body) {
    char length[32];
    snprintf(length, sizeof(length), "%zu", body.len);
    refusal_add(fields, STR("content-length"), str_from(length));
    refusal_add(fields, STR("x-runtime-contract-version"), CONTRACT_VERSION);
    exchange_head(exchange, status, fields->at, fields->count);
    if (!str_equal(exchange_method(exchange), STR("HEAD"))) exchange_send(exchange, body);
    exchange_end(exchange, NULL, 0);
}

void refusal_write(const struct refusal *refusal, struct buf *out) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    if (refusal->status == 401 || (refusal->status == 403 && !refusal->rule.len))
        json_member_str(&json, "detail", refusal->message);
    json_member_object(&json, "error");
    json_member_str(&json, "code", refusal->code);
    json_member_str(&json, "message", refusal->message);
    if (refusal->details.len) json_member_raw(&json, "details", refusal->details);
    json_close(&json);
    if (refusal->rule.len) {
        json_member_str(&json, "rule", refusal->rule);
        json_member_str(&json, "sidecar", STR("agentbreeder"));
    }
    if (refusal->trace_id.len) json_member_str(&json, "trace_id", refusal->trace_id);
    json_close(&json);
}

void refusal_send(struct exchange *exchange, const struct refusal *refusal) {
    struct fields fields = {.count = 0};
    struct buf body;
    char seconds[32];
    buf_init(&body, BODY_MAX_BYTES);
    refusal_write(refusal, &body);
    refusal_add(&fields, STR("content-type"), STR("application/json"));
    if (refusal->trace_id.len) refusal_add(&fields, STR("x-trace-id"), refusal->trace_id);
    if (refusal->status == 401)
        refusal_add(&fields, STR("www-authenticate"),
                    STR("Bearer realm=\"agentbreeder-sidecar\""));
    if (refusal->retry_after_s) {
        snprintf(seconds, sizeof(seconds), "%llu", (unsigned long long)refusal->retry_after_s);
        refusal_add(&fields, STR("retry-after"), str_from(seconds));
    }
    send(exchange, refusal->status, &fields, buf_str(&body));
    buf_done(&body);
}

void refusal_reply(struct exchange *exchange, int status, struct str content_type,
                   struct str body, struct str trace_id) {
    struct fields fields = {.count = 0};
    refusal_add(&fields, STR("content-type"), content_type);
    if (trace_id.len) refusal_add(&fields, STR("x-trace-id"), trace_id);
    send(exchange, status, &fields, body);
}
