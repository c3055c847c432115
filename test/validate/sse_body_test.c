/* An event stream read for its checks: what is odd, and whether it ended well. */
#include "validate/sse_body.h"

#include "helper/assert_str.h"

static const struct {
    const char *name, *text;
    size_t count;
    const char *odd_line; /* NULL: none */
    bool cut;
} bodies[] = {
    {"nothing", "", 0, NULL, false},
    {"one event", "data: {\"delta\":\"a\"}\n\n", 1, NULL, false},
    {"the end", "data: [DONE]\n\n", 1, NULL, false},
    {"all fields", ": hi\nevent: step\nid: 1\nretry: 5\ndata: {}\n\n", 1, NULL, false},
    {"CR LF", "data: a\r\n\r\ndata: b\r\n\r\n", 2, NULL, false},
    {"CR", "data: a\r\rdata: b\r\r", 2, NULL, false},
    {"CR, cut", "data: a\r\rdata: b\r", 1, NULL, true},
    {"an odd line after CR", "data: a\rdelta: b\r\r", 1, "delta: b", false},
    {"an odd line after CR LF", "data: a\r\ndelta: b\r\n\r\n", 1, "delta: b", false},
    {"a byte order mark",
     "\xef\xbb\xbf"
     "data: a\n\n",
     1, NULL, false},
    {"a byte order mark in the middle",
     "data: a\n\n\xef\xbb\xbf"
     "data: b\n\n",
     1,
     "\xef\xbb\xbf"
     "data: b",
     false},
    {"an odd line", "data: a\ndelta: b\n\n", 1, "delta: b", false},
    {"an odd line without a colon", "hello\n\n", 0, "hello", false},
    {"a field without a colon", "data\n\n", 1, NULL, false},
    {"no blank line", "data: a\n", 0, NULL, true},
    {"no line end", "data: a", 0, NULL, true},
    {"a comment at the end", "data: a\n\n: bye\n", 1, NULL, true},
};

static void each_body_is_read_as_it_is(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        struct sse_body body;
        struct err e;
        assert_true(sse_body_read(str_from(bodies[i].text), &body, &e));
        bool odd = body.odd_line.at != NULL;
        if (body.count != bodies[i].count || body.cut != bodies[i].cut ||
            odd != (bodies[i].odd_line != NULL))
            fail_msg("%s: %zu events, cut %d, odd %d", bodies[i].name, body.count, body.cut,
                     odd);
        if (odd) assert_str(body.odd_line, bodies[i].odd_line);
        sse_body_done(&body);
    }
}

/* A stream that breaks off anywhere but between two events is cut; it has the events so far. */
static void a_stream_that_breaks_off_is_cut(void **state) {
    (void)state;
    struct str text =
        STR("event: step\ndata: {}\n\ndata: {\"delta\":\"x\"}\n\ndata: [DONE]\n\n");
    for (size_t len = 0; len <= text.len; len++) {
        struct str head = str_head(text, len);
        struct sse_body body;
        struct err e;
        assert_true(sse_body_read(head, &body, &e));
        bool whole = len == 0 || str_ends(head, STR("\n\n"));
        size_t events = 0;
        for (size_t at = 0; at + 1 < len; at++)
            events += text.at[at] == '\n' && text.at[at + 1] == '\n';
        assert_int_equal(body.cut, !whole);
        assert_int_equal(body.count, events);
        sse_body_done(&body);
    }
}

static void data_is_json_where_it_is(void **state) {
    (void)state;
    struct sse_body body;
    struct err e;
    struct str text = STR("data: {\"a\":1}\n\ndata: [DONE]\n\n");
    assert_true(sse_body_read(text, &body, &e));
    assert_int_equal(body.events[0].json.kind, JSON_OBJECT);
    assert_int_equal(body.events[1].json.kind, JSON_NONE);
    assert_str(body.events[1].data, "[DONE]");
    assert_str(body.events[1].type, "message");
    sse_body_done(&body);
}

static void more_events_than_the_limit_are_refused(void **state) {
    (void)state;
    struct sse_body body;
    struct err e;
    struct buf text;
    buf_init(&text, 4 * MIB);
    for (size_t i = 0; i <= SSE_BODY_EVENTS_MAX; i++) buf_append(&text, STR("data: 1\n\n"));
    assert_false(sse_body_read(buf_str(&text), &body, &e));
    assert_int_equal(e.code, ERR_TOO_LARGE);
    buf_done(&text);
}

static void bytes_that_are_no_utf8_are_found(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t valid;
    } texts[] = {{"data: \xc3\xa9\n\n", 10},    {"data: \xff\n\n", 6},
                 {"data: a\n\n\xc3(", 9},       {"data: \xe2\x82\n\n", 6},
                 {"data: \xed\xa0\x80\n\n", 6}, {"data: a\n\ndata: \xf0\x9f", 17}};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct sse_body body;
        struct err e;
        assert_true(sse_body_read(str_from(texts[i].text), &body, &e));
        assert_int_equal(body.valid, texts[i].valid);
        sse_body_done(&body);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_body_is_read_as_it_is),
        cmocka_unit_test(bytes_that_are_no_utf8_are_found),
        cmocka_unit_test(a_stream_that_breaks_off_is_cut),
        cmocka_unit_test(data_is_json_where_it_is),
        cmocka_unit_test(more_events_than_the_limit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
