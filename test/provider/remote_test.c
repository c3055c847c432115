#include "provider/remote.h"

#include "fake/http_fake.h" /* named here: the build links it */
#include "remote_fixture.h"

#include "daemon/daemon.h"
#include "helper/log_heard.h"
#include "provider/remote_inner.h"

/* --- states ------------------------------------------------------------------------------- */

static void only_the_moves_of_the_table_are_allowed(void **state) {
    (void)state;
    static const char *const rows[REMOTE_STATE_COUNT] = {
        /* asking waiting streaming over */
        [REMOTE_ASKING] = ".###",
        [REMOTE_WAITING] = "#..#",
        [REMOTE_STREAMING] = "...#",
        [REMOTE_OVER] = "....",
    };
    for (enum remote_state from = 0; from < REMOTE_STATE_COUNT; from++) {
        assert_true(states_name(remote_states, from).len);
        for (enum remote_state to = 0; to < REMOTE_STATE_COUNT; to++)
            assert_int_equal(states_allow(remote_states, from, to), rows[from][to] == '#');
    }
}

/* --- a question and its answer ------------------------------------------------------------ */

static void the_request_is_built_from_the_dialect_and_the_settings(void **state) {
    struct fixture *f = *state;
    f->options.settings.query = STR("v=1");
    begin(f);
    const struct http_request *request = fake_http_request(asked(f));
    assert_str(request->method, "POST");
    assert_str(request->url, "https://acme.test/v1/morse/default-model?v=1");
    assert_str(request->body, "{\"say\":\"hi\"}");
    assert_str(fake_http_header(asked(f), "content-type"), "application/json");
    assert_str(fake_http_header(asked(f), "accept"), "text/event-stream");
    assert_str(fake_http_header(asked(f), "user-agent"), "weir/" WEIR_VERSION);
    assert_str(fake_http_header(asked(f), "authorization"), "Bearer " KEY);
    assert_str(fake_http_header(asked(f), "x-gateway"), GATEWAY_KEY);
    assert_str(fake_http_header(asked(f), "morse-version"), "8"); /* the settings' word */
    assert_int_equal(request->header_count, 6);
    assert_int_equal(request->connect_ms, 10000);
    assert_int_equal(request->first_byte_ms, 60000);
    assert_int_equal(request->stall_ms, 60000);
    assert_int_equal(request->total_ms, 600000);
    assert_int_equal(request->body_max_bytes, 16 * MIB);
    assert_int_equal(request->redirects_max, 0);
    assert_int_equal(request->reach, HTTP_ANYWHERE);
    assert_ptr_equal(fake_http_loop(asked(f)), f->loop);
}

static void without_a_key_none_is_sent(void **state) {
    struct fixture *f = *state;
    f->options.settings.key = STR_EMPTY;
    begin(f);
    assert_str(fake_http_header(asked(f), "authorization"), "");
}

static void the_key_goes_into_the_header_that_the_settings_name(void **state) {
    struct fixture *f = *state;
    f->options.settings.key_header = STR("api-key");
    begin(f);
    assert_str(fake_http_header(asked(f), "api-key"), KEY);
    assert_str(fake_http_header(asked(f), "authorization"), "");
}

static void a_stream_is_delivered_as_it_arrives_however_it_is_cut(void **state) {
    (void)state;
    struct str reply = STR(REPLY);
    for (size_t cut = 1; cut < reply.len; cut++) {
        struct fixture f;
        fixture_init(&f);
        begin(&f);
        stream(&f);
        assert_true(fake_http_body(asked(&f), str_head(reply, cut)));
        assert_true(fake_http_body(asked(&f), str_skip(reply, cut)));
        fake_http_end(asked(&f));
        heard(&f, REPLY_HEARD);
        fixture_done(&f);
    }
}

static void the_model_is_the_replys_else_the_requests_else_the_settings(void **state) {
    struct fixture *f = *state;
    begin(f);
    stream(f);
    assert_true(send(f, "data: done\n\n"));
    fake_http_end(asked(f));
    heard(f, "done(default-model) ");
    f->request.model = STR("asked");
    begin(f);
    stream(f);
    assert_true(send(f, "data: done\n\n"));
    fake_http_end(asked(f));
    heard(f, "done(asked) ");
}

