/* The body of a refusal, as OpenAI's libraries read it. */
#include "contract/openai/api_error.h"

#include "helper/assert_str.h"

static void a_body_has_all_four_members(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, KIB);
    api_error_failure_body(
        &(struct route_failure){400, STR("INVALID_INPUT"), STR("no \"x\""), STR("\"n\"")},
        &out);
    assert_str(buf_str(&out),
               "{\"error\":{\"message\":\"no \\\"x\\\"\",\"type\":\"invalid_request_error\","
               "\"param\":\"n\",\"code\":\"invalid_input\"}}");
    buf_clear(&out);
    api_error_failure_body(&(struct route_failure){503, STR_EMPTY, STR("later"), STR_EMPTY},
                           &out);
    assert_str(buf_str(&out), "{\"error\":{\"message\":\"later\",\"type\":\"server_error\","
                              "\"param\":null,\"code\":null}}");
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_has_all_four_members),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
