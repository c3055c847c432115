/* The states of a question from agent to agent. */
#include "orchestrator/agent_asks.h"

#include "helper/moves.h"

static void a_question_moves_as_drawn(void **state) {
    (void)state;
    static const char *const drawn[] = {"finding admitting", "finding over",
                                        "admitting asking",  "admitting over",
                                        "asking storing",    "storing over"};
    assert_moves(agent_ask_states, AGENT_ASK_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_moves_as_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
