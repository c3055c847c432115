/* Which failure callers of a model's API are shown: its status decides the exception of the official
 * libraries. */
#include "contract/api_failure.h"

#include "helper/assert_str.h"

static const struct {
    enum err_code code;
    int status;
    const char *type, *name;
    bool retry;
} requests[] = {
    {ERR_MALFORMED, 400, "invalid_request_error", "invalid_json", false},
    {ERR_INVALID_ARGUMENT, 400, "invalid_request_error", "invalid_value", false},
    {ERR_UNAUTHENTICATED, 401, "invalid_request_error", "invalid_api_key", false},
    {ERR_PERMISSION_DENIED, 403, "invalid_request_error", "permission_denied", false},
    {ERR_NOT_FOUND, 404, "invalid_request_error", "not_found", false},
    {ERR_ABORTED, 409, "invalid_request_error", "session_busy", true},
    {ERR_FAILED_PRECONDITION, 409, "invalid_request_error", "session_waiting", false},
    {ERR_TOO_LARGE, 413, "invalid_request_error", "request_too_large", false},
    {ERR_RESOURCE_EXHAUSTED, 429, "rate_limit_error", "rate_limit_exceeded", true},
    {ERR_CANCELLED, 499, "server_error", "cancelled", false},
    {ERR_INTERNAL, 500, "server_error", "internal_error", false},
    {ERR_DATA_LOSS, 500, "server_error", "internal_error", false},
    {ERR_UNAVAILABLE, 503, "server_error", "unavailable", true},
    {ERR_DEADLINE_EXCEEDED, 504, "server_error", "timeout", true},
};

static void each_code_has_its_status_type_and_name(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        struct api_failure error = api_failure_of_code(requests[i].code);
        assert_int_equal(error.status, requests[i].status);
        assert_str(error.type, requests[i].type);
        assert_str(error.code, requests[i].name);
        assert_int_equal(error.retry, requests[i].retry);
    }
}

static void a_run_that_fails_is_the_servers_fault_unless_it_says_otherwise(void **state) {
    (void)state;
    assert_int_equal(api_failure_of_run(ERR_INVALID_ARGUMENT, STR("X"), false).status, 500);
    assert_int_equal(
        api_failure_of_run(ERR_INVALID_ARGUMENT, STR("MODEL_CANNOT_CARRY"), false).status, 400);
    assert_int_equal(
        api_failure_of_run(ERR_INVALID_ARGUMENT, STR("UNKNOWN_CALL"), false).status, 400);
    assert_str(api_failure_of_run(ERR_INVALID_ARGUMENT, STR("SUPERSEDED"), false).code,
               "previous_response_superseded");
    struct api_failure error =
        api_failure_of_run(ERR_INVALID_ARGUMENT, STR("MODEL_CONTEXT"), false);
    assert_int_equal(error.status, 400);
    assert_str(error.code, "context_length_exceeded");
    assert_false(error.retry);
    assert_str(api_failure_of_run(ERR_RESOURCE_EXHAUSTED, STR("BUDGET"), false).code,
               "insufficient_quota");
    assert_int_equal(api_failure_of_run(ERR_CANCELLED, STR("X"), false).status, 499);
}

static void what_acted_is_not_to_be_repeated(void **state) {
    (void)state;
    assert_true(api_failure_of_run(ERR_UNAVAILABLE, STR("X"), false).retry);
    assert_false(api_failure_of_run(ERR_UNAVAILABLE, STR("X"), true).retry);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_code_has_its_status_type_and_name),
        cmocka_unit_test(a_run_that_fails_is_the_servers_fault_unless_it_says_otherwise),
        cmocka_unit_test(what_acted_is_not_to_be_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
