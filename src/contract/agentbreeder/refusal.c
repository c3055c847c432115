#include "contract/agentbreeder/refusal.h"

#include "provider/dialect.h"
#include "turn/guarded.h"
#include "wire/json.h"

/* Failures caused by the content of the request (K31) or by a guardrail. */
static const struct about_request {
    struct str reason;
    int status;
    struct str name;
} about_request[] = {
    {STR_INIT(MODEL_CANNOT_CARRY), 422, STR_INIT("INVALID_INPUT")},
    {STR_INIT("HISTORY_FORK"), 409, STR_INIT("HISTORY_FORK")},
    {STR_INIT(GUARDRAIL_BLOCKED), 403, STR_INIT(GUARDRAIL_BLOCKED)},
};

static struct about_request failure_of(enum err_code code, struct str reason) {
    for (size_t i = 0; i < ARRAY_LEN(about_request); i++) {
        if (str_equal(reason, about_request[i].reason)) return about_request[i];
    }
    if (code == ERR_UNAVAILABLE || code == ERR_OUT_OF_MEMORY)
        return (struct about_request){reason, 503, STR("UNAVAILABLE")};
    return (struct about_request){reason, 500, STR("INTERNAL_ERROR")};
}

void refusal_of_run(struct route_call *call, enum err_code code, struct str reason,
                    struct str message) {
    struct about_request failure = failure_of(code, reason);
    struct buf details;
    buf_init(&details, 4 * KIB);
    struct json_writer json = json_writer(&details);
    json_open_object(&json);
    json_member_str(&json, "status", err_name(code));
    json_member_str(&json, "reason", reason);
    json_close(&json);
    if (failure.status == 503) route_field(call, STR("retry-after"), STR("5"));
    route_fail(call, &(struct route_failure){failure.status, failure.name, message,
                                             buf_str(&details)});
    buf_done(&details);
}

void refusal_of_request(struct route_call *call, const struct err *why) {
    static const struct {
        enum err_code code;
        int status;
        struct str name;
    } known[] = {
        {ERR_MALFORMED, 400, STR_INIT("INVALID_INPUT")},
        {ERR_INVALID_ARGUMENT, 422, STR_INIT("INVALID_INPUT")},
        {ERR_NOT_FOUND, 404, STR_INIT("THREAD_NOT_FOUND")},
        {ERR_ABORTED, 409, STR_INIT("SESSION_BUSY")},
        {ERR_FAILED_PRECONDITION, 409, STR_INIT("SESSION_WAITING")},
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (known[i].code != why->code) continue;
        route_fail(call, &(struct route_failure){known[i].status, known[i].name, err_text(why),
                                                 STR_EMPTY});
        return;
    }
    refusal_of_run(call, why->code, err_name(why->code), err_text(why));
}
