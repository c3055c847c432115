#include "tool/web_fetch.h"

#include "fixture.h"

#include "fake/http_fake.h"

#include "base/utf8.h"

#define PAGE "{\"url\":\"https://example.org/p\"}"

struct web {
    struct stage stage;
    struct http_pool *pool;
};

static void web_init(struct web *web) {
    web->pool = http_pool_new();
    stage_init(&web->stage, web_fetch_tool_new(web->pool));
}

static void web_done(struct web *web) {
    assert_int_equal(fake_http_calls(web->pool), 0);
    stage_done(&web->stage);
    http_pool_free(web->pool);
}

/* One call, whose server answers with this. */
static void answer(struct web *web, const char *args, unsigned status, const char *type,
                   struct str body) {
    stage_call(&web->stage, args);
    assert_int_equal(fake_http_calls(web->pool), 1);
    struct http_call *call = fake_http_call(web->pool, 0);
    bool out = fake_http_head(call, status, type);
    if (out && body.len) out = fake_http_body(call, body);
    if (out) fake_http_end(call);
    loop_turn(web->stage.loop);
}

static void says(const char *args, unsigned status, const char *type, struct str body,
                 bool failed, const char *expected) {
    struct web web;
    web_init(&web);
    answer(&web, args, status, type, body);
    stage_said(&web.stage, failed, expected);
    web_done(&web);
}

static void a_page_is_reduced_to_its_main_text(void **state) {
    (void)state;
    says(PAGE, 200, "text/html; charset=utf-8",
         STR("<title>Tea</title><nav>Home</nav><h1>Tea</h1><p>hot &amp; \"wet\"</p>"), false,
         "{\"url\":\"https://example.org/p\",\"body\":\"# Tea\\n\\nhot & \\\"wet\\\"\"}");
    says(PAGE, 200, "application/xhtml+xml", STR("<p>x</p>"), false,
         "{\"url\":\"https://example.org/p\",\"body\":\"x\"}");
}

static void other_text_stays_as_it_is(void **state) {
    (void)state;
    static const char *const types[] = {"text/plain",
                                        "application/json",
                                        "text/csv",
                                        "application/problem+json",
                                        "application/atom+xml",
                                        "APPLICATION/XML; charset=UTF-8",
                                        ""};
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        says(PAGE, 200, types[i], STR("a  <b>\n"), false,
             "{\"url\":\"https://example.org/p\",\"body\":\"a  <b>\\n\"}");
    says(PAGE, 200, "", STR(" <p>no type</p>"), false,
         "{\"url\":\"https://example.org/p\",\"body\":\"no type\"}");
    says(PAGE, 200, "text/plain", STR_EMPTY, false,
         "{\"url\":\"https://example.org/p\",\"body\":\"\"}");
}

static void bytes_that_are_not_text_are_not_read(void **state) {
    (void)state;
    struct web web;
    web_init(&web);
    answer(&web, PAGE, 200, "image/png", STR("\x89PNG"));
    stage_said(&web.stage, true, "the content is not text, it is image/png");
    assert_int_equal(fake_http_cancels(web.pool), 1);
    web_done(&web);
    says(PAGE, 200, "", STR("a\0b"), true, "the content is not text, and has no type");
}

static void a_request_is_careful(void **state) {
    (void)state;
    struct web web;
    web_init(&web);
    struct tool_call *call = stage_call(&web.stage, PAGE);
    const struct http_request *request = fake_http_request(fake_http_call(web.pool, 0));
    assert_str(request->method, "GET");
    assert_int_equal(request->reach, HTTP_PUBLIC_ONLY);
    assert_int_equal(request->redirects_max, 5);
    assert_int_equal(request->total_ms, 10000);
    assert_in_range(request->body_max_bytes, 200 * KIB, 300 * KIB);
    assert_true(
        str_starts(fake_http_header(fake_http_call(web.pool, 0), "user-agent"), STR("weir")));
    web.stage.tool->kind->cancel(call);
    call = stage_call(&web.stage, "{\"url\":\"http://a/\",\"timeout_seconds\":900}");
    assert_int_equal(fake_http_request(fake_http_call(web.pool, 0))->total_ms, 60000);
    assert_in_range(web.stage.tool->timeout_ms, 60000, 70000); /* so it can take so long */
    web.stage.tool->kind->cancel(call);
    web_done(&web);
}

