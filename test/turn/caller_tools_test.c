#include "turn/caller_tools.h"

#include "fake/provider_fake.h" /* named here: the build links them */
#include "fake/store_fake.h"
#include "fixture.h"

#define OBJECT "{\"type\":\"object\"}"

static const struct tool_offer weather[] = {
    {STR_INIT("get_weather"), STR_INIT("The weather."), STR_INIT(OBJECT)},
    {STR_INIT("get_time"), STR_INIT("The time."), STR_INIT("")},
};

static void ask_with(struct turn *turn, struct fixture *f, const char *text,
                     const struct message *messages, size_t count) {
    struct run_request request = request_of(text);
    request.tools = weather;
    request.tool_count = ARRAY_LEN(weather);
    request.messages = messages;
    request.message_count = count;
    start(turn, f, &request);
}

static void assert_offered(struct fixture *f, const char *expected) {
    const struct provider_request *request = fake_request(asked(f));
    struct buf out;
    buf_init(&out, KIB);
    for (size_t i = 0; i < request->tool_count; i++)
        buf_printf(&out, "%s" STR_FMT, i ? " " : "", STR_ARG(request->tools[i].name));
    assert_str(buf_str(&out), expected);
    buf_done(&out);
}

static void a_call_of_one_ends_the_turn_and_its_result_comes_with_the_next(void **state) {
    (void)state;
    for (int with_store = 0; with_store < 2; with_store++) {
        struct fixture f;
        struct turn turn;
        fixture_init(&f, with_store);
        ask_with(&turn, &f, "is it warm?", NULL, 0);
        assert_offered(&f, "get_weather get_time");
        fake_text(asked(&f), STR("let me see"));
        fake_tool_call(asked(&f), "w1", "get_weather", "{\"at\":\"Rome\"}");
        fake_tool_call(asked(&f), "t1", "get_time", "{}");
        fake_done(asked(&f), "m-1");
        turns(&f);
        assert_int_equal(run_state(turn.run), RUN_DONE);
        assert_seen(&turn, "started(is it warm?) text(let me see) "
                           "usage(0 -1) call(w1 get_weather {\"at\":\"Rome\"}) "
                           "call(t1 get_time {}) done(m-1)");
        end(&turn);
        const struct message results[] = {
            {.role = MESSAGE_TOOL_RESULT, .call_id = STR("w1"), .text = STR("{\"c\":31}")},
            {.role = MESSAGE_TOOL_RESULT, .call_id = STR("t1"), .text = STR("{\"h\":9}")}};
        ask_with(&turn, &f, "", results, 2);
        const struct provider_request *request = fake_request(asked(&f));
        struct buf out;
        buf_init(&out, KIB);
        for (size_t i = 0; i < request->message_count; i++)
            write_message(&out, &request->messages[i]);
        assert_str(
            buf_str(&out),
            "user=is it warm? agent/manager=let me see call/get_weather={\"at\":\"Rome\"} "
            "call/get_time={} result={\"c\":31} result={\"h\":9}");
        buf_done(&out);
        reply(&f, "31 degrees");
        assert_int_equal(run_state(turn.run), RUN_DONE);
        end(&turn);
        fixture_done(&f);
    }
}

/* The caller sends the whole conversation again, with the results at its end, or behind them the next
 * question. */
static void what_the_session_has_is_not_taken_twice(void **state) {
    (void)state;
    static const struct message list[] = {
        {.role = MESSAGE_USER, .text = STR_INIT("x")},
        {.role = MESSAGE_TOOL_CALL,
         .call_id = STR_INIT("w1"),
         .tool = STR_INIT("get_weather"),
         .text = STR_INIT("{}")},
        {.role = MESSAGE_TOOL_RESULT,
         .call_id = STR_INIT("w1"),
         .tool = STR_INIT("get_weather"),
         .text = STR_INIT("{\"c\":1}")},
        {.role = MESSAGE_USER, .text = STR_INIT("and tomorrow?")}};
    for (size_t count = 3; count <= 4; count++) {
        struct fixture f;
        struct turn turn;
        fixture_init(&f, false);
        ask_with(&turn, &f, "x", NULL, 0);
        fake_tool_call(asked(&f), "w1", "get_weather", "{}");
        fake_done(asked(&f), "m-1");
        end(&turn);
        ask_with(&turn, &f, count == 3 ? "" : "and tomorrow?", list, count);
        const struct provider_request *request = fake_request(asked(&f));
        struct buf out;
        buf_init(&out, KIB);
        for (size_t i = 0; i < request->message_count; i++)
            write_message(&out, &request->messages[i]);
        assert_str(buf_str(&out), count == 3 ? "user=x call/get_weather={} result={\"c\":1}"
                                             : "user=x call/get_weather={} result={\"c\":1} "
                                               "user=and tomorrow?");
        buf_done(&out);
        reply(&f, "y");
        end(&turn);
        fixture_done(&f);
    }
}

