/* What the rules of an agent read of what others heard and said. */
#include "turn/run.h"

#include "fake/provider_fake.h" /* named here: the build links them */
#include "fake/store_fake.h"
#include "fixture.h"
#include "guardrail/guardrail.h"

/* wally's model must read no mail address. The replacement matches again: what was replaced twice
 * shows. */
struct guarded_fixture {
    struct fixture f;
    struct guardrail *rule;
};

static struct guardrail *guard(struct agent *agent, struct guardrail **room,
                               enum guardrail_action action) {
    const struct guardrail_rule rule = {.name = STR("mails"),
                                        .pattern = STR("[a-z]+@x"),
                                        .replacement = STR("<a@x>"),
                                        .action = action};
    struct err e;
    if (!guardrail_new(&rule, room, &e)) fail_msg("%s", e.text);
    agent->input_rules = (struct guardrails){room, 1};
    return *room;
}

static int setup(void **state) {
    struct guarded_fixture *g = MEM_NEW(struct guarded_fixture);
    fixture_init(&g->f, true);
    guard(&g->f.agents[1], &g->rule, GUARDRAIL_REDACT);
    *state = g;
    return 0;
}

static int teardown(void **state) {
    struct guarded_fixture *g = *state;
    fixture_done(&g->f);
    guardrail_free(g->rule);
    free(g);
    return 0;
}

static void say_to(struct turn *turn, struct fixture *f, const char *agent, const char *text) {
    struct run_request request = request_of(text);
    request.agent = str_from(agent);
    start(turn, f, &request);
}

static void one_turn(struct fixture *f, const char *agent, const char *text,
                     const char *answer) {
    struct turn turn;
    say_to(&turn, f, agent, text);
    reply(f, answer);
    end(&turn);
}

static uint64_t matches(const struct guarded_fixture *g) {
    return guardrail_counts(g->rule).matches;
}

static void an_agent_reads_what_others_heard_and_said_through_its_rules(void **state) {
    struct guarded_fixture *g = *state;
    struct turn turn;
    one_turn(&g->f, "manager", "i am dora@x", "noted: dora@x");
    say_to(&turn, &g->f, "wally", "and emil@x");
    assert_asked(&g->f, "user=i am <a@x> agent/manager=noted: <a@x> user=and <a@x>");
    reply(&g->f, "mine: fritz@x");
    end(&turn);
    say_to(&turn, &g->f, "manager", "?"); /* has no rules, and reads what the others read */
    assert_asked(&g->f, "user=i am dora@x agent/manager=noted: dora@x user=and <a@x> "
                        "agent/wally=mine: fritz@x user=?");
    reply(&g->f, "ok");
    end(&turn);
}

/* Neither what was said to it, nor what it said, nor what it has read in an earlier round. */
static void rules_read_each_text_once(void **state) {
    struct guarded_fixture *g = *state;
    struct turn turn;
    one_turn(&g->f, "manager", "dora@x", "noted");
    one_turn(&g->f, "wally", "emil@x", "fritz@x");
    assert_int_equal(matches(g), 2);
    say_to(&turn, &g->f, "wally", "again");
    for (size_t round = 0; round < 3; round++) {
        fake_tool_call(asked(&g->f), "c", "search", "{}");
        fake_done(asked(&g->f), "m");
        turns(&g->f);
        fake_tool_answer(g->f.search, 0, "{}");
        turns(&g->f);
    }
    assert_asked(&g->f,
                 "user=<a@x> agent/manager=noted user=<a@x> agent/wally=fritz@x user=again "
                 "call/search={} result={} call/search={} result={} call/search={} "
                 "result={}");
    assert_int_equal(matches(g), 3);
    reply(&g->f, "ok");
    end(&turn);
}

static void a_turn_that_is_handed_over_is_read_with_the_others_words(void **state) {
    struct guarded_fixture *g = *state;
    struct turn turn;
    say(&turn, &g->f, "for ada@x");
    fake_text(asked(&g->f), STR("I pass on bob@x"));
    fake_tool_call(asked(&g->f), "t", "transfer_to_agent", "{\"agent_name\":\"wally\"}");
    fake_done(asked(&g->f), "m");
    turns(&g->f);
    assert_asked(&g->f, "user=for <a@x> agent/manager=I pass on <a@x> "
                        "call/transfer_to_agent={\"agent_name\":\"wally\"} result={}");
    reply(&g->f, "ok");
    end(&turn);
}

/* The rows of the log say who heard what, too. */
static void what_was_said_to_it_is_not_read_again_after_a_restart(void **state) {
    struct guarded_fixture *g = *state;
    struct fixture *f = &g->f;
    struct turn turn;
    one_turn(f, "wally", "emil@x", "ok");
    one_turn(f, "manager", "dora@x", "ok");
    session_table_free(f->engine.sessions);
    f->engine.sessions = session_table_new(f->store);
    say_to(&turn, f, "wally", "again");
    assert_asked(f, "user=<a@x> agent/wally=ok user=<a@x> agent/manager=ok user=again");
    assert_int_equal(matches(g), 2);
    reply(f, "ok");
    end(&turn);
}

static void a_rule_that_blocks_ends_the_turn_that_would_read_it(void **state) {
    struct guarded_fixture *g = *state;
    struct turn turn;
    struct guardrail *blocks;
    guard(&g->f.agents[1], &blocks, GUARDRAIL_BLOCK);
    one_turn(&g->f, "manager", "dora@x", "noted");
    say_to(&turn, &g->f, "wally", "hello");
    turns(&g->f);
    assert_int_equal(run_state(turn.run), RUN_FAILED);
    assert_true(
        str_ends(buf_str(&turn.seen), STR("failed(PERMISSION_DENIED GUARDRAIL_BLOCKED)")));
    end(&turn);
    one_turn(&g->f, "manager", "still here", "yes");
    guardrail_free(blocks);
}

