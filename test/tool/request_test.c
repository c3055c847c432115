#include "tool/request.h"

#include "fixture.h"

#include "fake/http_fake.h"

#define PARAMETERS                                                                             \
    "{\"type\":\"object\",\"properties\":{\"id\":{},\"q\":{},\"note\":{},\"n\":{}},"           \
    "\"additionalProperties\":false}"

struct web {
    struct stage stage;
    struct http_pool *pool;
};

static struct request_options usual(void) {
    return (struct request_options){.name = STR("crm"),
                                    .description = STR("Asks."),
                                    .parameters = STR(PARAMETERS),
                                    .method = STR("GET"),
                                    .url = STR("https://crm.example/u/{id}"),
                                    .output_max_bytes = 64,
                                    .at_once = 4,
                                    .idempotent = true};
}

static void web_init(struct web *web, struct request_options options) {
    struct tool *tool;
    struct err e;
    web->pool = http_pool_new();
    options.pool = web->pool;
    if (!request_tool_new(&options, &tool, &e)) fail_msg("%s", e.text);
    stage_init(&web->stage, tool);
}

static void web_done(struct web *web) {
    assert_int_equal(fake_http_calls(web->pool), 0);
    stage_done(&web->stage);
    http_pool_free(web->pool);
}

/* The request that a call sends. */
static struct http_call *sent(struct web *web, const char *args) {
    stage_call(&web->stage, args);
    loop_turn(web->stage.loop);
    assert_int_equal(web->stage.answers, 0);
    return fake_http_call(web->pool, fake_http_calls(web->pool) - 1);
}

static void answer(struct http_call *call, unsigned status, const char *body) {
    bool out = fake_http_head(call, status, "application/json");
    if (out && *body) out = fake_http_body(call, str_from(body));
    if (out) fake_http_end(call);
}

static void refused(struct web *web, const char *args, const char *why) {
    size_t before = fake_http_calls_ever(web->pool);
    stage_call(&web->stage, args);
    loop_turn(web->stage.loop);
    stage_said(&web->stage, true, why);
    assert_int_equal(fake_http_calls_ever(web->pool), before);
}

/* --- what is sent ------------------------------------------------------------------------- */

static void arguments_go_where_their_templates_stand(void **state) {
    static const struct request_field query[] = {{STR_INIT("q"), STR_INIT("{q}")},
                                                 {STR_INIT("k"), STR_INIT("{env:KEY}")},
                                                 {STR_INIT("x"), STR_INIT("<{n}>")}};
    static const struct request_field headers[] = {
        {STR_INIT("x-user"), STR_INIT("{call:agent}-{n}")},
        {STR_INIT("x-none"), STR_INIT("{note}")}};
    static const struct tool_secret secrets[] = {{STR_INIT("KEY"), STR_INIT("hush&hush")}};
    struct web web;
    (void)state;
    struct request_options options = usual();
    options.query = query;
    options.query_count = ARRAY_LEN(query);
    options.has_query = true;
    options.headers = headers;
    options.header_count = ARRAY_LEN(headers);
    options.secrets = secrets;
    options.secret_count = ARRAY_LEN(secrets);
    options.key = STR("bearer-key");
    web_init(&web, options);
    struct http_call *call =
        sent(&web, "{\"id\":\"a/b c\",\"q\":[\"1&2\",3,true],\"n\":{\"d\":1}}");
    const struct http_request *request = fake_http_request(call);
    assert_str(request->method, "GET");
    assert_str(request->url, "https://crm.example/u/a%2Fb%20c?q=1%262&q=3&q=true&"
                             "k=hush%26hush&x=%3C%7B%22d%22%3A1%7D%3E");
    assert_str(fake_http_header(call, "x-user"), "a-{\"d\":1}");
    assert_str(fake_http_header(call, "x-none"), "");
    assert_str(fake_http_header(call, "authorization"), "Bearer bearer-key");
    assert_int_equal(request->body.len, 0);
    assert_false(request->once);
    assert_int_equal(request->redirects_max, 0);
    answer(call, 200, "{\"said\": \"hush&hush and bearer-key\"}");
    stage_said(&web.stage, false, "{\"output\":{\"said\":\"*** and ***\"}}");
    web_done(&web);
}

