#include "wire/jsonrpc.h"

#include "helper/assert_str.h"

static bool read(const char *text, struct jsonrpc *ret, struct err *e) {
    struct json value;
    assert_true(json_read(str_from(text), &value, e));
    return jsonrpc_read(value, ret, e);
}

static void each_kind_of_message_is_recognised_by_its_members(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum jsonrpc_kind kind;
    } cases[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", JSONRPC_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"m\",\"params\":{}}", JSONRPC_REQUEST},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"m\"}", JSONRPC_NOTIFICATION},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}", JSONRPC_RESULT},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-1,\"message\":\"\"}}",
         JSONRPC_ERROR},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1,\"message\":\"x\"}}",
         JSONRPC_ERROR},
        {"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":1,\"message\":\"x\"}}", JSONRPC_ERROR},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":null}", JSONRPC_RESULT},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null,\"error\":null,\"method\":null}",
         JSONRPC_RESULT},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null,\"error\":{\"code\":1,\"message\":"
         "\"x\"}}",
         JSONRPC_ERROR},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"result\":null,\"error\":null}",
         JSONRPC_REQUEST},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct jsonrpc message;
        struct err e;
        if (!read(cases[i].text, &message, &e)) fail_msg("%s: %s", cases[i].text, e.text);
        assert_int_equal(message.kind, cases[i].kind);
    }
}

static void a_malformed_message_is_refused_with_the_reason(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"[]", "JSON-RPC: expected an object, got an array"},
        {"{}", "JSON-RPC: a message does not say \"jsonrpc\":\"2.0\""},
        {"{\"jsonrpc\":2.0,\"method\":\"m\"}",
         "JSON-RPC: a message does not say \"jsonrpc\":\"2.0\""},
        {"{\"jsonrpc\":\"2.0\",\"id\":1}",
         "JSON-RPC: a message has one of method, result and error"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"result\":1}",
         "JSON-RPC: a message has one of method, result and error"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1,\"error\":{\"code\":1,\"message\":\"x\"}}",
         "JSON-RPC: a message has one of method, result and error"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":null}",
         "JSON-RPC: a message has one of method, result and error"},
        {"{\"jsonrpc\":\"2.0\",\"method\":5}",
         "JSON-RPC: the method is a number, not a string"},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":[]}",
         "JSON-RPC: the params are an array, not an object"},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"m\"}",
         "JSON-RPC: the id of a request is null"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"result\":1}",
         "JSON-RPC: the id of a result is a number"},
        {"{\"jsonrpc\":\"2.0\",\"result\":1}", "JSON-RPC: the id of a result is nothing"},
        {"{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{\"code\":1,\"message\":\"\"}}",
         "JSON-RPC: the id of an error is an object"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"message\":\"\"}}",
         "JSON-RPC: an error without a whole number as code"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1}}",
         "JSON-RPC: an error without a message"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"no\"}",
         "JSON-RPC: an error without a whole number as code"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct jsonrpc message;
        struct err e;
        assert_false(read(cases[i].text, &message, &e));
        assert_int_equal(e.code, ERR_MALFORMED);
        assert_str(err_text(&e), cases[i].why);
    }
}

static void an_answer_is_known_by_its_number(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool answers;
    } cases[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":1}", true},
        {"{\"jsonrpc\":\"2.0\",\"id\":7.0,\"result\":1}", true},
        {"{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":1,\"message\":\"\"}}", true},
        {"{\"jsonrpc\":\"2.0\",\"id\":8,\"result\":1}", false},
        {"{\"jsonrpc\":\"2.0\",\"id\":-7,\"result\":1}", false},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"7\",\"result\":1}", true}, /* a string by mistake */
        {"{\"jsonrpc\":\"2.0\",\"id\":\"07\",\"result\":1}", false},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"\",\"result\":1}", false},
        {"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}", false},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1,\"message\":\"\"}}", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct jsonrpc message;
        struct err e;
        assert_true(read(cases[i].text, &message, &e));
        assert_int_equal(jsonrpc_answers(&message, 7), cases[i].answers);
    }
}