static void a_reply_cut_at_its_limit_is_done_and_says_so(void **state) {
    struct fixture *f = *state;
    begin(f);
    stream(f);
    assert_true(send(f, "data: t:Hi cut\n\n"));
    heard(f, "text(Hi) ");
    fake_http_end(asked(f));
    heard(f, "note(the reply was cut at its token limit) done(default-model) ");
}

static void an_impossible_request_fails_after_the_start(void **state) {
    struct fixture *f = *state;
    f->request.schema = STR("{}");
    begin(f);
    assert_int_equal(fake_http_calls_ever(f->pool), 0);
    loop_turn(f->loop);
    heard(f, "failed(PROVIDER_REJECTED) ");
    assert_int_equal(f->why.code, ERR_INVALID_ARGUMENT);
    assert_str(err_text(&f->why), "provider 'acme': Morse knows no schema");

    begin(f);
    pause_call(f);
    loop_turn(f->loop);
    resume(f);
    heard(f, "");
    loop_turn(f->loop);
    heard(f, "failed(PROVIDER_REJECTED) ");

    begin(f);
    f->provider->kind->cancel(f->call);
    f->call = NULL;
    loop_turn(f->loop);
    heard(f, "");
}

/* --- what is reported, and to whom -------------------------------------------------------- */

static void a_caller_reads_a_sentence_and_the_log_the_rest(void **state) {
    struct fixture *f = *state;
    struct log_heard log;
    f->request.by_operator = false;
    f->request.run = 7;
    log_begin(&log);
    begin(f);
    answer(f, 401, "application/json",
           "{\"error\":{\"message\":\"No such key. See https://acme.test/keys\"}}", -1);
    heard(f, "failed(PROVIDER_AUTH) ");
    assert_str(err_text(&f->why), "the model's provider refused the server's credentials");
    assert_int_equal(f->why.code, ERR_FAILED_PRECONDITION);
    assert_true(log_holds(&log, "warning: run 7: provider 'acme': Morse answered 401: No such "
                                "key. See https://acme.test/keys; check its key: weir provider "
                                "test acme (PROVIDER_AUTH)\n"));

    begin(f);
    stream(f);
    assert_false(send(f, "data: t:Hi\n\ndata: bad\n\n"));
    heard(f, "text(Hi) failed(PROVIDER_ERROR) ");
    assert_str(err_text(&f->why),
               "the model's provider reported an error of its own; try again "
               "in a moment");
    assert_true(log_holds(&log, "run 7: provider 'acme': Morse sent an error with *** "
                                "(PROVIDER_ERROR)\n"));
    assert_false(log_holds(&log, KEY));
    log_end(&log);
}

static void our_own_refusals_reach_the_caller_in_our_words(void **state) {
    struct fixture *f = *state;
    struct log_heard log;
    f->request.by_operator = false;
    f->request.schema = STR("{}");
    log_begin(&log);
    begin(f);
    loop_turn(f->loop);
    heard(f, "failed(PROVIDER_REJECTED) ");
    assert_str(err_text(&f->why), "Morse knows no schema");
    assert_true(log_holds(&log, "provider 'acme': Morse knows no schema"));
    log_end(&log);
}

static void no_sentence_holds_what_only_an_operator_can_use(void **state) {
    (void)state;
    static const unsigned answers[] = {400, 401, 402, 403, 404, 408, 409, 413, 422,
                                       429, 500, 501, 502, 503, 504, 529, 200, 302};
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct fixture f;
        struct log_heard log;
        fixture_init(&f);
        f.options.retries_max = 0;
        f.request.by_operator = false;
        log_begin(&log);
        begin(&f);
        answer(&f, answers[i], "text/plain", "see https://acme.test: key, quota of org-1", -1);
        assert_null(f.call);
        static const char *const never[] = {"acme", "Morse", "http", "org-1",   "weir",
                                            "key",  "chain", "URL",  "answered"};
        for (size_t n = 0; n < ARRAY_LEN(never); n++)
            assert_int_equal(str_find(err_text(&f.why), str_from(never[n])),
                             strlen(f.why.text));
        log_end(&log);
        fixture_done(&f);
    }
}