static void arguments_without_a_template_go_along(void **state) {
    struct web web;
    (void)state;
    web_init(&web, usual());
    struct http_call *call = sent(&web, "{\"id\":7,\"q\":\"a b\",\"note\":null,\"n\":[1,2]}");
    assert_str(fake_http_request(call)->url, "https://crm.example/u/7?q=a%20b&n=1&n=2");
    answer(call, 200, "ok\n");
    stage_said(&web.stage, false, "{\"output\":\"ok\"}");
    web_done(&web);

    struct request_options options = usual();
    options.method = STR("POST");
    options.idempotent = false;
    web_init(&web, options);
    call = sent(&web, "{\"id\":7,\"q\":\"a\\\"b\",\"n\":[1,2]}");
    assert_str(fake_http_request(call)->url, "https://crm.example/u/7");
    assert_str(fake_http_request(call)->body, "{\"q\":\"a\\\"b\",\"n\":[1,2]}");
    assert_str(fake_http_header(call, "content-type"), "application/json");
    assert_true(fake_http_request(call)->once);
    answer(call, 200, "");
    stage_said(&web.stage, false, "{\"output\":\"\"}");
    web_done(&web);
}

static void a_body_is_json_whatever_is_put_into_it(void **state) {
    struct web web;
    (void)state;
    struct request_options options = usual();
    options.method = STR("PUT");
    options.body = STR("{\"whole\":\"{n}\",\"text\":\"for {id}: {note}\",\"none\":\"{q}\","
                       "\"list\":[\"{q}\",1,\"{{}}\"],\"in\":{\"user\":\"{call:agent}\"}}");
    web_init(&web, options);
    struct http_call *call =
        sent(&web, "{\"id\":\"x\\\",\\\"admin\\\":true\",\"n\":{\"a\":1},\"note\":\"\\n\"}");
    assert_str(fake_http_request(call)->body,
               "{\"whole\":{\"a\":1},\"text\":\"for x\\\",\\\"admin\\\":true: \\n\","
               "\"list\":[null,1,\"{}\"],\"in\":{\"user\":\"a\"}}");
    answer(call, 204, "");
    stage_said(&web.stage, false, "{\"output\":\"\"}");
    web_done(&web);
}

static void no_argument_chooses_another_path(void **state) {
    struct web web;
    (void)state;
    web_init(&web, usual());
    refused(&web, "{\"id\":\"..\"}",
            "tool 'crm' was not called: an argument makes '.' or '..' of a part of the path");
    refused(&web, "{\"id\":\".\"}",
            "tool 'crm' was not called: an argument makes '.' or '..' of a part of the path");
    refused(&web, "{\"id\":\"\"}",
            "tool 'crm' was not called: 'id' is empty, and stands in the path of the address");
    refused(&web, "{\"q\":1}",
            "tool 'crm' was not called: 'id' is empty, and stands in the path of the address");
    struct http_call *call = sent(&web, "{\"id\":\"../x?y#z\\u0000\\r\\n\"}");
    assert_str(fake_http_request(call)->url, "https://crm.example/u/..%2Fx%3Fy%23z%00%0D%0A");
    answer(call, 200, "1");
    web_done(&web);
}

static void no_argument_ends_a_header(void **state) {
    static const struct request_field headers[] = {{STR_INIT("x-note"), STR_INIT("{note}")}};
    struct web web;
    (void)state;
    struct request_options options = usual();
    options.headers = headers;
    options.header_count = 1;
    web_init(&web, options);
    refused(&web, "{\"id\":1,\"note\":\"a\\r\\nx-admin: 1\"}",
            "tool 'crm' was not called: an argument puts a character into the header 'x-note' "
            "that no header carries");
    refused(&web, "{\"id\":1,\"note\":\"\\u0000\"}",
            "tool 'crm' was not called: an argument puts a character into the header 'x-note' "
            "that no header carries");
    web_done(&web);
}

static void a_secret_that_is_not_set_is_not_left_out(void **state) {
    static const struct request_field headers[] = {{STR_INIT("x"), STR_INIT("{env:KEY}")}};
    static const struct tool_secret secrets[] = {{STR_INIT("KEY"), STR_INIT("")}};
    struct web web;
    (void)state;
    struct request_options options = usual();
    options.headers = headers;
    options.secrets = secrets;
    options.header_count = options.secret_count = 1;
    web_init(&web, options);
    refused(&web, "{\"id\":1}", "tool 'crm' was not called: the variable KEY is not set");
    web_done(&web);
}