static void an_address_that_must_not_be_fetched_is_refused_without_a_request(void **state) {
    (void)state;
    static const struct {
        const char *args, *why;
    } cases[] = {
        {"{\"url\":\"ftp://example.org/\"}",
         "'url' must begin with http:// or https://, nothing else is fetched"},
        {"{\"url\":\"file:///etc/passwd\"}",
         "'url' must begin with http:// or https://, nothing else is fetched"},
        {"{\"url\":\"example.org\"}",
         "'url' must begin with http:// or https://, nothing else is fetched"},
        {"{\"url\":\"https://me:secret@example.org/\"}",
         "'url' names a user or a password; such addresses are not fetched"},
        {"{\"url\":\"https://me@example.org\"}",
         "'url' names a user or a password; such addresses are not fetched"},
        {"{\"url\":\"https://a/b c\"}", "'url' has a space or a control character in it; write "
                                        "%20 for a space"},
        {"{\"url\":\"https://a/\\r\\nHost: b\"}",
         "'url' has a space or a control character in it; write %20 for a space"},
        {"{\"url\":5}", "'url' must be a string"},
        {"{}", "'url' must be a string"},
        {"[]", "the arguments must be an object, not an array"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct web web;
        web_init(&web);
        stage_call(&web.stage, cases[i].args);
        assert_int_equal(fake_http_calls_ever(web.pool), 0);
        loop_advance(web.stage.loop, 0);
        stage_said(&web.stage, true, cases[i].why);
        web_done(&web);
    }
}

static void a_refusal_is_reported_with_the_beginning_of_its_body(void **state) {
    (void)state;
    says(PAGE, 404, "text/html", STR("no such page"), true,
         "the server answered 404: no such page");
    says(PAGE, 500, "image/png", STR_EMPTY, true, "the server answered 500");
    says(PAGE, 302, "text/html", STR("there"), true,
         "the server answered 302, a redirect that leads nowhere or too far");

    struct web web;
    struct buf body;
    buf_init(&body, KIB);
    buf_append(&body, STR("x"));
    while (body.len < 900) buf_append(&body, STR("\xC3\xA9"));
    web_init(&web);
    answer(&web, PAGE, 503, "text/plain", buf_str(&body));
    assert_true(web.stage.failed && utf8_valid(buf_str(&web.stage.said)));
    assert_int_equal(web.stage.said.len, strlen("the server answered 503: ") + 255);
    web_done(&web);
    buf_done(&body);
}

static void a_failure_of_the_client_fails_the_call(void **state) {
    (void)state;
    struct web web;
    web_init(&web);
    stage_call(&web.stage, PAGE);
    fake_http_fail(fake_http_call(web.pool, 0), ERR_PERMISSION_DENIED, HTTP_CONNECTING);
    assert_true(web.stage.failed && web.stage.said.len > 0);
    web_done(&web);
}

static void a_long_body_is_cut_and_marked(void **state) {
    (void)state;
    says("{\"url\":\"http://a/\",\"max_bytes\":3}", 200, "text/plain", STR("abcdef"), false,
         "{\"url\":\"http://a/\",\"body\":\"abc\",\"truncated\":true}");
    says("{\"url\":\"http://a/\",\"max_bytes\":3}", 200, "text/plain", STR("ab\xC3\xA9z"),
         false, "{\"url\":\"http://a/\",\"body\":\"ab\",\"truncated\":true}");
    says("{\"url\":\"http://a/\",\"max_bytes\":3}", 200, "text/plain", STR("abc"), false,
         "{\"url\":\"http://a/\",\"body\":\"abc\"}");
}

static void a_body_without_end_is_left_after_what_is_kept(void **state) {
    (void)state;
    struct web web;
    web_init(&web);
    stage_call(&web.stage, PAGE);
    struct http_call *call = fake_http_call(web.pool, 0);
    size_t sent = 0;
    char bytes[16 * 1024];
    memset(bytes, 'x', sizeof bytes);
    bool out = fake_http_head(call, 200, "text/plain");
    while (out) {
        out = fake_http_body(call, str_of(bytes, sizeof bytes));
        sent += sizeof bytes;
        assert_true(sent <= 256 * KIB);
    }
    loop_turn(web.stage.loop);
    assert_int_equal(web.stage.answers, 1);
    assert_false(web.stage.failed);
    assert_int_equal(web.stage.said.len, 30000);
    assert_true(str_ends(buf_str(&web.stage.said), STR("x\",\"truncated\":true}")));
    web_done(&web);
}

static void a_body_that_the_client_found_too_large_is_what_came_so_far(void **state) {
    (void)state;
    struct web web;
    web_init(&web);
    stage_call(&web.stage, PAGE);
    struct http_call *call = fake_http_call(web.pool, 0);
    assert_true(fake_http_head(call, 200, "text/plain"));
    assert_true(fake_http_body(call, STR("so far")));
    fake_http_fail(call, ERR_TOO_LARGE, HTTP_READING);
    loop_turn(web.stage.loop);
    stage_said(&web.stage, false,
               "{\"url\":\"https://example.org/p\",\"body\":\"so far\",\"truncated\":true}");
    web_done(&web);
}

static void a_result_is_bounded_however_it_is_escaped(void **state) {
    (void)state;
    static const char *const units[] = {"\x01", "\"", "\xF0\x9F\x98\x80", "\xFF", "ab\n"};
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        struct web web;
        struct err e;
        struct json value;
        struct buf body;
        buf_init(&body, 60000);
        while (buf_append(&body, str_from(units[i]))) continue;
        web_init(&web);
        answer(&web, PAGE, 200, "text/plain", buf_str(&body));
        assert_false(web.stage.failed);
        assert_in_range(web.stage.said.len, 29900, 30000);
        assert_true(json_read(buf_str(&web.stage.said), &value, &e));
        assert_true(str_ends(buf_str(&web.stage.said), STR(",\"truncated\":true}")));
        web_done(&web);
        buf_done(&body);
    }
}

