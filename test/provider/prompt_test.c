#include "provider/prompt.h"

#include "helper/assert_str.h"
#include "helper/messages.h"

#include <stdio.h>

/* Turns as text: U user, F foreign, A agent {opaque} text (tool=result ...). */
static void write_turns(const struct prompt *prompt, struct buf *out) {
    for (size_t i = 0; i < prompt->turn_count; i++) {
        const struct prompt_turn *turn = &prompt->turns[i];
        static const char letters[] = {
            [PROMPT_USER] = 'U', [PROMPT_AGENT] = 'A', [PROMPT_SYSTEM] = 'S'};
        buf_printf(out, "%c%s", turn->foreign ? 'F' : letters[turn->role],
                   turn->prefill ? "..." : "");
        if (turn->opaque.len) buf_printf(out, "{" STR_FMT "}", STR_ARG(turn->opaque));
        if (turn->text.len) buf_printf(out, " " STR_FMT, STR_ARG(turn->text));
        for (size_t c = 0; c < turn->call_count; c++) {
            const struct prompt_call *call = &turn->calls[c];
            buf_printf(out, " (" STR_FMT STR_FMT "=" STR_FMT ")", STR_ARG(call->call->tool),
                       STR_ARG(call->call->text), STR_ARG(call->result->text));
        }
        buf_append(out, STR("|"));
    }
}

static void assert_prompt(const struct message *messages, size_t count, const char *expected) {
    struct provider_request request = {
        .agent = STR("manager"), .messages = messages, .message_count = count};
    struct prompt prompt;
    struct err e;
    struct buf out;
    buf_init(&out, 64 * KIB);
    assert_true(prompt_init(&prompt, &request, STR("openai"), &e));
    write_turns(&prompt, &out);
    assert_str(buf_str(&out), expected);
    buf_done(&out);
    prompt_done(&prompt);
}

#define ASSERT_PROMPT(expected, ...)                                                           \
    do {                                                                                       \
        const struct message messages[] = {__VA_ARGS__};                                       \
        assert_prompt(messages, ARRAY_LEN(messages), expected);                                \
    } while (0)

static void a_conversation_with_one_agent_stays_as_it_is(void **state) {
    (void)state;
    assert_prompt(NULL, 0, "");
    ASSERT_PROMPT("U hello|A hi|U and now|", M_USER("hello"), M_SAID("manager", "hi"),
                  M_USER("and now"));
}

static void the_calls_of_a_reply_belong_to_its_text_and_bring_their_results(void **state) {
    (void)state;
    ASSERT_PROMPT("U go|A I look (find{\"q\":1}={\"r\":1}) (read{}={\"r\":2})|A done|",
                  M_USER("go"), M_SAID("manager", "I look"),
                  M_CALL("manager", "1", "find", "{\"q\":1}"),
                  M_CALL("manager", "2", "read", "{}"), M_RESULT("1", "{\"r\":1}"),
                  M_RESULT("2", "{\"r\":2}"), M_SAID("manager", "done"));
    ASSERT_PROMPT("A (find{}={})|", M_CALL("manager", "1", "find", "{}"), M_RESULT("1", "{}"));
}

static void results_follow_in_the_order_of_the_calls_whenever_they_came(void **state) {
    (void)state;
    ASSERT_PROMPT("A (a{}=1) (b{}=2)|U meanwhile|A later|", M_CALL("manager", "x", "a", "{}"),
                  M_CALL("manager", "y", "b", "{}"), M_RESULT("y", "2"), M_USER("meanwhile"),
                  M_SAID("manager", "later"), M_RESULT("x", "1"));
}

static void an_id_that_comes_again_means_the_nearest_call(void **state) {
    (void)state;
    ASSERT_PROMPT("A (a{}=1)|A (a{}=2)|", M_CALL("manager", "x", "a", "{}"), M_RESULT("x", "1"),
                  M_CALL("manager", "x", "a", "{}"), M_RESULT("x", "2"));
    ASSERT_PROMPT("U|A (a{}=2)|", M_CALL("manager", "x", "a", "{}"), M_USER(""),
                  M_CALL("manager", "x", "a", "{}"), M_RESULT("x", "2"));
    ASSERT_PROMPT("A (a{}=1) (b{}=2)|", M_CALL("manager", "x", "a", "{}"),
                  M_CALL("manager", "x", "b", "{}"), M_RESULT("x", "1"), M_RESULT("x", "2"));
}

