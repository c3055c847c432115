#include "provider/remote.h"

#include "fake/http_fake.h" /* named here: the build links it */
#include "remote_fixture.h"

/* --- pause and resume -------------------------------------------------------------------- */

static void a_pause_in_any_callback_holds_back_all_the_rest(void **state) {
    (void)state;
    for (size_t at = 0; at < 7; at++) {
        struct fixture f;
        fixture_init(&f);
        f.then = PAUSE;
        f.then_at = at;
        begin(&f);
        stream(&f);
        assert_true(send(&f, REPLY)); /* one piece with everything in it */
        if (f.paused) {
            assert_int_equal(f.callbacks, at + 1);
            assert_true(fake_http_paused(asked(&f)));
            loop_advance(f.loop, 1000);
            resume(&f);
            assert_int_equal(f.callbacks, at + 1); /* nothing from inside resume() */
            loop_turn(f.loop);
            assert_false(fake_http_paused(asked(&f)));
        }
        fake_http_end(asked(&f));
        if (f.paused) { /* during the callback of the end */
            resume(&f);
            loop_turn(f.loop);
        }
        heard(&f, REPLY_HEARD);
        assert_null(f.call);
        fixture_done(&f);
    }
}

static void a_pause_and_a_resume_in_one_go_change_nothing(void **state) {
    (void)state;
    for (size_t at = 0; at < 7; at++) {
        struct fixture f;
        fixture_init(&f);
        f.then = PAUSE_AND_RESUME;
        f.then_at = at;
        begin(&f);
        stream(&f);
        assert_true(send(&f, REPLY));
        loop_turn(f.loop);
        assert_false(fake_http_paused(asked(&f)));
        fake_http_end(asked(&f));
        loop_turn(f.loop);
        heard(&f, REPLY_HEARD);
        fixture_done(&f);
    }
}

static void an_ending_during_a_pause_waits_for_its_end(void **state) {
    struct fixture *f = *state;
    begin(f);
    stream(f);
    assert_true(send(f, "data: t:Hi\n\n"));
    pause_call(f);
    assert_true(fake_http_paused(asked(f)));
    fake_http_fail(asked(f), ERR_UNAVAILABLE, HTTP_READING);
    loop_advance(f->loop, 1000);
    heard(f, "text(Hi) ");
    resume(f);
    pause_call(f); /* and not between */
    loop_turn(f->loop);
    resume(f);
    heard(f, "");
    loop_turn(f->loop);
    heard(f, "failed(PROVIDER_BROKEN) ");
}

static void a_pause_before_the_answer_reaches_the_request(void **state) {
    struct fixture *f = *state;
    begin(f);
    pause_call(f);
    assert_true(fake_http_paused(asked(f)));
    f->provider->kind->pause(f->call); /* harmless */
    resume(f);
    f->provider->kind->resume(f->call); /* harmless */
    loop_turn(f->loop);
    assert_false(fake_http_paused(asked(f)));
}

static void no_provider_is_asked_again_during_a_pause(void **state) {
    struct fixture *f = *state;
    begin(f);
    answer(f, 503, "", "", -1);
    pause_call(f);
    loop_advance(f->loop, 5000);
    assert_int_equal(fake_http_calls(f->pool), 0);
    resume(f);
    loop_turn(f->loop);
    assert_int_equal(fake_http_calls(f->pool), 1);
}

static void a_pause_that_ends_before_the_wait_does_not_shorten_it(void **state) {
    struct fixture *f = *state;
    begin(f);
    answer(f, 503, "", "", -1);
    pause_call(f);
    loop_advance(f->loop, 100);
    resume(f);
    loop_turn(f->loop);
    assert_int_equal(fake_http_calls(f->pool), 0);
    loop_advance(f->loop, 600);
    assert_int_equal(fake_http_calls(f->pool), 1);
}

static void a_pause_that_outlasts_the_call_ends_it(void **state) {
    struct fixture *f = *state;
    begin(f);
    answer(f, 503, "", "", -1);
    pause_call(f);
    loop_advance(f->loop, 600000);
    resume(f);
    loop_turn(f->loop);
    heard(f, "failed(PROVIDER_TIMEOUT) ");
    assert_why(f, "not complete after 10m");
}

