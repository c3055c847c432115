/* A message of a client is read, or refused with an id that its sender knows. */
#include "toolserver/request.h"

#include "helper/assert_str.h"
#include "toolserver/cursor.h"

static bool reads(const char *text, struct toolserver_request *ret) {
    struct json value;
    struct err e;
    assert_true(json_read(str_from(text), &value, &e));
    return toolserver_request_read(value, ret, &e);
}

#define MESSAGE(id, method) "{\"jsonrpc\":\"2.0\"," id "\"method\":\"" method "\"}"

static void each_method_is_known(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum toolserver_method method;
    } known[] = {
        {MESSAGE("\"id\":1,", "initialize"), TOOLSERVER_INITIALIZE},
        {MESSAGE("\"id\":1,", "server/discover"), TOOLSERVER_DISCOVER},
        {MESSAGE("\"id\":1,", "ping"), TOOLSERVER_PING},
        {MESSAGE("\"id\":\"a\",", "tools/list"), TOOLSERVER_LIST},
        {MESSAGE("\"id\":1,", "tools/call"), TOOLSERVER_CALL},
        {MESSAGE("\"id\":1,", "resources/list"), TOOLSERVER_UNKNOWN},
        {MESSAGE("\"id\":1,", "notifications/cancelled"), TOOLSERVER_UNKNOWN},
        {MESSAGE("", "notifications/cancelled"), TOOLSERVER_CANCELLED},
        {MESSAGE("", "tools/call"), TOOLSERVER_NOTE},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", TOOLSERVER_NOTE},
    };
    struct toolserver_request request;
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (!reads(known[i].text, &request)) fail_msg("%s", known[i].text);
        assert_int_equal(request.method, known[i].method);
    }
}

static void a_call_says_what_it_wants(void **state) {
    (void)state;
    struct toolserver_request request;
    assert_true(reads("{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{"
                      "\"name\":\"x\",\"_meta\":{\"progressToken\":\"t\","
                      "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}}",
                      &request));
    assert_str(request.id.raw, "5");
    assert_str(request.token.raw, "\"t\"");
    assert_true(json_is(request.version, STR("2026-07-28")));
    struct err e;
    assert_false(toolserver_request_check_meta(&request, &e));
    assert_true(str_find(err_text(&e), STR("clientCapabilities")) < err_text(&e).len);
}

static void a_token_that_is_neither_text_nor_whole_is_none(void **state) {
    (void)state;
    struct toolserver_request request;
    assert_true(reads("{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\",\"params\":{"
                      "\"_meta\":{\"progressToken\":[1]}}}",
                      &request));
    assert_int_equal(request.token.kind, JSON_NONE);
}

static void a_key_given_twice_is_refused(void **state) {
    (void)state;
    struct toolserver_request request;
    assert_false(reads("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"method\":\"ping\"}",
                       &request));
    assert_false(reads("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
                       "\"name\":\"a\",\"name\":\"b\"}}",
                       &request));
}

static void an_id_that_no_cursor_holds_is_refused(void **state) {
    (void)state;
    struct toolserver_request request;
    struct json value;
    struct err e;
    struct buf text;
    for (size_t len = TOOLSERVER_ID_MAX_BYTES - 2; len <= TOOLSERVER_ID_MAX_BYTES; len++) {
        buf_init(&text, 4 * KIB);
        buf_append(&text, STR("{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":\""));
        for (size_t i = 0; i < len; i++) buf_append_byte(&text, 'x');
        buf_append(&text, STR("\"}"));
        assert_true(json_read(buf_str(&text), &value, &e));
        bool fits = len + 2 <= TOOLSERVER_ID_MAX_BYTES;
        assert_int_equal(toolserver_request_read(value, &request, &e), fits);
        assert_int_equal(str_equal(toolserver_request_id(value), STR("null")), !fits);
        buf_done(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_method_is_known),
        cmocka_unit_test(a_call_says_what_it_wants),
        cmocka_unit_test(a_token_that_is_neither_text_nor_whole_is_none),
        cmocka_unit_test(a_key_given_twice_is_refused),
        cmocka_unit_test(an_id_that_no_cursor_holds_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
