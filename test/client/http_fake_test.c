/* Tests of the fake of client/http.h that other tests use. */
#include "fake/http_fake.h"

#include "base/buf.h"
#include "helper/assert_str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum when { NEVER, AT_HEAD, AT_BODY };

struct hearer {
    struct http_call *call;
    enum when cancels;
    struct buf heard;
};

static void on_head(const struct http_head *head, void *ctx) {
    struct hearer *hearer = ctx;
    buf_printf(&hearer->heard, "%u " STR_FMT " %lld;", head->status,
               STR_ARG(head->content_type), (long long)head->retry_after_ms);
    if (hearer->cancels == AT_HEAD) http_cancel(hearer->call);
}

static void on_body(struct lent lent, void *ctx) {
    struct str bytes = lent_read(lent);
    struct hearer *hearer = ctx;
    buf_append(&hearer->heard, bytes);
    if (hearer->cancels == AT_BODY) http_cancel(hearer->call);
}

static void on_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct hearer *hearer = ctx;
    buf_printf(&hearer->heard, ";%s %d", failed ? err_kinds[failed->code].name : "whole",
               (int)stage);
}

static const struct http_sink sink = {on_head, on_body, on_end};
static const struct http_header headers[] = {{STR_INIT("Accept"), STR_INIT("text/html")}};

static struct http_call *ask(struct http_pool *pool, struct loop *loop, struct hearer *hearer,
                             enum when cancels) {
    struct http_request request = {.method = STR("POST"),
                                   .url = STR("http://example.org/"),
                                   .headers = headers,
                                   .header_count = ARRAY_LEN(headers),
                                   .body = STR("question")};
    hearer->cancels = cancels;
    buf_init(&hearer->heard, 4096);
    return hearer->call = http_start(pool, loop, &request, &sink, hearer);
}

static void a_call_hears_what_the_test_says(void **state) {
    (void)state;
    struct http_pool *pool = http_pool_new();
    struct loop *loop = loop_new_fake();
    struct hearer hearer;
    struct http_call *call = ask(pool, loop, &hearer, NEVER);
    assert_ptr_equal(fake_http_call(pool, 0), call);
    assert_str(fake_http_request(call)->url, "http://example.org/");
    assert_str(fake_http_request(call)->body, "question");
    assert_str(fake_http_header(call, "accept"), "text/html");
    assert_str(fake_http_header(call, "cookie"), "");
    assert_ptr_equal(fake_http_loop(call), loop);

    assert_true(fake_http_head_retry(call, 429, "text/plain", 2000));
    assert_true(fake_http_body(call, STR("slow ")));
    http_pause(call);
    assert_true(fake_http_paused(call));
    http_resume(call);
    assert_true(fake_http_body(call, STR("down")));
    fake_http_end(call);
    assert_str(buf_str(&hearer.heard), "429 text/plain 2000;slow down;whole 3");
    assert_int_equal(fake_http_calls(pool), 0);

    buf_done(&hearer.heard);
    http_pool_leave(pool, loop);
    http_pool_free(pool);
    loop_free(loop);
}

static void a_call_may_cancel_itself_in_each_callback(void **state) {
    (void)state;
    struct http_pool *pool = http_pool_new();
    struct loop *loop = loop_new_fake();
    struct hearer hearer;

    assert_false(fake_http_head(ask(pool, loop, &hearer, AT_HEAD), 200, "text/plain"));
    buf_done(&hearer.heard);
    struct http_call *call = ask(pool, loop, &hearer, AT_BODY);
    assert_true(fake_http_head(call, 200, "text/plain"));
    assert_false(fake_http_body(call, STR("x")));
    buf_done(&hearer.heard);
    assert_int_equal(fake_http_cancels(pool), 2);

    call = ask(pool, loop, &hearer, NEVER);
    http_pause(call);
    fake_http_fail(call, ERR_DEADLINE_EXCEEDED, HTTP_WAITING);
    assert_str(buf_str(&hearer.heard), ";DEADLINE_EXCEEDED 1");
    assert_int_equal(fake_http_calls_ever(pool), 3);
    buf_done(&hearer.heard);

    struct err e;
    fake_http_need_fails(pool, ERR_UNAVAILABLE);
    assert_false(http_pool_need(pool, &e));
    assert_true(fake_http_needed(pool));
    http_pool_free(pool);
    loop_free(loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_hears_what_the_test_says),
        cmocka_unit_test(a_call_may_cancel_itself_in_each_callback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