/* --- answers that are no stream ----------------------------------------------------------- */

#define WHOLE "{\"morse\":\"h:hm t:Hi t:there c:c1 u o:x m:m-1 done\"}"
#define WHOLE_HEARD                                                                            \
    "note(" PROVIDER_WHOLE_NOTE ") thinking(hm) text(Hi) text(there) call(c1) usage(m-1) "     \
    "opaque(x) opaque(last) done(m-1) "

static void an_answer_in_json_is_read_as_a_whole(void **state) {
    (void)state;
    struct str body = STR(WHOLE);
    for (size_t cut = 1; cut < body.len; cut++) {
        struct fixture f;
        fixture_init(&f);
        begin(&f);
        assert_true(fake_http_head(asked(&f), 200, "application/json; charset=utf-8"));
        assert_true(fake_http_body(asked(&f), str_head(body, cut)));
        assert_true(fake_http_body(asked(&f), str_skip(body, cut)));
        fake_http_end(asked(&f));
        heard(&f, WHOLE_HEARD);
        begin(&f); /* it did not refuse to stream: it is asked to again */
        assert_str(fake_http_request(asked(&f))->body, "{\"say\":\"hi\"}");
        fixture_done(&f);
    }
}

static void a_whole_answer_can_be_cancelled_in_each_callback(void **state) {
    (void)state;
    for (size_t at = 0; at < 9; at++) {
        struct fixture f;
        fixture_init(&f);
        f.then = CANCEL;
        f.then_at = at;
        begin(&f);
        answer(&f, 200, "application/json", WHOLE, -1);
        assert_int_equal(f.callbacks, at + 1);
        buf_clear(&f.heard);
        fixture_done(&f);
    }
}

static void a_whole_answer_waits_for_the_end_of_a_pause(void **state) {
    struct fixture *f = *state;
    f->then = PAUSE;
    f->then_at = 1;
    begin(f);
    answer(f, 200, "application/json", WHOLE, -1);
    heard(f, "note(" PROVIDER_WHOLE_NOTE ") thinking(hm) ");
    resume(f);
    loop_turn(f->loop);
    heard(f, "text(Hi) text(there) call(c1) usage(m-1) opaque(x) opaque(last) done(m-1) ");
}

static void a_whole_answer_that_breaks_off_or_fails_has_failed(void **state) {
    struct fixture *f = *state;
    begin(f);
    assert_true(fake_http_head(asked(f), 200, "application/json"));
    assert_true(send(f, "{\"morse\":\"t:"));
    fake_http_fail(asked(f), ERR_UNAVAILABLE, HTTP_READING);
    heard(f, "failed(PROVIDER_BROKEN) ");
    assert_why(f, "its answer was cut off");

    begin(f);
    assert_true(fake_http_head(asked(f), 200, "application/json"));
    fake_http_fail(asked(f), ERR_DEADLINE_EXCEEDED, HTTP_READING);
    heard(f, "failed(PROVIDER_TIMEOUT) ");

    begin(f);
    answer(f, 200, "application/json", "{\"morse\":\"t:Hi bad\"}", -1);
    heard(f, "note(" PROVIDER_WHOLE_NOTE ") text(Hi) failed(PROVIDER_ERROR) ");

    begin(f);
    answer(f, 200, "application/json", "{\"morse\":\"t:Hi\"}", -1);
    heard(f, "note(" PROVIDER_WHOLE_NOTE ") text(Hi) failed(PROVIDER_BROKEN) ");
}

#define NO_STREAM                                                                              \
    "{\"error\":{\"message\":\"Unsupported value: 'stream'\",\"param\":\"stream\"}}"

