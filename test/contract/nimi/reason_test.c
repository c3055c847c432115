/* Codes, their names and statuses, and the carriers of a refusal. */
#include "contract/nimi/fault.h"

#include "contract/nimi/call.h"
#include "helper/assert_str.h"
#include "provider/dialect.h"
#include "wire/json.h"

static void rows_rise_and_are_found_again(void **state) {
    (void)state;
    const struct reason *row;
    int before = -1;
    size_t cursor = 0, count = 0;
    while (reason_next(&cursor, &row)) {
        assert_true(row->number > before);
        assert_ptr_equal(reason_get(row->number), row);
        assert_true(str_to_u64(str_from(row->name), &(uint64_t){0}) == false);
        before = row->number;
        count++;
    }
    assert_true(count > 100);
    assert_str(str_from(reason_get(394)->name), "AI_PROVIDER_TIMEOUT");
    assert_int_equal(reason_get(394)->code, ERR_DEADLINE_EXCEEDED);
    assert_int_equal(reason_get(104)->number, 0); /* reserved */
}

/* 6.1 "In-stream error": our providers' reasons, the contract's own names, then the codes. */
static void every_failure_has_a_reason(void **state) {
    (void)state;
    static const struct {
        const char *said;
        enum err_code code;
        int reason;
    } rows[] = {
        {PROVIDER_AUTH, ERR_UNAUTHENTICATED, NIMI_AI_PROVIDER_AUTH_FAILED},
        {PROVIDER_UNREACHABLE, ERR_UNAVAILABLE, NIMI_AI_PROVIDER_UNAVAILABLE},
        {PROVIDER_FORBIDDEN, ERR_FAILED_PRECONDITION, NIMI_AI_PROVIDER_ENDPOINT_FORBIDDEN},
        {PROVIDER_TIMEOUT, ERR_DEADLINE_EXCEEDED, NIMI_AI_PROVIDER_TIMEOUT},
        {PROVIDER_RATE_LIMITED, ERR_RESOURCE_EXHAUSTED, NIMI_AI_PROVIDER_RATE_LIMITED},
        {PROVIDER_QUOTA, ERR_RESOURCE_EXHAUSTED, NIMI_AI_PROVIDER_RATE_LIMITED},
        {PROVIDER_ERROR, ERR_UNAVAILABLE, NIMI_AI_PROVIDER_INTERNAL},
        {PROVIDER_BROKEN, ERR_UNAVAILABLE, NIMI_AI_STREAM_BROKEN},
        {MODEL_ANSWER_TOO_LONG, ERR_TOO_LARGE, NIMI_AI_OUTPUT_INVALID},
        {PROVIDER_REJECTED, ERR_NOT_FOUND, NIMI_AI_MODEL_NOT_FOUND},
        {PROVIDER_REJECTED, ERR_INVALID_ARGUMENT, NIMI_AI_INPUT_INVALID},
        {PROVIDER_REJECTED, ERR_TOO_LARGE, NIMI_AI_INPUT_INVALID},
        {MODEL_REFUSED, ERR_PERMISSION_DENIED, NIMI_AI_CONTENT_FILTER_BLOCKED},
        {"OUTPUT_INVALID", ERR_INTERNAL, NIMI_AI_OUTPUT_INVALID},
        {"BUDGET", ERR_RESOURCE_EXHAUSTED, NIMI_AI_PROVIDER_RATE_LIMITED},
        {"AI_MODEL_NOT_READY", ERR_UNAVAILABLE, NIMI_AI_MODEL_NOT_READY},
        {"AI_FINISH_LENGTH", ERR_UNAVAILABLE, NIMI_AI_PROVIDER_UNAVAILABLE}, /* no failure */
        {"", ERR_INVALID_ARGUMENT, NIMI_AI_INPUT_INVALID},
        {"", ERR_NOT_FOUND, NIMI_AI_MODEL_NOT_FOUND},
        {"", ERR_DEADLINE_EXCEEDED, NIMI_AI_PROVIDER_TIMEOUT},
        {"", ERR_UNAVAILABLE, NIMI_AI_PROVIDER_UNAVAILABLE},
        {"", ERR_RESOURCE_EXHAUSTED, NIMI_AI_STREAM_BROKEN},
        {"", ERR_INTERNAL, NIMI_AI_STREAM_BROKEN},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(reason_of_failure(str_from(rows[i].said), rows[i].code),
                         rows[i].reason);
    assert_int_equal(reason_of_job_failure(STR(PROVIDER_REJECTED), ERR_TOO_LARGE),
                     NIMI_AI_INPUT_INVALID);
    for (int code = ERR_CANCELLED; code < ERR_CODE_COUNT; code++)
        assert_true(reason_of_failure(STR("?"), (enum err_code)code) > 1);
}

static void a_refusal_is_json_and_details(void **state) {
    (void)state;
    struct fault fault;
    struct buf message, details;
    buf_init(&message, 4 * KIB);
    buf_init(&details, 4 * KIB);
    assert_false(fault_set(&fault, NIMI_AI_APP_ID_REQUIRED, "no \"app\""));
    fault_message(&fault, STR("T"), &message);
    assert_str(buf_str(&message),
               "{\"reasonCode\":\"AI_APP_ID_REQUIRED\",\"actionHint\":"
               "\"check_request_and_app_auth\",\"traceId\":\"T\",\"retryable\":false,"
               "\"message\":\"no \\\"app\\\"\"}");
    fault_details(&fault, STR("T"), &details);
    struct str bytes = buf_str(&details);
    assert_int_equal(bytes.at[0], 0x08);
    assert_int_equal(bytes.at[1], 3); /* INVALID_ARGUMENT */
    assert_true(str_find(bytes, STR("google.rpc.ErrorInfo")) < bytes.len);
    assert_true(str_find(bytes, STR("\x0A\x12"
                                    "AI_APP_ID_REQUIRED\x12\x0F"
                                    "nimi.runtime.v1")) < bytes.len);
    buf_done(&message);
    buf_done(&details);
}

static void the_interceptors_stand_in_their_order(void **state) {
    (void)state;
    static const char *const names[] = {"version", "lifecycle", "activity",         "protocol",
                                        "authn",   "authz",     "credential-scrub", "audit"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_string_equal(nimi_interceptor_name(i), names[i]);
    assert_null(nimi_interceptor_name(ARRAY_LEN(names)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_rise_and_are_found_again),
        cmocka_unit_test(every_failure_has_a_reason),
        cmocka_unit_test(a_refusal_is_json_and_details),
        cmocka_unit_test(the_interceptors_stand_in_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
