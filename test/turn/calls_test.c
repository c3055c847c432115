/* The calls of a reply: their moves, and how they are answered. */
#include "turn/calls.h"

#include "fake/provider_fake.h"
#include "fake/store_fake.h"
#include "fixture.h"
#include "helper/moves.h"
#include "turn/turn.h"

static void only_the_drawn_moves_are_legal(void **state) {
    (void)state;
    static const char *const drawn[] = {"pending out", "pending answered", "out answered"};
    assert_moves(turn_call_states, TURN_CALL_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

static void calls_are_settled_when_only_a_human_is_left_to_ask(void **state) {
    (void)state;
    struct run *run = MEM_NEW(struct run);
    struct calls *calls = &run->calls;
    assert_true(calls_settled(calls));
    calls_add(run)->call_id = STR("a");
    calls_add(run)->call_id = STR("b");
    calls->list[1].asks = true;
    assert_false(calls_settled(calls));
    assert_ptr_equal(calls_undecided(calls), &calls->list[1]);
    turn_call_move(&calls->list[0], TURN_CALL_OUT);
    assert_int_equal(calls->out, 1);
    assert_false(calls_settled(calls));
    assert_ptr_equal(calls_open(calls, STR("a")), &calls->list[0]);
    turn_call_move(&calls->list[0], TURN_CALL_ANSWERED);
    assert_int_equal(calls->out, 0);
    assert_true(calls_settled(calls));
    assert_null(calls_open(calls, STR("a")));
    turn_call_move(&calls->list[1], TURN_CALL_ANSWERED);
    assert_null(calls_undecided(calls));
    calls_clear(calls);
    assert_int_equal(calls->count, 0);
    calls_done(calls);
    free(run);
}

static void a_question_may_stand_for_the_whole_reply(void **state) {
    (void)state;
    struct run *run = MEM_NEW(struct run);
    for (size_t i = 0; i < 9; i++) calls_add(run)->tool = i == 7 ? STR("ask") : STR("other");
    calls_leave_only(&run->calls, 7);
    assert_int_equal(run->calls.count, 1);
    assert_str(run->calls.list[0].tool, "ask");
    calls_done(&run->calls);
    free(run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_drawn_moves_are_legal),
        cmocka_unit_test(calls_are_settled_when_only_a_human_is_left_to_ask),
        cmocka_unit_test(a_question_may_stand_for_the_whole_reply),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
