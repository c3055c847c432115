#include "sidecar/proxy_head.h"

#include "helper/assert_str.h"

static void take(struct proxy_response *response, const char *const *lines) {
    bool complete = false;
    for (; *lines; lines++) {
        assert_false(complete);
        complete = proxy_response_line(response, str_from(*lines));
    }
    assert_true(complete);
}

static void fields_of_one_connection_do_not_pass(void **state) {
    (void)state;
    static const char *const lines[] = {"HTTP/1.1 200",
                                        "Content-Type: text/x",
                                        "Connection: x-a, X-B ,keep-alive",
                                        "X-A: 1",
                                        "x-b: 2",
                                        "Keep-Alive: 5",
                                        "Upgrade: x",
                                        "TE: x",
                                        "Trailer: x",
                                        "X-Trace-Id: agent",
                                        "X-Latency-Ms: 1",
                                        "X-C: 3",
                                        "",
                                        NULL};
    struct proxy_response response;
    proxy_response_init(&response);
    take(&response, lines);
    assert_int_equal(response.status, 200);
    assert_int_equal(response.count, 2);
    assert_str(proxy_response_find(&response, STR("content-type")), "text/x");
    assert_str(proxy_response_find(&response, STR("x-c")), "3");
    proxy_response_done(&response);
}

static void an_informational_head_is_discarded(void **state) {
    (void)state;
    static const char *const lines[] = {"HTTP/1.1 103", "Link: x", "",  "HTTP/1.1 404",
                                        "X-A: 1",       "",        NULL};
    struct proxy_response response;
    proxy_response_init(&response);
    take(&response, lines);
    assert_int_equal(response.status, 404);
    assert_int_equal(response.count, 1);
    proxy_response_done(&response);
}

static void too_many_fields_are_noticed(void **state) {
    (void)state;
    struct proxy_response response;
    proxy_response_init(&response);
    assert_false(proxy_response_line(&response, STR("HTTP/1.1 200")));
    for (size_t i = 0; i < PROXY_FIELDS_MAX; i++)
        assert_false(proxy_response_line(&response, STR("X-A: 1")));
    assert_false(response.overflows);
    assert_false(proxy_response_line(&response, STR("X-A: 1")));
    assert_true(response.overflows);
    proxy_response_done(&response);
}

static void a_field_is_replaced_or_removed(void **state) {
    (void)state;
    static const char *const lines[] = {"HTTP/1.1 200", "A: 1", "B: 2", "a: 3", "", NULL};
    struct proxy_response response;
    proxy_response_init(&response);
    take(&response, lines);
    assert_true(proxy_response_set(&response, STR("a"), STR("9")));
    assert_int_equal(response.count, 2);
    assert_str(proxy_response_find(&response, STR("a")), "9");
    assert_true(proxy_response_set(&response, STR("b"), STR("")));
    assert_int_equal(response.count, 1);
    proxy_response_done(&response);
}

static void types_are_compared_without_their_parameters(void **state) {
    (void)state;
    assert_true(proxy_is_json(STR("Application/JSON; charset=utf-8")));
    assert_true(proxy_is_json(STR("application/problem+json")));
    assert_false(proxy_is_json(STR("application/json-seq")));
    assert_false(proxy_is_json(STR("")));
    assert_true(
        proxy_is_type(STR("text/event-stream;charset=utf-8"), STR("text/event-stream")));
    assert_false(proxy_is_type(STR("text/event-stream2"), STR("text/event-stream")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_of_one_connection_do_not_pass),
        cmocka_unit_test(an_informational_head_is_discarded),
        cmocka_unit_test(too_many_fields_are_noticed),
        cmocka_unit_test(a_field_is_replaced_or_removed),
        cmocka_unit_test(types_are_compared_without_their_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
