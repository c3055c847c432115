#include "provider/remote.h"

#include "fake/http_fake.h" /* named here: the build links it */
#include "remote_fixture.h"

#include "provider/remote_inner.h"

/* checks.md U1: refused, busy, unauthorized. */

#define NO_STREAM "{\"error\":{\"message\":\"x\",\"param\":\"stream\"}}"

static void a_passing_failure_is_asked_again_twice_and_then_fails(void **state) {
    (void)state;
    static const struct {
        unsigned status; /* 0: no answer */
        const char *reason;
        enum err_code code;
    } cases[] = {
        {0, PROVIDER_UNREACHABLE, ERR_UNAVAILABLE},
        {408, PROVIDER_TIMEOUT, ERR_DEADLINE_EXCEEDED},
        {409, PROVIDER_ERROR, ERR_UNAVAILABLE},
        {429, PROVIDER_RATE_LIMITED, ERR_RESOURCE_EXHAUSTED},
        {500, PROVIDER_ERROR, ERR_UNAVAILABLE},
        {503, PROVIDER_OVERLOADED, ERR_UNAVAILABLE},
        {529, PROVIDER_OVERLOADED, ERR_UNAVAILABLE},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture f;
        fixture_init(&f);
        begin(&f);
        for (int attempt = 0; attempt < 3; attempt++) {
            assert_int_equal(f.heard.len, 0);
            if (cases[i].status) {
                answer(&f, cases[i].status, "application/json", "{}", -1);
            } else {
                fake_http_fail(asked(&f), ERR_UNAVAILABLE,
                               attempt ? HTTP_WAITING : HTTP_CONNECTING);
            }
            loop_advance(f.loop, 2000);
        }
        assert_int_equal(fake_http_calls_ever(f.pool), 3);
        assert_str(str_head(buf_str(&f.heard), 7), "failed(");
        assert_str(str_head(str_skip(buf_str(&f.heard), 7), strlen(cases[i].reason)),
                   cases[i].reason);
        assert_int_equal(f.why.code, cases[i].code);
        assert_why(&f, "provider 'acme': ");
        fixture_done(&f);
    }
}

static void a_permanent_failure_is_asked_once(void **state) {
    (void)state;
    static const struct {
        unsigned status;
        const char *body, *reason;
    } cases[] = {
        {401, "{}", "failed(PROVIDER_AUTH) "},
        {403, "{}", "failed(PROVIDER_AUTH) "},
        {400, "{}", "failed(PROVIDER_REJECTED) "},
        {404, "{}", "failed(PROVIDER_REJECTED) "},
        {302, "", "failed(PROVIDER_UNREACHABLE) "},
        {308, "", "failed(PROVIDER_UNREACHABLE) "},
        {402, "{}", "failed(PROVIDER_QUOTA) "},
        {413, "", "failed(MODEL_CONTEXT) "},
        {429, "{\"error\":{\"code\":\"insufficient_quota\"}}", "failed(PROVIDER_QUOTA) "},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture f;
        fixture_init(&f);
        begin(&f);
        answer(&f, cases[i].status, "application/json", cases[i].body, -1);
        loop_advance(f.loop, 100000);
        heard(&f, cases[i].reason);
        assert_int_equal(fake_http_calls_ever(f.pool), 1);
        fixture_done(&f);
    }
}

static void a_wrong_key_says_what_to_check_and_blames_no_caller(void **state) {
    struct fixture *f = *state;
    begin(f);
    answer(f, 401, "application/json", "{\"error\":{\"message\":\"No such key.\"}}", -1);
    assert_int_equal(f->why.code, ERR_FAILED_PRECONDITION);
    assert_str(err_text(&f->why), "provider 'acme': Morse answered 401: No such key; check its "
                                  "key"); /* not with the command that was just given */
}

static void an_answer_after_a_refusal_counts(void **state) {
    struct fixture *f = *state;
    begin(f);
    answer(f, 500, "text/html", "<html>oops", -1);
    loop_advance(f->loop, 2000);
    stream(f);
    assert_true(send(f, REPLY));
    fake_http_end(asked(f));
    heard(f, REPLY_HEARD);
}

static void the_pause_doubles_and_differs_from_call_to_call(void **state) {
    (void)state;
    struct remote_options options = remote_defaults;
    uint64_t random = 42, seen_least = UINT64_MAX, seen_most = 0;
    for (int i = 0; i < 1000; i++) {
        for (unsigned retry = 0; retry < 8; retry++) {
            uint64_t middle = 500u << retry, pause;
            if (middle > 30000) middle = 30000;
            pause = remote_pause_ms(&options, retry, &random);
            assert_true(pause >= middle * 3 / 4 && pause <= middle * 5 / 4);
            if (retry == 0 && pause < seen_least) seen_least = pause;
            if (retry == 0 && pause > seen_most) seen_most = pause;
        }
    }
    assert_true(seen_least < 400 && seen_most > 600);
    options.pause_ms = 0;
    assert_int_equal(remote_pause_ms(&options, 3, &random), 0);
}

