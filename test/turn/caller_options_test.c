/* Options that the caller of a turn sets of each reply in it. */
#include "turn/stop_sequences.h"

#include "fake/provider_fake.h" /* named here: the build links them */
#include "fake/store_fake.h"
#include "fixture.h"
#include "turn/recover.h"

static const struct str stops[] = {STR_INIT("END"), STR_INIT("\n\n")};

static void ask_with(struct turn *turn, struct fixture *f,
                     const struct model_options *options) {
    struct run_request request = request_of("hi");
    request.options = options;
    start(turn, f, &request);
}

static void assert_options(struct fixture *f, const char *expected) {
    struct buf out;
    buf_init(&out, KIB);
    struct json_writer json = json_writer(&out);
    json_open_object(&json);
    model_options_write(fake_request(asked(f))->options, &json);
    json_close(&json);
    assert_str(buf_str(&out), expected);
    buf_done(&out);
}

static void each_reply_of_the_turn_has_them(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    struct model_options options = MODEL_OPTIONS_NONE;
    f->agents[0].options = (struct model_options){
        .output_tokens_max = 100, .temperature = 0.5, .top_p = -1, .effort = STR("low")};
    options.output_tokens_max = 50;
    options.top_p = 0.25;
    ask_with(&turn, f, &options);
    assert_options(f, "{\"output_tokens_max\":50,\"top_p\":0.25,\"effort\":\"low\"}");
    fake_tool_call(asked(f), "c1", "search", "{}");
    fake_done(asked(f), "m-1");
    turns(f);
    fake_tool_answer(f->search, 0, "{}");
    turns(f);
    assert_options(f, "{\"output_tokens_max\":50,\"top_p\":0.25,\"effort\":\"low\"}");
    reply(f, "ok");
    end(&turn);
    say(&turn, f, "again");
    assert_options(f, "{\"output_tokens_max\":100,\"temperature\":0.5,\"effort\":\"low\"}");
    reply(f, "ok");
    end(&turn);
}

static void a_reply_ends_at_a_stop_sequence_of_any_model(void **state) {
    struct fixture *f = *state;
    static const uint32_t lens[] = {3, 2, 5};
    struct model_options options = MODEL_OPTIONS_NONE;
    options.stops = stops;
    options.stop_count = ARRAY_LEN(stops);
    for (int at_once = 0; at_once < 2; at_once++) {
        struct turn turn;
        ask_with(&turn, f, &options);
        if (at_once) {
            fake_pieces(asked(f), STR("one ENDtwo"), lens, ARRAY_LEN(lens));
        } else {
            assert_true(fake_text(asked(f), STR("one E")));
            fake_text(asked(f), STR("NDtwo"));
        }
        assert_seen(&turn, at_once ? "started(hi) text(one) text( ) step(" PROVIDER_STOP_NOTE
                                     ") usage(0 -1) done(m-1 manager=one )"
                                   : "started(hi) text(one ) step(" PROVIDER_STOP_NOTE
                                     ") usage(0 -1) done(m-1 manager=one )");
        assert_int_equal(run_state(turn.run), RUN_DONE);
        assert_int_equal(fake_calls(f->model), 0);
        end(&turn);
    }
    struct buf history;
    buf_init(&history, KIB);
    write_history(f, &history);
    assert_str(buf_str(&history), "user=hi agent/manager=one  user=hi agent/manager=one ");
    buf_done(&history);
}

static void what_looks_like_one_is_shown_when_the_reply_is_over(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    struct model_options options = MODEL_OPTIONS_NONE;
    options.stops = stops;
    options.stop_count = ARRAY_LEN(stops);
    ask_with(&turn, f, &options);
    assert_true(fake_text(asked(f), STR("the EN")));
    turns(f);
    fake_done(asked(f), "m-1");
    turns(f);
    assert_seen(&turn, "started(hi) text(the ) text(EN) usage(0 -1) done(m-1 manager=the EN)");
    end(&turn);
}

static void on_recovered(const struct recovered *found, const struct err *failed, void *ctx) {
    (void)ctx;
    assert_null(failed);
    assert_int_equal(found->waiting, 1);
}

static void a_run_that_is_resumed_has_the_same(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    const struct session_name name = request_of("").name;
    struct model_options options = {.output_tokens_max = 9,
                                    .temperature = 0,
                                    .top_p = -1,
                                    .seeded = true,
                                    .seed = 7,
                                    .stops = stops,
                                    .stop_count = 2};
    ask_with(&turn, f, &options);
    assert_true(fake_approval(asked(f), "q", "May I?"));
    fake_done(asked(f), "m");
    turns(f);
    end(&turn);
    bool kept = false;
    run_host_cancel(&f->host, STR("the server stops"));
    keeper_flush(f->keeper, fixture_kept, &kept);
    turns(f);
    run_host_done(&f->host);
    session_table_free(f->engine.sessions);
    f->engine.sessions = session_table_new(f->store);
    run_host_init(&f->host, &f->engine, f->loop, f->keeper);
    recover_start(f->store, &f->host, NULL, on_recovered, NULL);
    turns(f);
    assert_true(session_has_pending(f->engine.sessions, &name));
    answer_as_human(&turn, f, "yes");
    assert_options(f, "{\"output_tokens_max\":9,\"temperature\":0,\"seed\":7,"
                      "\"stop\":[\"END\",\"\\n\\n\"]}");
    fake_text(asked(f), STR("done.\n\nmore"));
    turns(f);
    assert_true(str_find(buf_str(&turn.seen), STR("more")) == turn.seen.len);
    end(&turn);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TURN_TEST(each_reply_of_the_turn_has_them),
        TURN_TEST(a_reply_ends_at_a_stop_sequence_of_any_model),
        TURN_TEST(what_looks_like_one_is_shown_when_the_reply_is_over),
        cmocka_unit_test_setup_teardown(a_run_that_is_resumed_has_the_same,
                                        fixture_setup_stored, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