static void a_value_too_long_for_an_address_is_refused(void **state) {
    struct web web;
    struct buf args;
    (void)state;
    web_init(&web, usual());
    buf_init(&args, MIB);
    buf_append(&args, STR("{\"id\":1,\"q\":\""));
    for (size_t i = 0; i < 20 * KIB; i++) buf_append_byte(&args, 'q');
    buf_append(&args, str_of("\"}", 3));
    refused(&web, args.at,
            "tool 'crm' was not called: the arguments make an address of more than 16 KiB");
    buf_done(&args);
    web_done(&web);
}

/* --- what comes back ---------------------------------------------------------------------- */

static void a_refusal_is_an_error_with_its_beginning(void **state) {
    struct web web;
    (void)state;
    web_init(&web, usual());
    answer(sent(&web, "{\"id\":1}"), 404, "no such user");
    stage_said(&web.stage, true, "tool 'crm': its server answered 404: no such user");
    answer(sent(&web, "{\"id\":1}"), 302, "");
    stage_said(&web.stage, true,
               "tool 'crm': its server answered 302, and a redirect is not followed");
    answer(sent(&web, "{\"id\":1}"), 500, "");
    stage_said(&web.stage, true, "tool 'crm': its server answered 500");
    web_done(&web);
}

/* A shop answers a payment with 303 and the address of the order. */
static void a_redirect_after_which_it_may_be_done_leaves_the_effect_unknown(void **state) {
    static const struct {
        unsigned status;
        enum err_code code;
    } cases[] = {
        {302, ERR_EFFECT_UNKNOWN}, {303, ERR_EFFECT_UNKNOWN}, {301, ERR_EFFECT_UNKNOWN},
        {307, ERR_UNKNOWN},        {308, ERR_UNKNOWN},        {404, ERR_UNKNOWN},
        {503, ERR_UNKNOWN},        {500, ERR_EFFECT_UNKNOWN},
    };
    struct web web;
    (void)state;
    web_init(&web, usual());
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        answer(sent(&web, "{\"id\":1}"), cases[i].status, "");
        assert_true(web.stage.failed);
        assert_int_equal(web.stage.code, cases[i].code);
    }
    web_done(&web);
}

static void an_answer_that_is_not_json_leaves_the_effect_unknown(void **state) {
    static const char *const bodies[] = {"<html>paid</html>", "{\"ok\":true"};
    struct request_options options = usual();
    struct web web;
    (void)state;
    options.form = TOOL_OUTPUT_JSON;
    web_init(&web, options);
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        answer(sent(&web, "{\"id\":1}"), 200, bodies[i]);
        assert_true(web.stage.failed);
        assert_int_equal(web.stage.code, ERR_EFFECT_UNKNOWN);
    }
    web_done(&web);
}

static void a_long_answer_is_an_error_that_names_its_setting(void **state) {
    struct web web;
    char text[66];
    (void)state;
    memset(text, '1', 65);
    text[65] = '\0';
    web_init(&web, usual());
    answer(sent(&web, "{\"id\":1}"), 200, text + 1);
    assert_false(web.stage.failed);
    answer(sent(&web, "{\"id\":1}"), 200, text);
    stage_said(&web.stage, true,
               "tool 'crm': its server answered with more than 64B; the setting "
               "tools.crm.output allows more");
    web_done(&web);
}