static void it_waits_before_it_asks_again(void **state) {
    struct fixture *f = *state;
    begin(f);
    answer(f, 503, "", "", -1);
    loop_advance(f->loop, 374);
    assert_int_equal(fake_http_calls(f->pool), 0);
    loop_advance(f->loop, 626 - 374);
    assert_int_equal(fake_http_calls(f->pool), 1);
    answer(f, 503, "", "", -1);
    loop_advance(f->loop, 749);
    assert_int_equal(fake_http_calls(f->pool), 0);
    loop_advance(f->loop, 1251 - 749);
    assert_int_equal(fake_http_calls(f->pool), 1);
}

static void retry_after_is_kept_and_a_long_one_is_a_failure_at_once(void **state) {
    struct fixture *f = *state;
    begin(f);
    answer(f, 429, "", "", 20000);
    loop_advance(f->loop, 19999);
    assert_int_equal(fake_http_calls(f->pool), 0);
    loop_advance(f->loop, 200);
    assert_int_equal(fake_http_calls(f->pool), 1);
    answer(f, 429, "", "", 30001);
    heard(f, "failed(PROVIDER_RATE_LIMITED) ");
}

static void the_limit_of_the_whole_call_holds_over_all_attempts(void **state) {
    struct fixture *f = *state;
    f->options.total_ms = 10000;
    begin(f);
    loop_advance(f->loop, 4000);
    answer(f, 503, "", "", -1);
    loop_advance(f->loop, 1000);
    assert_int_equal(fake_http_calls(f->pool), 1);
    uint64_t left = fake_http_request(asked(f))->total_ms;
    assert_true(left < 6000 && left >= 5000);
    answer(f, 429, "", "", 9000); /* later than that */
    heard(f, "failed(PROVIDER_RATE_LIMITED) ");
}

/* The refusal came, the limit passed, and only then was it read. Without streaming is no retry: it
 * does not wait, and looks at no limit. */
static void an_attempt_after_the_limit_of_the_whole_call_has_almost_no_time(void **state) {
    (void)state;
    static const uint64_t passed_ms[] = {9999, 10000, 12000};
    for (size_t i = 0; i < ARRAY_LEN(passed_ms); i++) {
        struct fixture f;
        fixture_init(&f);
        f.options.total_ms = 10000;
        begin(&f);
        loop_advance(f.loop, passed_ms[i]);
        answer(&f, 400, "application/json", NO_STREAM, -1);
        assert_int_equal(fake_http_request(asked(&f))->total_ms, 1);
        loop_advance(f.loop, 1);
        fake_http_fail(asked(&f), ERR_DEADLINE_EXCEEDED, HTTP_CONNECTING);
        heard(&f, "failed(PROVIDER_TIMEOUT) ");
        assert_why(&f, "not complete after 10s");
        fixture_done(&f);
    }
}

static void each_limit_of_time_has_its_own_message(void **state) {
    (void)state;
    static const struct {
        enum http_stage stage;
        uint64_t after_ms;
        const char *says;
        size_t attempts;
    } cases[] = {
        {HTTP_CONNECTING, 0, "no connection within 10s", 3},
        {HTTP_WAITING, 60000, "did not begin within 1m", 1},
        {HTTP_READING, 90000, "stood still for 1m", 1},
        {HTTP_READING, 600000, "not complete after 10m", 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture f;
        fixture_init(&f);
        begin(&f);
        for (size_t attempt = 0; attempt < cases[i].attempts; attempt++) {
            assert_int_equal(f.heard.len, 0);
            if (cases[i].stage == HTTP_READING) stream(&f);
            loop_advance(f.loop, cases[i].after_ms);
            fake_http_fail(asked(&f), ERR_DEADLINE_EXCEEDED, cases[i].stage);
            if (attempt + 1 < cases[i].attempts) loop_advance(f.loop, 2000);
        }
        heard(&f, "failed(PROVIDER_TIMEOUT) ");
        assert_int_equal(f.why.code, ERR_DEADLINE_EXCEEDED);
        assert_why(&f, cases[i].says);
        fixture_done(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_passing_failure_is_asked_again_twice_and_then_fails),
        cmocka_unit_test(a_permanent_failure_is_asked_once),
        TEST(a_wrong_key_says_what_to_check_and_blames_no_caller),
        TEST(an_answer_after_a_refusal_counts),
        cmocka_unit_test(the_pause_doubles_and_differs_from_call_to_call),
        TEST(it_waits_before_it_asks_again),
        TEST(retry_after_is_kept_and_a_long_one_is_a_failure_at_once),
        TEST(the_limit_of_the_whole_call_holds_over_all_attempts),
        cmocka_unit_test(an_attempt_after_the_limit_of_the_whole_call_has_almost_no_time),
        cmocka_unit_test(each_limit_of_time_has_its_own_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