static void a_call_that_is_never_answered_stays_open(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    ask_with(&turn, f, "x", NULL, 0);
    fake_tool_call(asked(f), "w1", "get_weather", "{}");
    fake_done(asked(f), "m-1");
    end(&turn);
    assert_history(f, "user=x call/get_weather={}");
    say(&turn, f, "never mind");
    assert_asked(f, "user=x call/get_weather={} user=never mind");
    reply(f, "fine");
    end(&turn);
}

static void a_reply_that_mixes_makes_none_of_the_agents_calls(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    ask_with(&turn, f, "x", NULL, 0);
    fake_tool_call(asked(f), "s1", "search", "{}");
    fake_tool_call(asked(f), "w1", "get_weather", "{}");
    fake_done(asked(f), "m-1");
    turns(f);
    assert_int_equal(fake_tool_calls(f->search), 0);
    assert_int_equal(run_state(turn.run), RUN_DONE);
    struct str seen = buf_str(&turn.seen);
    assert_true(str_find(seen, STR("result(s1 {\"error\":\"this call was not made")) <
                seen.len);
    assert_true(str_find(seen, STR("result(w1")) == seen.len);
    end(&turn);
}

static void the_agents_own_calls_are_made_as_usual(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    ask_with(&turn, f, "x", NULL, 0);
    fake_tool_call(asked(f), "s1", "search", "{}");
    fake_done(asked(f), "m-1");
    turns(f);
    fake_tool_answer(f->search, 0, "{\"hits\":1}");
    turns(f);
    assert_int_equal(fake_calls_ever(f->model), 2);
    reply(f, "found");
    assert_seen(&turn, "started(x) usage(0 -1) call(s1 search {}) result(s1 {\"hits\":1}) "
                       "text(found) usage(1 -1) done(m-1 manager=found)");
    end(&turn);
}

static void a_result_without_a_call_is_refused(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    const struct message results[] = {
        {.role = MESSAGE_TOOL_RESULT, .call_id = STR("other"), .text = STR("{}")}};
    ask_with(&turn, f, "", results, 1);
    assert_seen(&turn, "failed(INVALID_ARGUMENT UNKNOWN_CALL)");
    end(&turn);
}

static void a_contract_of_text_hands_arguments_over_as_they_were_written(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    struct run_request request = request_of("x");
    request.tools = weather;
    request.tool_count = ARRAY_LEN(weather);
    request.args_as_text = true;
    start(&turn, f, &request);
    fake_tool_call(asked(f), "w1", "get_weather", "{\"at\":\"Ro");
    fake_tool_call(asked(f), "t1", "get_time", "");
    fake_done(asked(f), "m-1");
    turns(f);
    assert_seen(&turn, "started(x) usage(0 -1) call(w1 get_weather {\"at\":\"Ro) "
                       "call(t1 get_time {}) done(m-1)");
    end(&turn);
}

/* All other contracts carry an object: {} would be a call that the model has not made. */
static void arguments_that_cannot_be_read_are_not_handed_over_as_an_object(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    ask_with(&turn, f, "x", NULL, 0);
    fake_tool_call(asked(f), "w1", "get_weather", "{\"at\":\"Ro");
    fake_tool_call(asked(f), "t1", "get_time", "{}");
    fake_tool_call(asked(f), "s1", "search", "{\"q\":1}");
    fake_done(asked(f), "m-1");
    turns(f);
    assert_int_equal(run_state(turn.run), RUN_WORKING);
    fake_tool_answer(f->search, 0, "{\"hits\":1}");
    turns(f);
    struct str seen = buf_str(&turn.seen);
    assert_true(
        str_find(seen, STR("result(w1 {\"error\":\"tool 'get_weather' was not called: its "
                           "arguments are not one JSON object: JSON 1:10")) < seen.len);
    assert_true(str_find(seen, STR("they were: {\\\"at\\\":\\\"Ro")) < seen.len);
    assert_true(str_find(seen, STR("result(t1 {\"error\":\"this call was not made, because the "
                                   "arguments of another")) < seen.len);
    assert_int_equal(fake_calls_ever(f->model), 2); /* it reads that, and calls again */
    fake_tool_call(asked(f), "w2", "get_weather", "{\"at\":\"Rome\"}");
    fake_done(asked(f), "m-1");
    turns(f);
    assert_int_equal(run_state(turn.run), RUN_DONE);
    seen = buf_str(&turn.seen);
    assert_true(str_find(seen, STR("call(w2 get_weather {\"at\":\"Rome\"}) done(m-1)")) <
                seen.len);
    end(&turn);
}

/* A call of get_weather, and its result in a turn of its own. */
static void answer_weather(struct fixture *f, const char *result) {
    struct turn turn;
    const struct message results[] = {
        {.role = MESSAGE_TOOL_RESULT, .call_id = STR("w1"), .text = str_from(result)}};
    ask_with(&turn, f, "", results, 1);
    reply(f, "31 degrees");
    assert_int_equal(run_state(turn.run), RUN_DONE);
    end(&turn);
}

