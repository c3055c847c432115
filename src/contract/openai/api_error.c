#include "contract/openai/api_error.h"

#include "contract/openai/openai.h"

void api_error_write(struct json_writer *json, const struct api_failure *refusal,
                     struct str message, struct str param) {
    json_open_object(json);
    json_member_str(json, "message", message);
    json_member_str(json, "type", refusal->type);
    openai_member(json, "param", param.len > 0, param);
    openai_member(json, "code", refusal->code.len > 0, refusal->code);
    json_close(json);
}

void api_error_answer(struct route_call *call, const struct api_failure *refusal,
                      struct str message, struct str param) {
    struct buf quoted;
    buf_init(&quoted, 4 * KIB);
    if (param.len) json_put_str(&quoted, param);
    api_failure_fields(call, refusal);
    route_fail(call, &(struct route_failure){refusal->status, refusal->code, message,
                                             buf_str(&quoted)});
    buf_done(&quoted);
}

void api_error_of_request(struct route_call *call, const struct err *why, struct str param) {
    struct api_failure refusal = api_failure_of_code(why->code);
    route_retry_after(call, why);
    api_error_answer(call, &refusal, err_text(why), param);
}

void api_error_of_model(struct route_call *call, const struct err *why) {
    static const struct api_failure unknown = {404, STR_INIT(API_FAILURE_INVALID),
                                               STR_INIT("model_not_found"), false};
    api_error_answer(call, &unknown, err_text(why), STR("model"));
}

/* --- rates -------------------------------------------------------------------------------- */

static void field_u64(struct route_call *call, struct str name, uint64_t value) {
    char digits[24];
    struct buf text = {.at = digits, .room = sizeof(digits), .max_bytes = sizeof(digits)};
    buf_append_u64(&text, value);
    route_field(call, name, buf_str(&text));
}

/* "250ms", "1.5s", "6m0s": as OpenAI writes them. */
static void field_duration(struct route_call *call, struct str name, uint64_t ms) {
    char room[48];
    struct buf text = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    uint64_t minutes = ms / 60000, rest_ms = ms % 60000;
    if (minutes) buf_printf(&text, "%llum", (unsigned long long)minutes);
    if (!minutes && ms < 1000)
        buf_printf(&text, "%llums", (unsigned long long)ms);
    else
        buf_printf(&text, "%.6gs", (double)rest_ms / 1000);
    route_field(call, name, buf_str(&text));
}

void api_error_rated(struct route_call *call, const struct rate_room *room,
                     struct route_failure *refused) {
    field_u64(call, STR("x-ratelimit-limit-requests"), room->limit.count);
    field_u64(call, STR("x-ratelimit-remaining-requests"), room->left);
    field_duration(call, STR("x-ratelimit-reset-requests"), room->reset_ms);
    if (!refused) return;
    refused->code = STR("rate_limit_exceeded");
    route_field(call, STR("x-should-retry"), STR("true"));
}

/* --- the body ----------------------------------------------------------------------------- */

static struct str type_of(const struct route_failure *failure) {
    if (str_equal(failure->code, STR("insufficient_quota"))) return STR("insufficient_quota");
    if (failure->status == 429) return STR("rate_limit_error");
    return failure->status < 500 ? STR(API_FAILURE_INVALID) : STR(API_FAILURE_SERVER);
}

/* The server's own codes are in capitals, and OpenAI's are not. */
static void api_error_write_code(struct json_writer *json, struct str code) {
    char room[64];
    size_t len = code.len < sizeof(room) ? code.len : sizeof(room);
    for (size_t i = 0; i < len; i++) {
        bool capital = code.at[i] >= 'A' && code.at[i] <= 'Z';
        room[i] = (char)(capital ? code.at[i] - 'A' + 'a' : code.at[i]);
    }
    openai_member(json, "code", len > 0, str_of(room, len));
}

void api_error_failure_body(const struct route_failure *failure, struct buf *out) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_object(&json, "error");
    json_member_str(&json, "message", failure->message);
    json_member_str(&json, "type", type_of(failure));
    if (failure->details.len) {
        json_member_raw(&json, "param", failure->details);
    } else {
        json_member_null(&json, "param");
    }
    api_error_write_code(&json, failure->code);
    json_close(&json);
    json_close(&json);
}
