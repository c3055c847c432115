#include "tool/web_search.h"

#include "fixture.h"

#include "fake/http_fake.h"

#include "base/utf8.h"

#define ASK "{\"query\":\"green tea\"}"

struct web {
    struct stage stage;
    struct http_pool *pool;
};

static void web_init(struct web *web, struct web_search_options options) {
    struct err e;
    web->pool = http_pool_new();
    options.pool = web->pool;
    assert_true(web_search_check(&options, &e));
    stage_init(&web->stage, web_search_tool_new(&options));
}

static void searxng_init(struct web *web) {
    web_init(web,
             (struct web_search_options){.backend = STR("searxng"),
                                         .base_url = STR("http://me:secret@search:8888/")});
}

static void web_done(struct web *web) {
    assert_int_equal(fake_http_calls(web->pool), 0);
    stage_done(&web->stage);
    http_pool_free(web->pool);
}

static void answer(struct web *web, const char *args, unsigned status, struct str body) {
    stage_call(&web->stage, args);
    struct http_call *call = fake_http_call(web->pool, 0);
    bool out = fake_http_head(call, status, "application/json");
    if (out && body.len) out = fake_http_body(call, body);
    if (out) fake_http_end(call);
    loop_turn(web->stage.loop);
}

static void a_searxng_instance_is_asked_as_the_operator_set_it(void **state) {
    (void)state;
    struct web web;
    searxng_init(&web);
    struct tool_call *call = stage_call(&web.stage, "{\"query\":\" caf\xC3\xA9 & 100% \"}");
    const struct http_request *request = fake_http_request(fake_http_call(web.pool, 0));
    assert_str(request->method, "GET");
    assert_str(request->url, "http://me:secret@search:8888/search?format=json&safesearch=0&"
                             "language=en&q=caf%C3%A9%20%26%20100%25");
    assert_int_equal(request->reach, HTTP_ANYWHERE);
    assert_int_equal(request->total_ms, 0); /* the turn cuts it */
    assert_int_equal(web.stage.tool->timeout_ms, 10000);
    assert_in_range(request->body_max_bytes, 4 * MIB, 5 * MIB);
    web.stage.tool->kind->cancel(call);
    web_done(&web);
}

static void brave_is_asked_with_its_key_in_a_header(void **state) {
    (void)state;
    struct web web;
    web_init(&web, (struct web_search_options){.backend = STR("brave"), .key = STR("k-1")});
    struct tool_call *call = stage_call(&web.stage, "{\"query\":\"tea\",\"max_results\":99}");
    struct http_call *out = fake_http_call(web.pool, 0);
    assert_str(fake_http_request(out)->url,
               "https://api.search.brave.com/res/v1/web/search?safesearch=off&"
               "text_decorations=false&count=15&q=tea");
    assert_str(fake_http_header(out, "X-Subscription-Token"), "k-1");
    web.stage.tool->kind->cancel(call);

    answer(&web, ASK, 200,
           STR("{\"web\":{\"results\":[{\"title\":\"T\",\"url\":\"http://t/\","
               "\"description\":\"D\"}]}}"));
    stage_said(&web.stage, false,
               "{\"query\":\"green tea\",\"results\":[{\"title\":\"T\",\"url\":\"http://t/\","
               "\"snippet\":\"D\",\"engine\":\"brave\"}]}");
    web_done(&web);
}

static void rows_without_title_or_url_are_dropped(void **state) {
    (void)state;
    struct web web;
    searxng_init(&web);
    answer(
        &web, ASK, 200,
        STR("{\"results\":[{\"title\":\"A\"},{\"url\":\"http://b/\"},{\"title\":\" \",\"url\":"
            "\"http://c/\"},5,null,{\"title\":7,\"url\":\"http://d/\"},"
            "{\"title\":\"E\",\"url\":\"http://e/\",\"content\":\"x\",\"engine\":\"ddg\"},"
            "{\"title\":\"F\",\"url\":\"http://f/\",\"content\":null}]}"));
    stage_said(&web.stage, false,
               "{\"query\":\"green tea\",\"results\":["
               "{\"title\":\"E\",\"url\":\"http://e/\",\"snippet\":\"x\",\"engine\":\"ddg\"},"
               "{\"title\":\"F\",\"url\":\"http://f/\",\"snippet\":\"\",\"engine\":\"\"}]}");
    web_done(&web);
}