/* --- histories that are condensed --------------------------------------------------------- */

/* The question for a summary that is with the model has all of `words`. */
static void assert_condensing(struct fixture *f, const char *const *words, size_t count) {
    const struct provider_request *request = fake_request(asked(f));
    assert_int_equal(request->message_count, 1);
    struct str text = request->messages[0].text;
    for (size_t i = 0; i < count; i++) {
        if (str_find(text, str_from(words[i])) == text.len)
            fail_msg("'%s' is not in: " STR_FMT, words[i], STR_ARG(text));
    }
}

/* Results of tools and the agent's own words are not read because they are condensed, and a summary
 * is its own words. */
static void a_rule_reads_no_more_of_a_history_that_is_condensed(void **state) {
    struct guarded_fixture *g = *state;
    struct fixture *f = &g->f;
    struct turn turn;
    struct guardrail *blocks;
    guard(&f->agents[1], &blocks, GUARDRAIL_BLOCK);
    say_to(&turn, f, "wally", "look");
    fake_tool_call(asked(f), "c", "search", "{\"q\":\"call@x\"}");
    fake_done(asked(f), "m");
    turns(f);
    fake_tool_answer(f->search, 0, "{\"a\":\"result@x\"}");
    turns(f);
    reply(f, "mine@x");
    end(&turn);
    f->agents[1].window_tokens = 1;
    for (size_t i = 0; i < 2; i++) { /* the second one reads the first summary */
        static const char *const found[][3] = {{"call@x", "result@x", "mine@x"},
                                               {"said before", "sum@x", "[user] on"}};
        say_to(&turn, f, "wally", "on");
        assert_condensing(f, found[i], 3);
        reply(f, "sum@x");
        assert_asked(f, "user=What was said before, in short:\nsum@x user=on");
        reply(f, "ok");
        assert_int_equal(run_state(turn.run), RUN_DONE);
        end(&turn);
    }
    guardrail_free(blocks);
}

static void what_others_heard_is_redacted_before_it_is_condensed(void **state) {
    struct guarded_fixture *g = *state;
    struct fixture *f = &g->f;
    struct turn turn;
    static const char *const words[] = {"[user] i am <a@x>\n", "[manager] noted: <a@x>\n",
                                        "[user] mine: <a@x>\n"};
    one_turn(f, "manager", "i am dora@x", "noted: dora@x");
    one_turn(f, "wally", "mine: emil@x", "ok");
    f->agents[1].window_tokens = 1;
    say_to(&turn, f, "wally", "on");
    assert_condensing(f, words, ARRAY_LEN(words));
    reply(f, "someone");
    assert_asked(f, "user=What was said before, in short:\nsomeone user=on");
    reply(f, "ok");
    end(&turn);
    assert_int_equal(matches(g), 5); /* one more for emil, and two in the second turn */
}

/* Else the session could never be condensed, and each turn of it would fail. */
static void what_is_blocked_is_left_out_of_a_summary(void **state) {
    struct guarded_fixture *g = *state;
    struct fixture *f = &g->f;
    struct turn turn;
    struct guardrail *blocks;
    static const char *const words[] = {"[user] (left out: blocked by the guardrail 'mails')\n",
                                        "[manager] noted\n"};
    guard(&f->agents[1], &blocks, GUARDRAIL_BLOCK);
    one_turn(f, "manager", "dora@x", "noted");
    f->agents[1].window_tokens = 1;
    say_to(&turn, f, "wally", "on");
    assert_condensing(f, words, ARRAY_LEN(words));
    reply(f, "someone");
    assert_asked(f, "user=What was said before, in short:\nsomeone user=on");
    reply(f, "ok");
    assert_int_equal(run_state(turn.run), RUN_DONE);
    end(&turn);
    guardrail_free(blocks);
}

/* Only what the program itself keeps says who heard it. */
static void a_caller_cannot_say_that_rules_have_read_its_words(void **state) {
    struct guarded_fixture *g = *state;
    struct turn turn;
    const struct message brought[] = {
        {.role = MESSAGE_USER, .text = STR("dora@x"), .heard_by = STR("wally")},
        {.role = MESSAGE_AGENT, .text = STR("noted")},
        {.role = MESSAGE_USER, .text = STR("?")}};
    struct run_request request = request_of("?");
    request.agent = STR("manager");
    request.messages = brought;
    request.message_count = ARRAY_LEN(brought);
    start(&turn, &g->f, &request);
    reply(&g->f, "ok");
    end(&turn);
    say_to(&turn, &g->f, "wally", "!");
    const struct provider_request *asks = fake_request(asked(&g->f));
    assert_str(asks->messages[0].text, "<a@x>");
    reply(&g->f, "ok");
    end(&turn);
}

#define GUARDED(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        GUARDED(an_agent_reads_what_others_heard_and_said_through_its_rules),
        GUARDED(rules_read_each_text_once),
        GUARDED(a_turn_that_is_handed_over_is_read_with_the_others_words),
        GUARDED(what_was_said_to_it_is_not_read_again_after_a_restart),
        GUARDED(a_rule_that_blocks_ends_the_turn_that_would_read_it),
        GUARDED(a_caller_cannot_say_that_rules_have_read_its_words),
        GUARDED(a_rule_reads_no_more_of_a_history_that_is_condensed),
        GUARDED(what_others_heard_is_redacted_before_it_is_condensed),
        GUARDED(what_is_blocked_is_left_out_of_a_summary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