static void a_provider_that_refuses_to_stream_is_asked_without_from_then_on(void **state) {
    (void)state;
    static const unsigned answers[] = {400, 404, 405, 422, 501};
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct fixture f;
        fixture_init(&f);
        begin(&f);
        answer(&f, answers[i], "application/json", NO_STREAM, -1);
        heard(&f, "");
        assert_str(fake_http_request(asked(&f))->body, "{\"say\":\"hi\",\"whole\":true}");
        assert_str(fake_http_header(asked(&f), "accept"), "application/json");
        assert_int_equal(fake_http_request(asked(&f))->first_byte_ms, 0);
        assert_int_equal(fake_http_request(asked(&f))->total_ms, 600000);
        answer(&f, 200, "application/json", WHOLE, -1);
        heard(&f, WHOLE_HEARD);

        f.callbacks = 0; /* the same provider, once more */
        f.call = provider_call_start(f.provider, f.loop, &f.request, on_reply, &f);
        assert_str(fake_http_request(asked(&f))->body, "{\"say\":\"hi\",\"whole\":true}");
        stream(&f); /* and if it streams, that is as good */
        assert_true(send(&f, REPLY));
        fake_http_end(asked(&f));
        heard(&f, REPLY_HEARD);
        assert_int_equal(fake_http_calls_ever(f.pool), 3);
        fixture_done(&f);
    }
}

static void a_refusal_for_another_reason_is_not_remembered(void **state) {
    struct fixture *f = *state;
    begin(f);
    answer(f, 400, "application/json", NO_STREAM, -1);
    answer(f, 400, "application/json", "{\"error\":{\"message\":\"stream of nonsense\"}}", -1);
    heard(f, "failed(PROVIDER_REJECTED) ");
    assert_why(f, "stream of nonsense");
    f->call = provider_call_start(f->provider, f->loop, &f->request, on_reply, f);
    assert_str(fake_http_request(asked(f))->body, "{\"say\":\"hi\"}");
    answer(f, 400, "application/json", "{\"error\":{\"message\":\"upstream says no\"}}", -1);
    heard(f, "failed(PROVIDER_REJECTED) ");
    f->call = provider_call_start(f->provider, f->loop, &f->request, on_reply, f);
    answer(f, 401, "application/json", NO_STREAM, -1);
    heard(f, "failed(PROVIDER_AUTH) ");
    assert_int_equal(fake_http_calls_ever(f->pool), 4);
}

/* --- U2: half an answer ------------------------------------------------------------------- */

static void a_stream_that_does_not_say_that_it_is_done_has_failed(void **state) {
    (void)state;
    static const char *const halves[] = {"data: t:Hi\n\n", "data: t:Hi\n\ndata: done",
                                         "data: t:Hi\n\ndata: do"};
    for (size_t i = 0; i < ARRAY_LEN(halves); i++) {
        struct fixture f;
        fixture_init(&f);
        begin(&f);
        stream(&f);
        assert_true(send(&f, halves[i]));
        fake_http_end(asked(&f));
        heard(&f, "text(Hi) failed(PROVIDER_BROKEN) ");
        assert_str(err_text(&f.why), "provider 'acme': the answer stopped half way");
        fixture_done(&f);
    }
    struct fixture f;
    fixture_init(&f);
    begin(&f);
    stream(&f);
    fake_http_end(asked(&f)); /* not one byte */
    heard(&f, "failed(PROVIDER_BROKEN) ");
    fixture_done(&f);
}

static void a_reply_that_is_over_need_not_be_closed(void **state) {
    struct fixture *f = *state;
    begin(f);
    stream(f);
    assert_true(send(f, "data: t:Hi done over\n\n"));
    heard(f, "text(Hi) ");
    loop_advance(f->loop, 499); /* so that a connection which is closed can be used again */
    heard(f, "");
    loop_advance(f->loop, 1);
    heard(f, "done(default-model) ");
    assert_int_equal(fake_http_cancels(f->pool), 1);

    begin(f);
    stream(f);
    assert_true(send(f, "data: done over\n\n"));
    fake_http_end(asked(f));
    heard(f, "done(default-model) ");
    assert_int_equal(fake_http_cancels(f->pool), 1);

    begin(f);
    stream(f);
    assert_true(send(f, "data: done over\n\n"));
    fake_http_fail(asked(f), ERR_DEADLINE_EXCEEDED, HTTP_READING);
    heard(f, "done(default-model) ");

    begin(f);
    stream(f);
    assert_true(send(f, "data: t:Hi over\n\n")); /* and was not complete */
    loop_advance(f->loop, 500);
    heard(f, "text(Hi) failed(PROVIDER_BROKEN) ");
}

