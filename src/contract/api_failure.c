#include "contract/api_failure.h"

#include "provider/dialect.h"
#include "turn/run.h"

#define INVALID STR_INIT(API_FAILURE_INVALID)
#define SERVER STR_INIT(API_FAILURE_SERVER)
#define CANCELLED_STATUS 499

/* By code of an error. What is not listed is a 500. */
static const struct row {
    enum err_code code;
    struct api_failure refusal;
} rows[] = {
    {ERR_MALFORMED, {400, INVALID, STR_INIT("invalid_json"), false}},
    {ERR_INVALID_ARGUMENT, {400, INVALID, STR_INIT("invalid_value"), false}},
    {ERR_OUT_OF_RANGE, {400, INVALID, STR_INIT("invalid_value"), false}},
    {ERR_UNIMPLEMENTED, {400, INVALID, STR_INIT("unsupported_value"), false}},
    {ERR_UNAUTHENTICATED, {401, INVALID, STR_INIT("invalid_api_key"), false}},
    {ERR_PERMISSION_DENIED, {403, INVALID, STR_INIT("permission_denied"), false}},
    {ERR_NOT_FOUND, {404, INVALID, STR_INIT("not_found"), false}},
    {ERR_ABORTED, {409, INVALID, STR_INIT("session_busy"), true}},
    {ERR_ALREADY_EXISTS, {409, INVALID, STR_INIT("conflict"), true}},
    {ERR_FAILED_PRECONDITION, {409, INVALID, STR_INIT("session_waiting"), false}},
    {ERR_TOO_LARGE, {413, INVALID, STR_INIT("request_too_large"), false}},
    {ERR_RESOURCE_EXHAUSTED,
     {429, STR_INIT("rate_limit_error"), STR_INIT("rate_limit_exceeded"), true}},
    {ERR_CANCELLED, {CANCELLED_STATUS, SERVER, STR_INIT("cancelled"), false}},
    {ERR_UNAVAILABLE, {503, SERVER, STR_INIT("unavailable"), true}},
    {ERR_OUT_OF_MEMORY, {503, SERVER, STR_INIT("unavailable"), true}},
    {ERR_DEADLINE_EXCEEDED, {504, SERVER, STR_INIT("timeout"), true}},
};

/* By the reason of a run that failed: mostly the request is at fault. */
static const struct {
    struct str reason;
    struct api_failure refusal;
} reasons[] = {
    {STR_INIT(MODEL_CANNOT_CARRY), {400, INVALID, STR_INIT("unsupported_content"), false}},
    {STR_INIT(MODEL_CONTEXT), {400, INVALID, STR_INIT(CONTEXT_LENGTH_EXCEEDED), false}},
    {STR_INIT("UNKNOWN_CALL"), {400, INVALID, STR_INIT("unknown_call"), false}},
    {STR_INIT(RUN_SUPERSEDED), {400, INVALID, STR_INIT(PREVIOUS_SUPERSEDED), false}},
    {STR_INIT("ANSWERED_CALL"), {400, INVALID, STR_INIT("answered_call"), false}},
    {STR_INIT("BUDGET"),
     {429, STR_INIT("insufficient_quota"), STR_INIT("insufficient_quota"), false}},
};

struct api_failure api_failure_of_code(enum err_code code) {
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].code == code) return rows[i].refusal;
    }
    return (struct api_failure){500, SERVER, STR("internal_error"), false};
}

/* A run asked models and called tools, so it is only repeated where neither was of use. */
struct api_failure api_failure_of_run(enum err_code code, struct str reason, bool acted) {
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        if (str_equal(reason, reasons[i].reason)) return reasons[i].refusal;
    }
    struct api_failure refusal = api_failure_of_code(code);
    bool by_caller =
        refusal.status < 500 && code != ERR_RESOURCE_EXHAUSTED && code != ERR_CANCELLED;
    if (by_caller) refusal = (struct api_failure){500, SERVER, STR("internal_error"), false};
    if (acted) refusal.retry = false;
    return refusal;
}

void api_failure_fields(struct route_call *call, const struct api_failure *failure) {
    route_field(call, STR("x-should-retry"), failure->retry ? STR("true") : STR("false"));
    if (failure->status == 503) route_field(call, STR("retry-after"), STR("1"));
}