static void other_alphabets_are_read_by_their_names(void **state) {
    (void)state;
    says("{\"url\":\"http://a/\"}", 200, "text/plain; charset=ISO-8859-1", STR("caf\xE9 \x80"),
         false, "{\"url\":\"http://a/\",\"body\":\"caf\xC3\xA9 \xE2\x82\xAC\"}");
    says("{\"url\":\"http://a/\"}", 200, "text/html",
         STR("<meta charset='windows-1252'><p>caf\xE9</p>"), false,
         "{\"url\":\"http://a/\",\"body\":\"caf\xC3\xA9\"}");
    says("{\"url\":\"http://a/\"}", 200, "text/plain; charset=martian", STR("caf\xE9"), false,
         "{\"url\":\"http://a/\",\"body\":\"caf\xEF\xBF\xBD\"}");
}

static void a_page_that_is_all_nesting_is_an_error_or_text_in_time(void **state) {
    (void)state;
    static const char *const parts[] = {"<div>", "<table>"};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        struct web web;
        struct buf body;
        buf_init(&body, 200 * KIB);
        while (buf_append(&body, str_from(parts[i]))) continue;
        web_init(&web);
        answer(&web, PAGE, 200, "text/html", buf_str(&body));
        assert_int_equal(web.stage.answers, 1);
        web_done(&web);
        buf_done(&body);
    }
}