static void a_lost_answer_says_how_far_the_call_came(void **state) {
    static const struct {
        enum err_code code;
        enum http_stage stage;
        const char *why;
    } cases[] = {
        {ERR_UNAVAILABLE, HTTP_CONNECTING, "tool 'crm': its server cannot be reached"},
        {ERR_UNAVAILABLE, HTTP_WAITING, "tool 'crm': its server did not answer to the end"},
        {ERR_PERMISSION_DENIED, HTTP_CONNECTING,
         "tool 'crm': its server has no public address"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct web web;
        web_init(&web, usual());
        fake_http_fail(sent(&web, "{\"id\":1}"), cases[i].code, cases[i].stage);
        stage_said(&web.stage, true, cases[i].why);
        web_done(&web);
    }
}

static void more_calls_than_may_be_out_wait_for_the_others(void **state) {
    struct web web;
    struct tool_call *calls[7];
    (void)state;
    web_init(&web, usual());
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        calls[i] = stage_call(&web.stage, "{\"id\":1}");
    loop_turn(web.stage.loop);
    assert_int_equal(fake_http_calls(web.pool), 4);
    web.stage.tool->kind->cancel(calls[4]); /* it waits */
    answer(fake_http_call(web.pool, 0), 200, "1");
    web.stage.tool->kind->cancel(calls[1]); /* it is out */
    assert_int_equal(fake_http_calls(web.pool), 2);
    web.stage.tool->kind->cancel(calls[5]); /* it was let go, and does not know */
    loop_turn(web.stage.loop);
    assert_int_equal(fake_http_calls(web.pool), 3);
    while (fake_http_calls(web.pool)) answer(fake_http_call(web.pool, 0), 200, "1");
    assert_int_equal(fake_http_calls_ever(web.pool), 5);
    web_done(&web);
}

/* The mail of a slot comes after the tool is gone: nothing of it is used any more. */
static void a_tool_may_go_before_a_late_slot(void **state) {
    struct web web;
    struct tool_call *first, *second;
    (void)state;
    struct request_options options = usual();
    options.at_once = 1;
    web_init(&web, options);
    first = stage_call(&web.stage, "{\"id\":1}");
    second = stage_call(&web.stage, "{\"id\":1}");
    loop_turn(web.stage.loop);
    web.stage.tool->kind->cancel(first);
    web.stage.tool->kind->cancel(second);
    tool_free(web.stage.tool);
    web.stage.tool = NULL;
    loop_turn(web.stage.loop);
    web_done(&web);
}

/* --- settings ----------------------------------------------------------------------------- */

static void what_cannot_be_sent_is_no_tool(void **state) {
    static const struct {
        const char *url, *why;
    } cases[] = {
        {"ftp://x/", "url: it is not an address; write it like https://host/path"},
        {"https:///x", "url: it names no host"},
        {"https://me:pw@x/",
         "url: a password cannot stand in an address; use key_env or a header"},
        {"https://{id}/", "url: the host must stand there as it is: no call may choose it"},
        {"https://x:{id}/", "url: the host must stand there as it is: no call may choose it"},
        {"https://x/a b", "url: it holds a space or a character that no address has"},
        {"https://x/#a", "url: it holds a space or a character that no address has"},
        {"https://x/{idd}", "url: '{idd}' is not one of the parameters; list it under "
                            "parameters.properties; did you mean 'id'?"},
        {"https://x/{env:KEY}", "url: the variable KEY is not set"},
        {"https://x/{call:me}",
         "url: there is no '{call:me}'; there are user, session, workspace, agent and id"},
        {"https://x/{", "url: a '{' has no '}'; a brace itself is '{{'"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct request_options options = usual();
        struct tool *tool;
        struct err e;
        options.url = str_from(cases[i].url);
        assert_false(request_tool_new(&options, &tool, &e));
        assert_str(err_text(&e), cases[i].why);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_go_where_their_templates_stand),
        cmocka_unit_test(arguments_without_a_template_go_along),
        cmocka_unit_test(a_body_is_json_whatever_is_put_into_it),
        cmocka_unit_test(no_argument_chooses_another_path),
        cmocka_unit_test(no_argument_ends_a_header),
        cmocka_unit_test(a_secret_that_is_not_set_is_not_left_out),
        cmocka_unit_test(a_value_too_long_for_an_address_is_refused),
        cmocka_unit_test(a_refusal_is_an_error_with_its_beginning),
        cmocka_unit_test(a_redirect_after_which_it_may_be_done_leaves_the_effect_unknown),
        cmocka_unit_test(an_answer_that_is_not_json_leaves_the_effect_unknown),
        cmocka_unit_test(a_long_answer_is_an_error_that_names_its_setting),
        cmocka_unit_test(a_lost_answer_says_how_far_the_call_came),
        cmocka_unit_test(more_calls_than_may_be_out_wait_for_the_others),
        cmocka_unit_test(a_tool_may_go_before_a_late_slot),
        cmocka_unit_test(what_cannot_be_sent_is_no_tool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