/* --- cancel ------------------------------------------------------------------------------ */

static void a_cancel_in_any_callback_is_the_last_of_them(void **state) {
    (void)state;
    for (size_t at = 0; at < 7; at++) {
        struct fixture f;
        fixture_init(&f);
        f.then = CANCEL;
        f.then_at = at;
        begin(&f);
        stream(&f);
        struct http_call *call = asked(&f);
        if (fake_http_body(call, STR(REPLY)))
            fake_http_end(call); /* the last one is delivered there */
        loop_advance(f.loop, 100000);
        assert_null(f.call);
        assert_int_equal(f.callbacks, at + 1);
        assert_int_equal(fake_http_calls(f.pool), 0);
        fixture_done(&f);
    }
}

static void a_cancel_in_the_note_of_a_cut_reply_is_the_last_word(void **state) {
    struct fixture *f = *state;
    f->then = CANCEL;
    begin(f);
    stream(f);
    assert_true(send(f, "data: cut\n\n"));
    fake_http_end(asked(f));
    heard(f, "note(the reply was cut at its token limit) ");
}

static void a_cancel_during_the_delivery_of_kept_words_ends_it(void **state) {
    struct fixture *f = *state;
    begin(f);
    stream(f);
    f->then = PAUSE;
    assert_true(send(f, REPLY));
    f->then = CANCEL;
    f->then_at = 2;
    resume(f);
    loop_turn(f->loop);
    heard(f, "thinking(hm) text(Hi) text(there) ");
    assert_int_equal(fake_http_calls(f->pool), 0);
}

static void cancel(struct fixture *f) {
    f->provider->kind->cancel(f->call);
    f->call = NULL;
    assert_int_equal(fake_http_calls(f->pool), 0); /* the socket is closed in this turn: G5 */
    loop_advance(f->loop, 1000000);
    heard(f, "");
}

static void a_cancel_at_every_other_moment_closes_the_connection_at_once(void **state) {
    struct fixture *f = *state;
    begin(f); /* before anything came */
    cancel(f);

    begin(f); /* after the head, the provider is silent: S6 */
    stream(f);
    cancel(f);

    begin(f); /* in the middle of an event */
    stream(f);
    assert_true(send(f, "data: t:H"));
    cancel(f);

    begin(f); /* in a refusal */
    assert_true(fake_http_head(asked(f), 500, "text/html"));
    assert_true(send(f, "<html>"));
    cancel(f);

    begin(f); /* waiting to ask again */
    answer(f, 503, "", "", -1);
    cancel(f);

    begin(f); /* asking again */
    answer(f, 503, "", "", -1);
    loop_advance(f->loop, 1000);
    cancel(f);

    begin(f); /* paused, with an ending that waits */
    stream(f);
    pause_call(f);
    fake_http_fail(asked(f), ERR_UNAVAILABLE, HTTP_READING);
    cancel(f);
    f->paused = false;

    begin(f); /* resumed, before the turn ends */
    pause_call(f);
    resume(f);
    cancel(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pause_in_any_callback_holds_back_all_the_rest),
        cmocka_unit_test(a_pause_and_a_resume_in_one_go_change_nothing),
        TEST(an_ending_during_a_pause_waits_for_its_end),
        TEST(a_pause_before_the_answer_reaches_the_request),
        TEST(no_provider_is_asked_again_during_a_pause),
        TEST(a_pause_that_ends_before_the_wait_does_not_shorten_it),
        TEST(a_pause_that_outlasts_the_call_ends_it),
        cmocka_unit_test(a_cancel_in_any_callback_is_the_last_of_them),
        TEST(a_cancel_in_the_note_of_a_cut_reply_is_the_last_word),
        TEST(a_cancel_during_the_delivery_of_kept_words_ends_it),
        TEST(a_cancel_at_every_other_moment_closes_the_connection_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
