#include "provider/chain.h"

#include "fake/provider_fake.h"

#include "helper/assert_str.h"
#include "helper/reply_heard.h"

#include "provider/dialect.h"

#include <stdlib.h>

/* Three models in a row, and what the caller of the chain hears of them. */
struct fixture {
    struct loop *loop;
    struct provider *models[3];
    struct provider *chain;
    struct provider_call *call; /* NULL once it is gone */
    struct message message;
    struct provider_request request;
    struct buf heard;
    enum reply_then then; /* what the next callback makes us do */
};

static const char *const forms[REPLY_KIND_COUNT] = {[REPLY_TOOL_CALL] = "call($n) "};

static void on_reply(const struct reply_event *event, void *ctx) {
    struct fixture *f = ctx;
    reply_heard(&f->heard, forms, event);
    if (reply_event_ends(event)) f->call = NULL;
    if (event->kind == REPLY_FAILED) assert_int_not_equal(event->code, ERR_NONE);
    reply_then(f->then, f->chain, &f->call);
    f->then = GO_ON;
}

static void fixture_init(struct fixture *f) {
    *f = (struct fixture){.loop = loop_new_fake()};
    for (size_t i = 0; i < ARRAY_LEN(f->models); i++) f->models[i] = fake_provider_new();
    struct chain_link links[] = {
        {f->models[0], STR("one")}, {f->models[1], STR_EMPTY}, {f->models[2], STR("three")}};
    f->chain = chain_provider_new(STR("row"), links, ARRAY_LEN(links));
    memset(links, 0xEE, sizeof(links)); /* copied */
    f->message = (struct message){.role = MESSAGE_USER, .text = STR("hi")};
    f->request = (struct provider_request){.agent = STR("manager"),
                                           .model = STR("asked"),
                                           .messages = &f->message,
                                           .message_count = 1};
    buf_init(&f->heard, 4 * KIB);
    f->call = provider_call_start(f->chain, f->loop, &f->request, on_reply, f);
    assert_int_equal(f->heard.len, 0);
}

static void fixture_done(struct fixture *f) {
    if (f->call) f->chain->kind->cancel(f->call);
    for (size_t i = 0; i < ARRAY_LEN(f->models); i++) {
        assert_int_equal(fake_calls(f->models[i]), 0);
        provider_free(f->models[i]);
    }
    provider_free(f->chain);
    buf_done(&f->heard);
    loop_free(f->loop);
}

#include "helper/heap_fixture.h"

static struct provider_call *asked(const struct fixture *f, size_t model) {
    assert_int_equal(fake_calls(f->models[model]), 1);
    return fake_call(f->models[model], 0);
}

static void heard(struct fixture *f, const char *expected) {
    assert_str(buf_str(&f->heard), expected);
    buf_clear(&f->heard);
}

/* --- one answers -------------------------------------------------------------------------- */

static void the_first_is_asked_for_its_own_model_and_all_it_says_is_passed_on(void **state) {
    struct fixture *f = *state;
    assert_str(fake_request(asked(f, 0))->model, "one");
    assert_str(fake_request(asked(f, 0))->agent, "manager");
    assert_ptr_equal(fake_request(asked(f, 0))->messages, &f->message);
    assert_true(fake_thinking(asked(f, 0), STR("hm")));
    assert_true(fake_text(asked(f, 0), STR("Hi")));
    assert_true(fake_tool_call(asked(f, 0), "c", "look", "{}"));
    assert_true(fake_approval(asked(f, 0), "d", "ok?"));
    assert_true(fake_usage(asked(f, 0), 1, 2));
    fake_done(asked(f, 0), "one-long");
    heard(f, "thinking(hm) text(Hi) call(look) approval(ok?) usage(fake-1) done(one-long) ");
    assert_null(f->call);
    assert_int_equal(fake_calls_ever(f->models[1]), 0);
}

static void the_next_is_asked_when_one_does_not_answer_and_a_note_says_so(void **state) {
    (void)state;
    static const char *const reasons[] = {
        PROVIDER_UNREACHABLE, PROVIDER_TIMEOUT, PROVIDER_RATE_LIMITED, PROVIDER_QUOTA,
        PROVIDER_OVERLOADED,  PROVIDER_ERROR,   PROVIDER_AUTH,
    };
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        struct fixture f;
        fixture_init(&f);
        fake_fail(asked(&f, 0), ERR_UNAVAILABLE, reasons[i]);
        heard(&f, "note(one did not answer (the fake model failed), asking asked) ");
        assert_str(fake_request(asked(&f, 1))->model, "asked");
        fake_fail(asked(&f, 1), ERR_UNAVAILABLE, reasons[i]);
        heard(&f, "note(asked did not answer (the fake model failed), asking three) ");
        assert_true(fake_text(asked(&f, 2), STR("Hi")));
        fake_done(asked(&f, 2), "three");
        heard(&f, "text(Hi) done(three) ");
        fixture_done(&f);
    }
}