static void an_id_that_comes_again_before_its_result_means_the_last_reply(void **state) {
    (void)state;
    ASSERT_PROMPT("U|A (b{}=1) (c{}=2)|", M_CALL("manager", "x", "a", "{}"), M_USER(""),
                  M_CALL("manager", "x", "b", "{}"), M_CALL("manager", "x", "c", "{}"),
                  M_RESULT("x", "1"), M_RESULT("x", "2"), M_RESULT("x", "3"));
    ASSERT_PROMPT("F For context:\n[wally] called tool `b` with parameters: {}\n"
                  "[wally] `b` tool returned result: 1|",
                  M_CALL("manager", "x", "a", "{}"), M_CALL("wally", "x", "b", "{}"),
                  M_RESULT("x", "1"));
    ASSERT_PROMPT("A (a{}=1)|A (b{}=2)|", M_CALL("", "x", "a", "{}"), M_RESULT("x", "1"),
                  M_CALL("manager", "y", "c", "{}"), M_CALL("", "x", "b", "{}"),
                  M_RESULT("x", "2"));
}

static void a_result_whose_call_is_gone_is_left_out(void **state) {
    (void)state;
    ASSERT_PROMPT("U hello|", M_RESULT("1", "{}"), M_USER("hello"));
    ASSERT_PROMPT("", M_RESULT("1", "{}"), M_CALL("manager", "1", "a", "{}"));
}

static void a_call_without_a_result_is_left_out(void **state) {
    (void)state;
    ASSERT_PROMPT("A wait (b{}=2)|", M_SAID("manager", "wait"),
                  M_CALL("manager", "1", "a", "{}"), M_CALL("manager", "2", "b", "{}"),
                  M_RESULT("2", "2"));
    ASSERT_PROMPT("U go|U again|", M_USER("go"), M_CALL("manager", "1", "a", "{}"),
                  M_USER("again"));
}

static void acts_of_other_agents_are_sent_as_context(void **state) {
    (void)state;
    ASSERT_PROMPT("U go|A (transfer{}={})|"
                  "F For context:\n[wally] said: I look\n"
                  "[wally] called tool `find` with parameters: {\"q\":1}\n"
                  "[wally] `find` tool returned result: {\"r\":1}\n[wally] said: found|"
                  "A thanks|F For context:\n[eve] said: also|",
                  M_USER("go"), M_CALL("manager", "t", "transfer", "{}"), M_RESULT("t", "{}"),
                  M_OPAQUE("wally", "openai", "secret"), M_SAID("wally", "I look"),
                  M_CALL("wally", "1", "find", "{\"q\":1}"), M_RESULT("1", "{\"r\":1}"),
                  M_SAID("wally", "found"), M_SAID("manager", "thanks"), M_SAID("eve", "also"));
}

static void an_orphan_or_an_empty_word_of_others_makes_no_turn(void **state) {
    (void)state;
    ASSERT_PROMPT("U a|U b|", M_USER("a"), M_SAID("wally", ""), M_RESULT("9", "{}"),
                  M_OPAQUE("wally", "openai", "x"), M_USER("b"));
}

static void the_same_id_in_two_agents_hands_stays_with_each(void **state) {
    (void)state;
    ASSERT_PROMPT("A (a{}=1)|F For context:\n[wally] called tool `b` with parameters: {}\n"
                  "[wally] `b` tool returned result: 2|",
                  M_CALL("manager", "x", "a", "{}"), M_RESULT("x", "1"),
                  M_CALL("wally", "x", "b", "{}"), M_RESULT("x", "2"));
}

static void an_opaque_message_of_this_dialect_stands_for_its_reply(void **state) {
    (void)state;
    ASSERT_PROMPT("A{bytes} hi (a{}=1)|A more|", M_OPAQUE("manager", "openai", "bytes"),
                  M_SAID("manager", "hi"), M_CALL("manager", "x", "a", "{}"),
                  M_RESULT("x", "1"), M_SAID("manager", "more"));
    ASSERT_PROMPT("A{1} a|A{2} b|", M_OPAQUE("manager", "openai", "1"), M_SAID("manager", "a"),
                  M_OPAQUE("manager", "openai", "2"), M_SAID("manager", "b"));
}