static void a_call_may_be_cancelled_at_each_moment(void **state) {
    (void)state;
    for (int moment = 0; moment < 4; moment++) {
        struct web web;
        web_init(&web);
        struct tool_call *call = stage_call(&web.stage, PAGE);
        struct http_call *out = fake_http_call(web.pool, 0);
        if (moment >= 1) assert_true(fake_http_head(out, 200, "text/html"));
        if (moment >= 2) assert_true(fake_http_body(out, STR("<p>x</p>")));
        if (moment >= 3) fake_http_end(out);
        web.stage.tool->kind->cancel(call);
        assert_int_equal(fake_http_cancels(web.pool), moment < 3);
        loop_advance(web.stage.loop, 100000);
        assert_int_equal(web.stage.answers, 0);
        web_done(&web);
    }
    struct web web;
    web_init(&web);
    web.stage.tool->kind->cancel(stage_call(&web.stage, "{}"));
    loop_advance(web.stage.loop, 100000);
    assert_int_equal(web.stage.answers, 0);
    web_done(&web);
}

struct reading {
    struct tool *tool;
    struct tool_call *call;
};

static void let_go(void *ctx) {
    struct reading *reading = ctx;
    reading->tool->kind->cancel(reading->call);
}

static void end_loop(void *ctx) {
    loop_stop(ctx);
}

/* On a real loop the page is read on another thread, and the tool may go before it is done. */
static void a_call_that_is_being_read_is_let_go(void **state) {
    (void)state;
    struct http_pool *pool = http_pool_new();
    struct tool *tool = web_fetch_tool_new(pool);
    struct loop *loop = loop_new();
    struct stage stage = {.loop = loop, .tool = tool};
    struct buf body;
    buf_init(&stage.said, MIB);
    buf_init(&body, 200 * KIB);
    while (buf_append(&body, STR("<div>"))) continue;
    struct tool_call *call = stage_call(&stage, PAGE);
    struct http_call *out = fake_http_call(pool, 0);
    assert_true(fake_http_head(out, 200, "text/html"));
    assert_true(fake_http_body(out, buf_str(&body)));
    fake_http_end(out);

    struct timer soon, later; /* let the job begin; and let it come back */
    struct reading reading = {tool, call};
    timer_init(&soon, loop, let_go, &reading);
    timer_init(&later, loop, end_loop, loop);
    timer_start(&soon, 20);
    timer_start(&later, 300);
    loop_run(loop);
    assert_int_equal(stage.answers, 0);

    buf_done(&body);
    buf_done(&stage.said);
    tool_free(tool);
    loop_free(loop);
    http_pool_free(pool);
}

static void the_schema_knows_its_arguments(void **state) {
    (void)state;
    struct web web;
    web_init(&web);
    assert_true(stage_accepts(&web.stage, PAGE));
    assert_true(stage_accepts(&web.stage, "{\"url\":\"x\",\"description\":\"to look\","
                                          "\"max_bytes\":5,\"timeout_seconds\":5}"));
    assert_false(stage_accepts(&web.stage, "{}"));
    assert_false(stage_accepts(&web.stage, "{\"url\":5}"));
    assert_false(stage_accepts(&web.stage, "{\"url\":\"x\",\"max_bytes\":0}"));
    assert_false(stage_accepts(&web.stage, "{\"url\":\"x\",\"other\":1}"));
    web_done(&web);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_is_reduced_to_its_main_text),
        cmocka_unit_test(other_text_stays_as_it_is),
        cmocka_unit_test(bytes_that_are_not_text_are_not_read),
        cmocka_unit_test(a_request_is_careful),
        cmocka_unit_test(an_address_that_must_not_be_fetched_is_refused_without_a_request),
        cmocka_unit_test(a_refusal_is_reported_with_the_beginning_of_its_body),
        cmocka_unit_test(a_failure_of_the_client_fails_the_call),
        cmocka_unit_test(a_long_body_is_cut_and_marked),
        cmocka_unit_test(a_body_without_end_is_left_after_what_is_kept),
        cmocka_unit_test(a_body_that_the_client_found_too_large_is_what_came_so_far),
        cmocka_unit_test(a_result_is_bounded_however_it_is_escaped),
        cmocka_unit_test(other_alphabets_are_read_by_their_names),
        cmocka_unit_test(a_page_that_is_all_nesting_is_an_error_or_text_in_time),
        cmocka_unit_test(a_call_may_be_cancelled_at_each_moment),
        cmocka_unit_test(a_call_that_is_being_read_is_let_go),
        cmocka_unit_test(the_schema_knows_its_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
