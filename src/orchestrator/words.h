/* words: the words that clients and rows have for the states of messages and agents.
 *
 * Threads  any; values only.
 * Source   contracts of the orchestrator, "Enums" and "Status order".
 */
#ifndef WEIR_ORCHESTRATOR_WORDS_H
#define WEIR_ORCHESTRATOR_WORDS_H

#include "base/str.h"

enum message_status {
    MESSAGE_PENDING,
    MESSAGE_SENT,
    MESSAGE_DELIVERED,
    MESSAGE_READ,
    MESSAGE_FAILED,
    MESSAGE_INCOMPLETE,
    MESSAGE_SILENT,
    MESSAGE_DELEGATED,
    MESSAGE_STATUS_COUNT,
};

struct str message_status_name(enum message_status status);

/* A status only rises: pending, sent, delivered, read, then one of the others, which are last. */
bool message_status_may_become(enum message_status status, enum message_status next);

enum agent_status {
    AGENT_ONLINE,
    AGENT_READING,
    AGENT_THINKING,
    AGENT_WRITING,
    AGENT_ERROR,
    AGENT_STATUS_COUNT,
};

struct str agent_status_name(enum agent_status status);

#endif