static void an_opaque_message_of_another_dialect_is_passed_over(void **state) {
    (void)state;
    ASSERT_PROMPT("A hi|", M_OPAQUE("manager", "gemini", "bytes"), M_SAID("manager", "hi"));
}

static void an_opaque_message_counts_only_when_its_reply_is_whole(void **state) {
    (void)state;
    ASSERT_PROMPT("A hi|", M_OPAQUE("manager", "openai", "bytes"), M_SAID("manager", "hi"),
                  M_CALL("manager", "x", "a", "{}"));
    ASSERT_PROMPT("U b|", M_OPAQUE("manager", "openai", "bytes"), M_USER("b"));
    ASSERT_PROMPT("", M_OPAQUE("manager", "openai", "bytes"));
    ASSERT_PROMPT("F For context:\n[wally] said: hi|", M_OPAQUE("manager", "openai", "bytes"),
                  M_SAID("wally", "hi"));
}

static void an_empty_user_message_is_a_turn_and_user_turns_stay_apart(void **state) {
    (void)state;
    ASSERT_PROMPT("U|U a|U b|", M_USER(""), M_USER("a"), M_USER("b"));
}

static void assistant_messages_of_a_caller_belong_to_the_agent_asked(void **state) {
    (void)state;
    ASSERT_PROMPT("U a|A b (f{}={})|U c|A... d|", M_USER("a"), M_SAID("", "b"),
                  M_CALL("", "1", "f", "{}"), M_RESULT("1", "{}"), M_USER("c"),
                  M_SAID("", "d"));
    ASSERT_PROMPT("U a|A b|", M_USER("a"), M_SAID("manager", "b"));
}

#define M_SYSTEM(said)                                                                         \
    { .role = MESSAGE_SYSTEM, .text = STR_INIT(said) }

static void system_messages_are_turns_in_their_place(void **state) {
    (void)state;
    ASSERT_PROMPT("S s|U a|S t|F For context:\n[wally] said: b|S u|U c|", M_SYSTEM("s"),
                  M_USER("a"), M_SYSTEM("t"), M_SAID("wally", "b"), M_SYSTEM("u"),
                  M_SYSTEM(" "), M_USER("c"));
}

/* As a caller counts: a reply with its calls is one message. */
static void instructions_stand_before_the_conversation(void **state) {
    (void)state;
    static const struct message instructions = {
        .role = MESSAGE_SYSTEM, .text = STR_INIT("i"), .instructions = true};
    ASSERT_PROMPT("S i|U a|A b|S s|U c|", M_USER("a"), M_SAID("manager", "b"), M_SYSTEM("s"),
                  instructions, M_USER("c"));
    ASSERT_PROMPT("S i|A (a{}=1)|", M_CALL("manager", "x", "a", "{}"), instructions,
                  M_RESULT("x", "1"));
}

static void a_refusal_names_the_place(void **state) {
    (void)state;
    const struct message messages[] = {M_USER("a"),
                                       M_OPAQUE("", "openai", "x"),
                                       M_SAID("", "b"),
                                       M_CALL("", "1", "f", "{}"),
                                       M_CALL("", "2", "f", "{}"),
                                       M_RESULT("1", "{}"),
                                       M_RESULT("2", "{}"),
                                       M_CALL("", "3", "f", "{}"),
                                       M_RESULT("3", "{}"),
                                       M_USER("c")};
    struct provider_request request = {
        .agent = STR("manager"), .messages = messages, .message_count = ARRAY_LEN(messages)};
    struct prompt prompt;
    struct err e;
    assert_true(prompt_init(&prompt, &request, STR("openai"), &e));
    const struct prompt_turn *last = &prompt.turns[prompt.turn_count - 1];
    assert_false(prompt_refuse(&request, last, 2, &e, "no %s", "cats"));
    assert_int_equal(e.code, ERR_UNIMPLEMENTED);
    assert_str(err_text(&e), "messages[6].content[2]: no cats");
    assert_false(prompt_refuse(&request, &prompt.turns[1], NO_PART, &e, "no"));
    assert_str(err_text(&e), "messages[1]: no");
    prompt_done(&prompt);
}