static void bytes_after_the_end_are_no_part_of_the_answer(void **state) {
    struct fixture *f = *state;
    begin(f);
    stream(f);
    assert_true(send(f, "data: t:Hi done over\n\ndata: t:ghost\n\n"));
    loop_advance(f->loop, 300);
    assert_true(send(f, "data: t:ghost bad\n\n"));
    loop_advance(f->loop, 200);
    heard(f, "text(Hi) done(default-model) ");
}

static void a_reply_that_has_finished_is_given_a_moment_for_its_counts(void **state) {
    struct fixture *f = *state;
    begin(f);
    stream(f);
    assert_true(send(f, "data: t:Hi done finished\n\n"));
    loop_advance(f->loop, 999);
    assert_true(send(f, "data: u\n\n"));
    heard(f, "text(Hi) usage(m-1) ");
    loop_advance(f->loop, 999);
    heard(f, "");
    loop_advance(f->loop, 1);
    heard(f, "done(default-model) ");
    assert_int_equal(fake_http_cancels(f->pool), 1);

    begin(f); /* whatever the connection does then */
    stream(f);
    assert_true(send(f, "data: t:Hi done finished\n\n"));
    fake_http_fail(asked(f), ERR_UNAVAILABLE, HTTP_READING);
    heard(f, "text(Hi) done(default-model) ");

    begin(f); /* an end that is said needs no moment */
    stream(f);
    assert_true(send(f, "data: t:Hi done finished\n\ndata: over\n\n"));
    loop_advance(f->loop, 500);
    heard(f, "text(Hi) done(default-model) ");
}

static void a_pause_does_not_cost_a_finished_reply_its_counts(void **state) {
    struct fixture *f = *state;
    begin(f);
    stream(f);
    assert_true(send(f, "data: t:Hi done finished\n\n"));
    heard(f, "text(Hi) ");
    pause_call(f);
    loop_advance(f->loop, 5000);
    resume(f);
    loop_turn(f->loop);
    loop_advance(f->loop, 999);
    heard(f, "");
    assert_true(send(f, "data: u\n\n"));
    loop_advance(f->loop, 1000);
    heard(f, "usage(m-1) done(default-model) ");
}

static void a_reply_that_ends_during_a_pause_is_delivered_after_it(void **state) {
    struct fixture *f = *state;
    begin(f);
    stream(f);
    assert_true(send(f, "data: t:Hi done over\n\n"));
    heard(f, "text(Hi) ");
    pause_call(f);
    loop_advance(f->loop, 5000);
    heard(f, "");
    resume(f);
    loop_turn(f->loop);
    heard(f, "done(default-model) ");
}

static void a_reset_in_the_stream_fails_and_is_never_asked_again(void **state) {
    struct fixture *f = *state;
    begin(f);
    stream(f);
    assert_true(send(f, "data: t:Hi\n\n"));
    fake_http_fail(asked(f), ERR_UNAVAILABLE, HTTP_READING);
    loop_advance(f->loop, 100000);
    heard(f, "text(Hi) failed(PROVIDER_BROKEN) ");
    assert_int_equal(fake_http_calls_ever(f->pool), 1);
    begin(f);
    stream(f); /* also when nothing was said yet */
    fake_http_fail(asked(f), ERR_UNAVAILABLE, HTTP_READING);
    heard(f, "failed(PROVIDER_BROKEN) ");
}

