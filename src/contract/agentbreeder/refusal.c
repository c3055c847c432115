#include "contract/agentbreeder/refusal.h"

#include "provider/dialect.h"
#include "turn/guarded.h"
#include "wire/json.h"

#define DETAILS_MAX_BYTES (256 * KIB)

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

static void write_details(enum err_code code, struct str reason, const struct acted *acted,
                          struct buf *out) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_str(&json, "status", err_name(code));
    json_member_str(&json, "reason", reason);
    acted_write(acted, &json);
    json_close(&json);
}

void refusal_of_run(struct route_call *call, enum err_code code, struct str reason,
                    struct str message, const struct acted *acted) {
    static const struct acted nothing;
    struct about_request failure = failure_of(code, reason);
    struct buf details, said;
    if (!acted) acted = &nothing;
    buf_init(&details, DETAILS_MAX_BYTES);
    buf_init(&said, message.len + KIB);
    write_details(code, reason, acted, &details);
    acted_say(acted, message, &said);
    if (failure.status == 503 && !acted_any(acted))
        route_field(call, STR("retry-after"), STR("5"));
    route_fail(call, &(struct route_failure){failure.status, failure.name, buf_str(&said),
                                             buf_str(&details)});
    buf_done(&details);
    buf_done(&said);
}

void refusal_rated(struct route_call *call, const struct rate_room *room,
                   struct route_failure *refused) {
    (void)call, (void)room;
    if (!refused) return;
    refused->status = 503;
    refused->code = STR("UNAVAILABLE");
    refused->details = STR("{\"reason\":\"RATE_LIMITED\"}");
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
    if (why->retry_after_ms) {
        struct route_failure failure = {.message = err_text(why)};
        refusal_rated(call, NULL, &failure);
        route_retry_after(call, why);
        route_fail(call, &failure);
        return;
    }
    refusal_of_run(call, why->code, err_name(why->code), err_text(why), NULL);
}