static size_t rows_for(const char *args, size_t snippet_bytes) {
    struct web web;
    struct err e;
    struct json result;
    struct buf body;
    buf_init(&body, 4 * MIB);
    buf_append(&body, STR("{\"results\":["));
    for (int i = 0; i < 40; i++) {
        buf_printf(&body, "%s{\"title\":\"t\",\"url\":\"http://x/%d\",\"content\":\"",
                   i ? "," : "", i);
        for (size_t n = 0; n < snippet_bytes; n++) buf_append(&body, STR("\xC3\xA9"));
        buf_append(&body, STR("\"}"));
    }
    buf_append(&body, STR("]}"));
    searxng_init(&web);
    answer(&web, args, 200, buf_str(&body));
    assert_false(web.stage.failed);
    assert_true(web.stage.said.len <= 30000 && utf8_valid(buf_str(&web.stage.said)));
    assert_true(json_read(buf_str(&web.stage.said), &result, &e));
    size_t rows = json_count(json_find(result, STR("results")));
    web_done(&web);
    buf_done(&body);
    return rows;
}

static void five_rows_are_returned_and_fifteen_at_most(void **state) {
    (void)state;
    assert_int_equal(rows_for(ASK, 1), 5);
    assert_int_equal(rows_for("{\"query\":\"q\",\"max_results\":2}", 1), 2);
    assert_int_equal(rows_for("{\"query\":\"q\",\"max_results\":15}", 10000), 15);
    assert_int_equal(rows_for("{\"query\":\"q\",\"max_results\":1000}", 1), 15);
}

static void a_search_that_finds_nothing_is_no_error(void **state) {
    (void)state;
    struct web web;
    searxng_init(&web);
    answer(&web, ASK, 200, STR("{\"results\":[]}"));
    stage_said(&web.stage, false, "{\"query\":\"green tea\",\"results\":[]}");
    answer(&web, ASK, 200, STR("{}"));
    stage_said(&web.stage, false, "{\"query\":\"green tea\",\"results\":[]}");
    web_done(&web);
}

static void a_malformed_answer_is_an_error_whatever_is_cut_off(void **state) {
    (void)state;
    struct str whole = STR("{\"results\":[{\"title\":\"A\",\"url\":\"http://a/\"}]}");
    static const char *const others[] = {"<html>secret</html>", "[]", "5", "{\"results\":{}}"};
    struct web web;
    searxng_init(&web);
    for (size_t cut = 0; cut < whole.len; cut++) {
        answer(&web, ASK, 200, str_head(whole, cut));
        stage_said(&web.stage, true, "the search backend's answer is malformed");
    }
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        answer(&web, ASK, 200, str_from(others[i]));
        stage_said(&web.stage, true, "the search backend's answer is malformed");
    }
    web_done(&web);
}

static void no_error_shows_the_address_or_its_password(void **state) {
    (void)state;
    static const enum err_code codes[] = {ERR_UNAVAILABLE, ERR_DEADLINE_EXCEEDED,
                                          ERR_PERMISSION_DENIED};
    struct web web;
    searxng_init(&web);
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        stage_call(&web.stage, ASK);
        fake_http_fail(fake_http_call(web.pool, 0), codes[i], HTTP_CONNECTING);
        stage_said(&web.stage, true,
                   codes[i] == ERR_DEADLINE_EXCEEDED
                       ? "the search backend did not answer in time"
                       : "the search backend cannot be reached");
    }
    answer(&web, ASK, 403, STR("http://me:secret@search:8888/ is forbidden"));
    stage_said(&web.stage, true,
               "the search backend answered 403; a SearXNG instance must allow the format json "
               "in its settings");
    answer(&web, ASK, 502, STR_EMPTY);
    stage_said(&web.stage, true, "the search backend answered 502; try again later");
    web_done(&web);
}