static void a_call_has_one_result(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    const struct message other[] = {
        {.role = MESSAGE_TOOL_RESULT, .call_id = STR("w1"), .text = STR("{\"c\":-5}")}};
    const struct message twice[] = {
        {.role = MESSAGE_TOOL_CALL, .call_id = STR("x"), .tool = STR("a"), .text = STR("{}")},
        {.role = MESSAGE_TOOL_CALL, .call_id = STR("x"), .tool = STR("a"), .text = STR("{}")},
        {.role = MESSAGE_TOOL_RESULT, .call_id = STR("x"), .text = STR("{\"n\":1}")},
        {.role = MESSAGE_TOOL_RESULT, .call_id = STR("x"), .text = STR("{\"n\":2}")},
        {.role = MESSAGE_TOOL_RESULT, .call_id = STR("x"), .text = STR("{\"n\":3}")},
        {.role = MESSAGE_USER, .text = STR("go on")}};
    ask_with(&turn, f, "x", NULL, 0);
    fake_tool_call(asked(f), "w1", "get_weather", "{}");
    fake_done(asked(f), "m-1");
    end(&turn);
    answer_weather(f, "{\"c\":31}");
    answer_weather(f, "{\"c\":31}"); /* from a caller who was not answered */
    ask_with(&turn, f, "", other, 1);
    assert_seen(&turn, "failed(INVALID_ARGUMENT ANSWERED_CALL)");
    end(&turn);
    ask_with(&turn, f, "go on", twice, ARRAY_LEN(twice));
    assert_seen(&turn, "failed(INVALID_ARGUMENT ANSWERED_CALL)"); /* the third of two calls */
    end(&turn);
}

static void the_choice_is_for_the_first_question_only(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    struct run_request request = request_of("x");
    request.tools = weather;
    request.tool_count = ARRAY_LEN(weather);
    request.tool_choice = STR(TOOL_CHOICE_REQUIRED);
    start(&turn, f, &request);
    assert_str(fake_request(asked(f))->tool_choice, TOOL_CHOICE_REQUIRED);
    fake_tool_call(asked(f), "s1", "search", "{}");
    fake_done(asked(f), "m-1");
    turns(f);
    fake_tool_answer(f->search, 0, "{}");
    turns(f);
    assert_str(fake_request(asked(f))->tool_choice, "");
    reply(f, "y");
    end(&turn);
}

/* --- bad tools ---------------------------------------------------------------------------- */

static void assert_refused(struct fixture *f, const struct tool_offer *tools, size_t count,
                           const char *choice, const char *expected) {
    struct run_request request = request_of("x");
    struct run *run;
    struct err e;
    request.tools = tools;
    request.tool_count = count;
    request.tool_choice = str_from(choice);
    assert_false(run_start(&f->host, &request, &run, &e));
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    assert_str(err_text(&e), expected);
}

static void bad_tools_are_refused_with_their_place(void **state) {
    struct fixture *f = *state;
    const struct tool_offer nameless[] = {{.name = STR_EMPTY}};
    const struct tool_offer twice[] = {{.name = STR("a")}, {.name = STR("a")}};
    const struct tool_offer taken[] = {{.name = STR("a")}, {.name = STR("search")}};
    const struct tool_offer shapeless[] = {{.name = STR("a"), .parameters = STR("[]")}};
    struct tool_offer *many = mem_zero(CALLER_TOOLS_MAX + 1, sizeof(*many));
    assert_refused(f, nameless, 1, "", "tools[0] has no name");
    assert_refused(f, twice, 2, "", "tools[1]: the tool 'a' comes twice; name each once");
    assert_refused(f, taken, 2, "",
                   "tools[1]: the agent 'manager' has a tool 'search' of its own; give yours "
                   "another name");
    assert_refused(f, shapeless, 1, "",
                   "tools[0]: the parameters of 'a' are not a JSON Schema, which is an object");
    assert_refused(f, twice, 1, "b",
                   "tool_choice names 'b', which is not one of the request's tools");
    assert_refused(f, many, CALLER_TOOLS_MAX + 1, "",
                   "tools: 513 are more than the 512 of a request");
    free(many);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_of_one_ends_the_turn_and_its_result_comes_with_the_next),
        cmocka_unit_test(what_the_session_has_is_not_taken_twice),
        TURN_TEST(a_call_that_is_never_answered_stays_open),
        TURN_TEST(a_reply_that_mixes_makes_none_of_the_agents_calls),
        TURN_TEST(the_agents_own_calls_are_made_as_usual),
        TURN_TEST(a_result_without_a_call_is_refused),
        TURN_TEST(a_contract_of_text_hands_arguments_over_as_they_were_written),
        TURN_TEST(arguments_that_cannot_be_read_are_not_handed_over_as_an_object),
        TURN_TEST(a_call_has_one_result),
        TURN_TEST(the_choice_is_for_the_first_question_only),
        TURN_TEST(bad_tools_are_refused_with_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
