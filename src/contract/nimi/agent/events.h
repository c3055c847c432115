/* events: what happens to an agent, from its log in the store.
 *
 * The log has an event without its number. Private to contract/nimi/agent.
 *
 * Threads  any; constant.
 */
#ifndef WEIR_CONTRACT_NIMI_AGENT_EVENTS_H
#define WEIR_CONTRACT_NIMI_AGENT_EVENTS_H

#include "contract/nimi/log_topic.h"

extern const struct log_kind agent_log;

#endif