static void what_was_to_be_an_answer_is_known_by_its_id_though_it_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *id;
    } cases[] = {
        {"{\"id\":7,\"error\":\"no\"}", "7"},
        {"{\"id\":7,\"result\":1,\"error\":{},\"method\":null}", "7"},
        {"{\"id\":7,\"method\":\"m\"}", ""},
        {"{\"result\":1}", ""},
        {"[7]", ""},
        {"7", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct json value;
        struct err e;
        assert_true(json_read(str_from(cases[i].text), &value, &e));
        assert_str(jsonrpc_refused_id(value).raw, cases[i].id);
    }
}

static void messages_are_written_as_they_are_read(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, KIB);
    jsonrpc_write_request(&out, 7, "tools/list", STR("{\"cursor\":\"a\"}"));
    assert_str(buf_str(&out), "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\","
                              "\"params\":{\"cursor\":\"a\"}}");
    buf_clear(&out);
    jsonrpc_write_notification(&out, "notifications/initialized", STR_EMPTY);
    assert_str(buf_str(&out), "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    buf_clear(&out);
    jsonrpc_write_result(&out, STR("\"a\""), STR("{}"));
    assert_str(buf_str(&out), "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{}}");
    buf_clear(&out);
    jsonrpc_write_error(&out, STR("1"), JSONRPC_METHOD_NOT_FOUND, STR("no \"x\""));
    assert_str(buf_str(&out), "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,"
                              "\"message\":\"no \\\"x\\\"\"}}");
    buf_done(&out);
}

struct heard {
    struct buf ids;
    size_t max;
};

static bool hear(const struct jsonrpc *message, void *ctx) {
    struct heard *heard = ctx;
    buf_append(&heard->ids, message->id.raw);
    return heard->ids.len < heard->max;
}

static void a_batch_is_passed_message_by_message_until_it_is_enough(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t max;
        const char *ids;
    } cases[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}", 9, "1"},
        {"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"},7,{},"
         "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":1}]",
         9, "12"},
        {"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"},"
         "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":1}]",
         1, "1"},
        {"[]", 9, ""},
        {"[[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}]]", 9, ""},
        {"{\"id\":1", 9, ""},
        {"", 9, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct heard heard = {.max = cases[i].max};
        buf_init(&heard.ids, KIB);
        struct buf room;
        buf_init(&room, KIB);
        jsonrpc_each(str_from(cases[i].text), &room, hear, &heard);
        buf_done(&room);
        assert_str(buf_str(&heard.ids), cases[i].ids);
        buf_done(&heard.ids);
    }
}

/* A call that is answered with what is no JSON would wait for its time limit. */
static void the_call_that_an_unreadable_line_answers_is_known_where_it_is_sure(void **state) {
    static const char *const rows[][2] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"x\":\"\\q\"}}", "7"},
        {"{ \"id\" : \"7\" , \"result\":{", "\"7\""},
        {"{\"id\":7,\"error\":oops}", "7"},
        {"{\"result\":{\"x\":tru},\"jsonrpc\":\"2.0\",\"id\":7}\n", "7"},
        /* not its own id, or not an answer */
        {"{\"result\":{\"id\":5,\"x\":tru}", ""},
        {"{\"result\":{\"x\":tru,\"id\":5}}", ""},
        {"{\"result\":{\"jsonrpc\":\"2.0\",\"id\":5}}", ""},
        {"{\"id\":7,\"method\":\"ping\",\"params\":{\"result\":tru}}", ""},
        {"{\"id\":7,\"x\":tru}", ""},
        {"{\"id\":", ""},
        {"{\"id\":\"7,\"result\"", ""},
        {"\"id\":7,\"result\"", ""},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_str(jsonrpc_unread_id(str_from(rows[i][0])).raw, rows[i][1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_of_message_is_recognised_by_its_members),
        cmocka_unit_test(a_malformed_message_is_refused_with_the_reason),
        cmocka_unit_test(an_answer_is_known_by_its_number),
        cmocka_unit_test(what_was_to_be_an_answer_is_known_by_its_id_though_it_is_refused),
        cmocka_unit_test(messages_are_written_as_they_are_read),
        cmocka_unit_test(the_call_that_an_unreadable_line_answers_is_known_where_it_is_sure),
        cmocka_unit_test(a_batch_is_passed_message_by_message_until_it_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
