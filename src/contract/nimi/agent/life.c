#include "contract/nimi/agent/life.h"

#include <assert.h>

const struct state life_statuses[LIFE_STATUS_COUNT] = {
    [NIMI_AGENT_LIFECYCLE_STATUS_UNSPECIFIED] = {"unspecified",
                                                 TO(NIMI_AGENT_LIFECYCLE_STATUS_ACTIVE)},
    [NIMI_AGENT_LIFECYCLE_STATUS_ACTIVE] = {"active",
                                            TO(NIMI_AGENT_LIFECYCLE_STATUS_TERMINATED)},
    [NIMI_AGENT_LIFECYCLE_STATUS_TERMINATED] = {"terminated",
                                                TO(NIMI_AGENT_LIFECYCLE_STATUS_ACTIVE)},
};

const struct state life_executions[LIFE_EXECUTION_COUNT] = {
    [NIMI_AGENT_EXECUTION_STATE_UNSPECIFIED] = {"unspecified",
                                                TO(NIMI_AGENT_EXECUTION_STATE_IDLE)},
    [NIMI_AGENT_EXECUTION_STATE_IDLE] = {"idle", TO(NIMI_AGENT_EXECUTION_STATE_SUSPENDED)},
    [NIMI_AGENT_EXECUTION_STATE_SUSPENDED] = {"suspended", TO(NIMI_AGENT_EXECUTION_STATE_IDLE)},
};

void life_status_move(struct nimi_agent_record *agent, int32_t next) {
    assert(states_allow(life_statuses, (unsigned)agent->lifecycle_status, (unsigned)next));
    agent->lifecycle_status = next;
}

void life_execution_move(struct nimi_agent_state_projection *state, int32_t next) {
    assert(states_allow(life_executions, (unsigned)state->execution_state, (unsigned)next));
    state->execution_state = next;
}
