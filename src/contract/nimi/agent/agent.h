/* agent: the agents of apps (RuntimeAgentService).
 *
 *     agents.c   the calls: they come, go, are listed, and their state changes
 *     change.c   what a call makes of an agent: pure functions, made within the store's transaction
 *     life.c     the states of an agent, and which may follow which
 *     events.c   what happens to an agent, for subscribers
 *
 * An agent here is what an app says of it: a name, a state, texts. It belongs to the app and
 * subject that initialised it, and is in the store (store/agents.h). It is not one of the agents
 * of the configuration: the calls of this protocol that ask a model name no agent.
 *
 * Memory   of the call; a write's outlives it until the store has answered.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 1.12, 6.7.
 */
#ifndef WEIR_CONTRACT_NIMI_AGENT_AGENT_H
#define WEIR_CONTRACT_NIMI_AGENT_AGENT_H

#include "contract/nimi/call.h"
#include "contract/nimi/log_topic.h"

/* How what happened to an agent stands in its log: an event without its number. */
extern const struct log_kind agent_log;

nimi_begin_fn agent_initialize, agent_terminate, agent_get, agent_list, agent_get_state,
    agent_update_state, agent_subscribe;

#endif