static void an_answer_that_is_too_large_has_failed(void **state) {
    struct fixture *f = *state;
    f->options.reply_max_bytes = 64;
    begin(f);
    assert_int_equal(fake_http_request(asked(f))->body_max_bytes, 64);
    stream(f);
    char line[80];
    memset(line, 'x', sizeof(line));
    assert_false(fake_http_body(asked(f), str_of(line, sizeof(line))));
    heard(f, "failed(MODEL_ANSWER_TOO_LONG) ");

    begin(f);
    stream(f);
    fake_http_fail(asked(f), ERR_TOO_LARGE, HTTP_READING);
    heard(f, "failed(MODEL_ANSWER_TOO_LONG) ");
}

/* --- U3: 200, and yet no answer ---------------------------------------------------------- */

static void an_error_inside_the_stream_ends_it_there(void **state) {
    struct fixture *f = *state;
    begin(f);
    stream(f);
    assert_false(send(f, "data: t:Hi\n\ndata: bad\n\ndata: t:no done\n\n"));
    heard(f, "text(Hi) failed(PROVIDER_ERROR) ");
    assert_str(err_text(&f->why), "provider 'acme': Morse sent an error with ***");
    assert_int_equal(fake_http_cancels(f->pool), 1);
}

static void a_200_that_is_not_a_stream_reports_its_type(void **state) {
    (void)state;
    static const struct {
        const char *type, *body, *heard, *says;
    } cases[] = {
        {"text/html", "<html>\n<h1>Welcome</h1>", "failed(PROVIDER_BROKEN) ",
         "200 with 'text/html' and no event stream (<html> <h1>Welcome</h1>)"},
        {"text/event-streams", "data: done\n\n", "failed(PROVIDER_BROKEN) ", "event-streams"},
        {"", "", "failed(PROVIDER_BROKEN) ", "no event stream"},
        {"application/json", "{}", "failed(PROVIDER_BROKEN) ",
         "200 with 'application/json' and no event stream ({}); check its base URL"},
        {"application/json", "[]", "failed(PROVIDER_BROKEN) ", "no event stream ([])"},
        {"application/json", "{\"error\":{\"message\":\"busy\",\"type\":\"overloaded_error\"}}",
         "failed(PROVIDER_OVERLOADED) ", "busy"},
        {"application/json", "[{\"error\":{\"message\":\"No\",\"code\":401}}]",
         "failed(PROVIDER_AUTH) ", "No"},
        {"application/json", "{\"choi", "failed(PROVIDER_BROKEN) ", "{\"choi"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture f;
        fixture_init(&f);
        begin(&f);
        answer(&f, 200, cases[i].type, cases[i].body, -1);
        heard(&f, cases[i].heard);
        assert_why(&f, cases[i].says);
        assert_int_equal(fake_http_calls_ever(f.pool), 1);
        fixture_done(&f);
    }
}

static void any_spelling_of_the_content_type_is_a_stream(void **state) {
    (void)state;
    static const char *const types[] = {"text/event-stream", "Text/Event-Stream",
                                        "text/event-stream ; charset=utf-8"};
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        struct fixture f;
        fixture_init(&f);
        begin(&f);
        assert_true(fake_http_head(asked(&f), 200, types[i]));
        assert_true(send(&f, "data: done\n\n"));
        fake_http_end(asked(&f));
        heard(&f, "done(default-model) ");
        fixture_done(&f);
    }
}

static void a_refusal_is_read_so_far_and_no_further(void **state) {
    struct fixture *f = *state;
    f->options.retries_max = 0;
    begin(f);
    struct http_call *call = asked(f);
    assert_true(fake_http_head(call, 500, "text/html"));
    char page[KIB];
    memset(page, 'x', sizeof(page));
    for (int i = 0; i < 63; i++) assert_true(fake_http_body(call, str_of(page, KIB)));
    assert_true(fake_http_body(call, str_of(page, KIB - 1)));
    assert_false(fake_http_body(call, str_of(page, KIB)));
    heard(f, "failed(PROVIDER_ERROR) ");
    assert_why(f, "xxx...");
}

static void a_refusal_that_breaks_off_counts_with_its_status(void **state) {
    struct fixture *f = *state;
    begin(f);
    assert_true(fake_http_head(asked(f), 401, "application/json"));
    assert_true(send(f, "{\"error\":"));
    fake_http_fail(asked(f), ERR_UNAVAILABLE, HTTP_READING);
    heard(f, "failed(PROVIDER_AUTH) ");
}

