/* events: what happens to an app's memory, from the log of the store.
 *
 * The log has an event without its number and its body (store/bank.h). The body makes it whole:
 * the bank, the record as it was retained, or the ids of what was deleted. A record that is gone
 * has no body, and its event only the head of it.
 *
 * Private to contract/nimi/memory.
 *
 * Threads  any; constant.
 */
#ifndef WEIR_CONTRACT_NIMI_MEMORY_EVENTS_H
#define WEIR_CONTRACT_NIMI_MEMORY_EVENTS_H

#include "contract/nimi/log_topic.h"

extern const struct log_kind memory_log;

#endif
