#include "contract/anthropic/message_error.h"

#include "base/clock.h"
#include "provider/dialect.h"
#include "wire/moment.h"

static const struct {
    int status;
    struct str type;
} types[] = {
    {401, STR_INIT("authentication_error")}, {403, STR_INIT("permission_error")},
    {404, STR_INIT("not_found_error")},      {413, STR_INIT("request_too_large")},
    {429, STR_INIT("rate_limit_error")},     {503, STR_INIT("overloaded_error")},
    {504, STR_INIT("timeout_error")},
};

struct str message_error_sentence(struct str reason, struct str message) {
    if (!str_equal(reason, STR(MODEL_CONTEXT))) return message;
    return STR(
        "prompt is too long: the model takes no conversation of this length; begin a new "
        "one, or send less of it");
}

static struct str type_of(int status) {
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (types[i].status == status) return types[i].type;
    }
    return status < 500 ? STR("invalid_request_error") : STR("api_error");
}

void message_error_write(int status, struct str message, struct buf *out) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_str(&json, "type", STR("error"));
    json_member_object(&json, "error");
    json_member_str(&json, "type", type_of(status));
    json_member_str(&json, "message", message);
    json_close(&json);
    json_close(&json);
}

void message_error_answer(struct route_call *call, struct api_failure error,
                          struct str message) {
    api_failure_fields(call, &error);
    route_fail(call, &(struct route_failure){error.status, STR_EMPTY, message, STR_EMPTY});
}

void message_error_of_request(struct route_call *call, const struct err *why) {
    route_retry_after(call, why);
    message_error_answer(call, api_failure_of_code(why->code), err_text(why));
}

void message_error_rated(struct route_call *call, const struct rate_room *room,
                         struct route_failure *refused) {
    char text[32];
    struct buf out = {.at = text, .room = sizeof(text), .max_bytes = sizeof(text)};
    buf_append_u64(&out, room->limit.count);
    route_field(call, STR("anthropic-ratelimit-requests-limit"), buf_str(&out));
    buf_clear(&out);
    buf_append_u64(&out, room->left);
    route_field(call, STR("anthropic-ratelimit-requests-remaining"), buf_str(&out));
    buf_clear(&out);
    moment_put(&out, (clock_unix_ms() + (int64_t)room->reset_ms + 999) / 1000, 0);
    route_field(call, STR("anthropic-ratelimit-requests-reset"), buf_str(&out));
    if (refused) route_field(call, STR("x-should-retry"), STR("true"));
}

void message_error_failure_body(const struct route_failure *failure, struct buf *out) {
    message_error_write(failure->status, failure->message, out);
}