static void an_answer_that_is_too_large_is_an_error(void **state) {
    (void)state;
    struct web web;
    struct buf body;
    buf_init(&body, 5 * MIB);
    buf_append(&body, STR("{\"results\":["));
    while (body.len <= 4 * MIB) buf_append(&body, STR("                                "));
    searxng_init(&web);
    answer(&web, ASK, 200, buf_str(&body));
    stage_said(&web.stage, true, "the search backend's answer is larger than 4194304 bytes");
    web_done(&web);
    buf_done(&body);
}

static void arguments_that_say_nothing_are_refused_without_a_request(void **state) {
    (void)state;
    struct web web;
    searxng_init(&web);
    stage_call(&web.stage, "{\"query\":\"  \"}");
    loop_advance(web.stage.loop, 0);
    stage_said(&web.stage, true, "'query' is empty; say what to search for");
    stage_call(&web.stage, "{}");
    loop_advance(web.stage.loop, 0);
    stage_said(&web.stage, true, "'query' must be a string");
    assert_int_equal(fake_http_calls_ever(web.pool), 0);
    assert_true(stage_accepts(&web.stage, "{\"query\":\"q\",\"description\":\"d\"}"));
    assert_false(stage_accepts(&web.stage, "{\"query\":\"\"}"));
    assert_false(stage_accepts(&web.stage, "{\"query\":\"q\",\"engine\":\"x\"}"));
    web_done(&web);
}

static void a_call_may_be_cancelled_at_each_moment(void **state) {
    (void)state;
    for (int moment = 0; moment < 4; moment++) {
        struct web web;
        searxng_init(&web);
        struct tool_call *call = stage_call(&web.stage, ASK);
        struct http_call *out = fake_http_call(web.pool, 0);
        if (moment >= 1) assert_true(fake_http_head(out, 200, "application/json"));
        if (moment >= 2) assert_true(fake_http_body(out, STR("{}")));
        if (moment >= 3) fake_http_end(out);
        web.stage.tool->kind->cancel(call);
        loop_advance(web.stage.loop, 100000);
        assert_int_equal(web.stage.answers, 0);
        web_done(&web);
    }
}

static void settings_that_cannot_work_are_refused_without_their_secrets(void **state) {
    (void)state;
    static const struct web_search_options cases[] = {
        {.backend = STR_INIT("gogle")},
        {.backend = STR_INIT("searxng")},
        {.backend = STR_INIT("brave")},
        {.backend = STR_INIT("brave"), .key = STR_INIT("secret key")},
        {.backend = STR_INIT("brave"), .key = STR_INIT("secret\n")},
        {.backend = STR_INIT("searxng"), .base_url = STR_INIT("me:secret@host")},
        {.backend = STR_INIT("searxng"), .base_url = STR_INIT("http://a:secret@b/?q=1")},
        {.backend = STR_INIT("searxng"), .base_url = STR_INIT("http://a:secret@b/ c")},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e;
        assert_false(web_search_check(&cases[i], &e));
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        assert_int_equal(str_find(err_text(&e), STR("secret")), err_text(&e).len);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_searxng_instance_is_asked_as_the_operator_set_it),
        cmocka_unit_test(brave_is_asked_with_its_key_in_a_header),
        cmocka_unit_test(rows_without_title_or_url_are_dropped),
        cmocka_unit_test(five_rows_are_returned_and_fifteen_at_most),
        cmocka_unit_test(a_search_that_finds_nothing_is_no_error),
        cmocka_unit_test(a_malformed_answer_is_an_error_whatever_is_cut_off),
        cmocka_unit_test(no_error_shows_the_address_or_its_password),
        cmocka_unit_test(an_answer_that_is_too_large_is_an_error),
        cmocka_unit_test(arguments_that_say_nothing_are_refused_without_a_request),
        cmocka_unit_test(a_call_may_be_cancelled_at_each_moment),
        cmocka_unit_test(settings_that_cannot_work_are_refused_without_their_secrets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
