/* life: the states of an agent, by the numbers of the protocol.
 *
 *     status      none ─▶ ACTIVE ⇄ TERMINATED          ⇄: it may be initialised again
 *     execution   none ─▶ IDLE ⇄ SUSPENDED             SUSPENDED: while it is terminated
 *
 * The other states of the protocol are never reached here: an agent is initialised and terminated
 * in one transaction, nothing suspends it, and it has no turns of its own.
 *
 * Private to contract/nimi/agent.
 *
 * Threads  any; values only.
 * Source   contracts/nimi.md 1.12.
 */
#ifndef WEIR_CONTRACT_NIMI_AGENT_LIFE_H
#define WEIR_CONTRACT_NIMI_AGENT_LIFE_H

#include "base/states.h"
#include "proto/nimi.pb.h"

#define LIFE_STATUS_COUNT (NIMI_AGENT_LIFECYCLE_STATUS_TERMINATED + 1)
#define LIFE_EXECUTION_COUNT (NIMI_AGENT_EXECUTION_STATE_SUSPENDED + 1)

extern const struct state life_statuses[LIFE_STATUS_COUNT];
extern const struct state life_executions[LIFE_EXECUTION_COUNT];

/* The only functions that change them. The move must be allowed. */
void life_status_move(struct nimi_agent_record *agent, int32_t next);
void life_execution_move(struct nimi_agent_state_projection *state, int32_t next);

#endif
