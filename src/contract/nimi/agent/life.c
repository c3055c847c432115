#include "contract/nimi/agent/life.h"

#include <assert.h>

#define TO(state) (1u << (state))

static const unsigned statuses[LIFE_STATUS_COUNT] = {
    [NIMI_AGENT_LIFECYCLE_STATUS_UNSPECIFIED] = TO(NIMI_AGENT_LIFECYCLE_STATUS_ACTIVE),
    [NIMI_AGENT_LIFECYCLE_STATUS_ACTIVE] = TO(NIMI_AGENT_LIFECYCLE_STATUS_TERMINATED),
    [NIMI_AGENT_LIFECYCLE_STATUS_TERMINATED] = TO(NIMI_AGENT_LIFECYCLE_STATUS_ACTIVE),
};

static const unsigned executions[LIFE_EXECUTION_COUNT] = {
    [NIMI_AGENT_EXECUTION_STATE_UNSPECIFIED] = TO(NIMI_AGENT_EXECUTION_STATE_IDLE),
    [NIMI_AGENT_EXECUTION_STATE_IDLE] = TO(NIMI_AGENT_EXECUTION_STATE_SUSPENDED),
    [NIMI_AGENT_EXECUTION_STATE_SUSPENDED] = TO(NIMI_AGENT_EXECUTION_STATE_IDLE),
};

bool life_status_may_become(int32_t status, int32_t next) {
    return (statuses[status] & TO(next)) != 0;
}

bool life_execution_may_become(int32_t state, int32_t next) {
    return (executions[state] & TO(next)) != 0;
}

void life_status_move(struct nimi_agent_record *agent, int32_t next) {
    assert(life_status_may_become(agent->lifecycle_status, next));
    agent->lifecycle_status = next;
}

void life_execution_move(struct nimi_agent_state_projection *state, int32_t next) {
    assert(life_execution_may_become(state->execution_state, next));
    state->execution_state = next;
}