/* --- secrets ------------------------------------------------------------------------------ */

static void assert_no_secret(struct str text) {
    static const char *const pieces[] = {KEY, GATEWAY_KEY, "0815-4711-ab", "secret-98765"};
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        if (str_find(text, str_from(pieces[i])) < text.len)
            fail_msg("a secret in: " STR_FMT, STR_ARG(text));
    }
}

static void no_secret_is_shown_even_when_the_vendor_repeats_it(void **state) {
    (void)state;
    static const char *const bodies[] = {
        "{\"error\":{\"message\":\"Incorrect API key provided: " KEY ".\"}}",
        "{\"error\":{\"message\":\"Incorrect API key provided: canary-0***bcdef.\"}}",
        "{\"error\":{\"message\":\"got 'Bearer " KEY "'\"}}",
        "{\"error\":{\"message\":\"tail 0815-4711-abcdef, " GATEWAY_KEY "\"}}",
        "<html>" KEY "</html>",
        KEY,
    };
    static const unsigned answers[] = {200, 401, 500};
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        for (size_t a = 0; a < ARRAY_LEN(answers); a++) {
            struct fixture f;
            fixture_init(&f);
            f.options.retries_max = 0;
            begin(&f);
            answer(&f, answers[a], KEY, bodies[i], -1);
            assert_null(f.call);
            assert_no_secret(err_text(&f.why));
            assert_int_equal(str_find(err_text(&f.why), STR("canary")), err_text(&f.why).len);
            fixture_done(&f);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_caller_reads_a_sentence_and_the_log_the_rest),
        TEST(our_own_refusals_reach_the_caller_in_our_words),
        cmocka_unit_test(no_sentence_holds_what_only_an_operator_can_use),
        cmocka_unit_test(an_answer_in_json_is_read_as_a_whole),
        cmocka_unit_test(a_whole_answer_can_be_cancelled_in_each_callback),
        TEST(a_whole_answer_waits_for_the_end_of_a_pause),
        TEST(a_whole_answer_that_breaks_off_or_fails_has_failed),
        cmocka_unit_test(a_provider_that_refuses_to_stream_is_asked_without_from_then_on),
        TEST(a_refusal_for_another_reason_is_not_remembered),
        TEST(bytes_after_the_end_are_no_part_of_the_answer),
        TEST(a_reply_that_has_finished_is_given_a_moment_for_its_counts),
        TEST(a_pause_does_not_cost_a_finished_reply_its_counts),
        cmocka_unit_test(only_the_moves_of_the_table_are_allowed),
        TEST(the_request_is_built_from_the_dialect_and_the_settings),
        TEST(without_a_key_none_is_sent),
        TEST(the_key_goes_into_the_header_that_the_settings_name),
        cmocka_unit_test(a_stream_is_delivered_as_it_arrives_however_it_is_cut),
        TEST(the_model_is_the_replys_else_the_requests_else_the_settings),
        TEST(a_reply_cut_at_its_limit_is_done_and_says_so),
        TEST(an_impossible_request_fails_after_the_start),
        cmocka_unit_test(a_stream_that_does_not_say_that_it_is_done_has_failed),
        TEST(a_reply_that_is_over_need_not_be_closed),
        TEST(a_reply_that_ends_during_a_pause_is_delivered_after_it),
        TEST(a_reset_in_the_stream_fails_and_is_never_asked_again),
        TEST(an_answer_that_is_too_large_has_failed),
        TEST(an_error_inside_the_stream_ends_it_there),
        cmocka_unit_test(a_200_that_is_not_a_stream_reports_its_type),
        cmocka_unit_test(any_spelling_of_the_content_type_is_a_stream),
        TEST(a_refusal_is_read_so_far_and_no_further),
        TEST(a_refusal_that_breaks_off_counts_with_its_status),
        cmocka_unit_test(no_secret_is_shown_even_when_the_vendor_repeats_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