static void more_words_of_others_than_the_limit_are_refused(void **state) {
    (void)state;
    char *text = calloc(1, PROMPT_MAX_BYTES / 2);
    assert_non_null(text);
    struct message said = {.role = MESSAGE_AGENT, .agent = STR("wally")};
    said.text = str_of(text, PROMPT_MAX_BYTES / 2);
    struct message messages[] = {said, said};
    struct provider_request request = {
        .agent = STR("manager"), .messages = messages, .message_count = 2};
    struct prompt prompt;
    struct err e;
    assert_false(prompt_init(&prompt, &request, STR("openai"), &e));
    assert_int_equal(e.code, ERR_TOO_LARGE);
    free(text);
}

#define MANY 200000

/* `ids` of them, again and again; the manager's calls or wally's, their results after them. */
static void assert_many_are_answered(struct str agent, size_t ids) {
    struct message *messages = calloc(2 * MANY, sizeof(struct message));
    char(*names)[24] = calloc(ids, sizeof(*names));
    assert_true(messages && names);
    for (size_t i = 0; i < ids; i++) snprintf(names[i], sizeof(names[i]), "%zu", i);
    for (size_t i = 0; i < MANY; i++) {
        struct str id = str_from(names[i % ids]);
        messages[i] = (struct message){
            .role = MESSAGE_TOOL_CALL, .agent = agent, .tool = STR("t"), .call_id = id};
        messages[MANY + i] = (struct message){.role = MESSAGE_TOOL_RESULT, .call_id = id};
    }
    struct provider_request request = {
        .agent = STR("manager"), .messages = messages, .message_count = 2 * MANY};
    struct prompt prompt;
    struct err e;
    assert_true(prompt_init(&prompt, &request, STR("openai"), &e));
    bool own = str_equal(agent, request.agent);
    assert_int_equal(prompt.turn_count, 1);
    assert_int_equal(prompt.call_count, own ? MANY : 0);
    for (size_t i = 0; i < prompt.call_count; i++)
        assert_ptr_equal(prompt.calls[i].result, &messages[MANY + i]);
    prompt_done(&prompt);
    free(names);
    free(messages);
}

/* A search for each would take minutes. */
static void a_reply_may_have_very_many_calls(void **state) {
    (void)state;
    assert_many_are_answered(STR("manager"), 1);
    assert_many_are_answered(STR("manager"), MANY);
    assert_many_are_answered(STR("wally"), 1);
    assert_many_are_answered(STR("wally"), MANY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_conversation_with_one_agent_stays_as_it_is),
        cmocka_unit_test(the_calls_of_a_reply_belong_to_its_text_and_bring_their_results),
        cmocka_unit_test(results_follow_in_the_order_of_the_calls_whenever_they_came),
        cmocka_unit_test(an_id_that_comes_again_means_the_nearest_call),
        cmocka_unit_test(an_id_that_comes_again_before_its_result_means_the_last_reply),
        cmocka_unit_test(a_result_whose_call_is_gone_is_left_out),
        cmocka_unit_test(a_call_without_a_result_is_left_out),
        cmocka_unit_test(acts_of_other_agents_are_sent_as_context),
        cmocka_unit_test(an_orphan_or_an_empty_word_of_others_makes_no_turn),
        cmocka_unit_test(the_same_id_in_two_agents_hands_stays_with_each),
        cmocka_unit_test(an_opaque_message_of_this_dialect_stands_for_its_reply),
        cmocka_unit_test(an_opaque_message_of_another_dialect_is_passed_over),
        cmocka_unit_test(an_opaque_message_counts_only_when_its_reply_is_whole),
        cmocka_unit_test(an_empty_user_message_is_a_turn_and_user_turns_stay_apart),
        cmocka_unit_test(assistant_messages_of_a_caller_belong_to_the_agent_asked),
        cmocka_unit_test(system_messages_are_turns_in_their_place),
        cmocka_unit_test(instructions_stand_before_the_conversation),
        cmocka_unit_test(a_refusal_names_the_place),
        cmocka_unit_test(more_words_of_others_than_the_limit_are_refused),
        cmocka_unit_test(a_reply_may_have_very_many_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