static void the_last_ones_failure_is_the_chains(void **state) {
    struct fixture *f = *state;
    fake_fail(asked(f, 0), ERR_UNAVAILABLE, PROVIDER_ERROR);
    fake_fail(asked(f, 1), ERR_UNAVAILABLE, PROVIDER_ERROR);
    buf_clear(&f->heard);
    fake_fail(asked(f, 2), ERR_UNAVAILABLE, PROVIDER_OVERLOADED);
    heard(f, "failed(PROVIDER_OVERLOADED) ");
    assert_null(f->call);
}

static void a_failure_that_the_next_would_share_is_not_handed_on(void **state) {
    (void)state;
    static const char *const reasons[] = {PROVIDER_REJECTED, PROVIDER_BROKEN, MODEL_CONTEXT,
                                          MODEL_REFUSED, "SOMETHING_ELSE"};
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        struct fixture f;
        fixture_init(&f);
        fake_fail(asked(&f, 0), ERR_UNAVAILABLE, reasons[i]);
        assert_null(f.call);
        assert_true(str_starts(buf_str(&f.heard), STR("failed(")));
        assert_int_equal(fake_calls_ever(f.models[1]), 0);
        fixture_done(&f);
    }
}

typedef bool say_fn(struct provider_call *call);

static bool says_text(struct provider_call *call) {
    return fake_text(call, STR("a"));
}

static bool says_thinking(struct provider_call *call) {
    return fake_thinking(call, STR("a"));
}

static bool says_call(struct provider_call *call) {
    return fake_tool_call(call, "c", "look", "{}");
}

static bool says_approval(struct provider_call *call) {
    return fake_approval(call, "c", "ok?");
}

static bool says_usage(struct provider_call *call) {
    return fake_usage(call, 1, 2);
}

static say_fn *const says[] = {says_text, says_thinking, says_call, says_approval, says_usage};

static void after_its_first_word_no_other_provider_is_asked(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(says); i++) {
        struct fixture f;
        fixture_init(&f);
        assert_true(says[i](asked(&f, 0)));
        buf_clear(&f.heard);
        fake_fail(asked(&f, 0), ERR_UNAVAILABLE, PROVIDER_OVERLOADED);
        heard(&f, "failed(PROVIDER_OVERLOADED) ");
        assert_int_equal(fake_calls_ever(f.models[1]), 0);
        fixture_done(&f);
    }
}

static void the_same_model_of_another_vendor_shows_its_provider(void **state) {
    struct fixture *f = *state;
    struct chain_link links[] = {{f->models[0], STR_EMPTY}, {f->models[1], STR_EMPTY}};
    f->chain->kind->cancel(f->call);
    provider_free(f->chain);
    f->chain = chain_provider_new(STR("row"), links, 2);
    f->call = provider_call_start(f->chain, f->loop, &f->request, on_reply, f);
    fake_fail(asked(f, 0), ERR_UNAVAILABLE, PROVIDER_ERROR);
    heard(f, "note(asked did not answer (the fake model failed), asking asked of fake) ");
}

/* --- pause, resume, cancel ---------------------------------------------------------------- */

static void a_pause_reaches_the_provider_that_is_asked_and_the_next(void **state) {
    struct fixture *f = *state;
    f->chain->kind->pause(f->call);
    f->chain->kind->pause(f->call); /* harmless */
    assert_true(fake_paused(asked(f, 0)));
    f->chain->kind->resume(f->call);
    f->chain->kind->resume(f->call);
    assert_false(fake_paused(asked(f, 0)));

    f->then = PAUSE; /* from inside the note, while no provider is asked */
    fake_fail(asked(f, 0), ERR_UNAVAILABLE, PROVIDER_ERROR);
    assert_true(fake_paused(asked(f, 1)));
    f->chain->kind->resume(f->call);
    assert_false(fake_paused(asked(f, 1)));
}

static void a_cancel_ends_it_from_inside_each_callback(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(says); i++) {
        struct fixture f;
        fixture_init(&f);
        f.then = CANCEL;
        assert_false(says[i](asked(&f, 0)));
        fixture_done(&f);
    }
    struct fixture f;
    fixture_init(&f);
    f.then = CANCEL; /* from inside the note */
    fake_fail(asked(&f, 0), ERR_UNAVAILABLE, PROVIDER_ERROR);
    assert_int_equal(fake_calls_ever(f.models[1]), 0);
    fixture_done(&f);

    fixture_init(&f); /* and from outside, at the second */
    fake_fail(asked(&f, 0), ERR_UNAVAILABLE, PROVIDER_ERROR);
    f.chain->kind->cancel(f.call);
    f.call = NULL;
    fixture_done(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_first_is_asked_for_its_own_model_and_all_it_says_is_passed_on),
        cmocka_unit_test(the_next_is_asked_when_one_does_not_answer_and_a_note_says_so),
        TEST(the_last_ones_failure_is_the_chains),
        cmocka_unit_test(a_failure_that_the_next_would_share_is_not_handed_on),
        cmocka_unit_test(after_its_first_word_no_other_provider_is_asked),
        TEST(the_same_model_of_another_vendor_shows_its_provider),
        TEST(a_pause_reaches_the_provider_that_is_asked_and_the_next),
        cmocka_unit_test(a_cancel_ends_it_from_inside_each_callback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
