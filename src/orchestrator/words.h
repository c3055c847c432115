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

/* A stored status only rises: the statements of rows.c see to it. */
struct str message_status_name(enum message_status status);

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
