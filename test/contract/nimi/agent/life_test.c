/* The states of an agent: every pair is tried against the drawing. */
#include "contract/nimi/agent/life.h"

#include "helper/assert_str.h"

static void only_the_drawn_moves_of_a_status_are_allowed(void **state) {
    (void)state;
    static const bool drawn[LIFE_STATUS_COUNT][LIFE_STATUS_COUNT] = {
        [NIMI_AGENT_LIFECYCLE_STATUS_UNSPECIFIED][NIMI_AGENT_LIFECYCLE_STATUS_ACTIVE] = true,
        [NIMI_AGENT_LIFECYCLE_STATUS_ACTIVE][NIMI_AGENT_LIFECYCLE_STATUS_TERMINATED] = true,
        [NIMI_AGENT_LIFECYCLE_STATUS_TERMINATED][NIMI_AGENT_LIFECYCLE_STATUS_ACTIVE] = true,
    };
    for (int from = 0; from < LIFE_STATUS_COUNT; from++) {
        for (int to = 0; to < LIFE_STATUS_COUNT; to++)
            assert_int_equal(states_allow(life_statuses, (unsigned)from, (unsigned)to),
                             drawn[from][to]);
    }
}

static void only_the_drawn_moves_of_an_execution_are_allowed(void **state) {
    (void)state;
    static const bool drawn[LIFE_EXECUTION_COUNT][LIFE_EXECUTION_COUNT] = {
        [NIMI_AGENT_EXECUTION_STATE_UNSPECIFIED][NIMI_AGENT_EXECUTION_STATE_IDLE] = true,
        [NIMI_AGENT_EXECUTION_STATE_IDLE][NIMI_AGENT_EXECUTION_STATE_SUSPENDED] = true,
        [NIMI_AGENT_EXECUTION_STATE_SUSPENDED][NIMI_AGENT_EXECUTION_STATE_IDLE] = true,
    };
    for (int from = 0; from < LIFE_EXECUTION_COUNT; from++) {
        for (int to = 0; to < LIFE_EXECUTION_COUNT; to++)
            assert_int_equal(states_allow(life_executions, (unsigned)from, (unsigned)to),
                             drawn[from][to]);
    }
}

static void a_move_changes_the_agent(void **state) {
    (void)state;
    struct nimi_agent_record agent = {.lifecycle_status = 0};
    struct nimi_agent_state_projection projection = {.execution_state = 0};
    life_status_move(&agent, NIMI_AGENT_LIFECYCLE_STATUS_ACTIVE);
    life_execution_move(&projection, NIMI_AGENT_EXECUTION_STATE_IDLE);
    assert_int_equal(agent.lifecycle_status, NIMI_AGENT_LIFECYCLE_STATUS_ACTIVE);
    assert_int_equal(projection.execution_state, NIMI_AGENT_EXECUTION_STATE_IDLE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_drawn_moves_of_a_status_are_allowed),
        cmocka_unit_test(only_the_drawn_moves_of_an_execution_are_allowed),
        cmocka_unit_test(a_move_changes_the_agent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
