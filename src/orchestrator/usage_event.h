/* usage_event: one published usage event, read and written again as a row.
 *
 * The subject also carries other things: memories, and whatever else may publish there. What is no
 * usage is left out, so that it cannot stop what comes after it.
 *
 * Memory   appends to the caller's buffer.
 * Threads  any.
 * Source   contracts of the orchestrator, "NATS and analytics".
 */
#ifndef WEIR_ORCHESTRATOR_USAGE_EVENT_H
#define WEIR_ORCHESTRATOR_USAGE_EVENT_H

#include "base/buf.h"
#include "base/err.h"

#define USAGE_EVENT_MAX_BYTES (64 * KIB)

/* Append the event as a JSON object with every member of the table llm_usage: texts, whole
 * numbers from 0, and a cost.
 * errors  ERR_MALFORMED not JSON; ERR_INVALID_ARGUMENT not a usage event. Nothing is appended */
MUST_CHECK bool usage_event_copy(struct str payload, struct buf *out, struct err *e);

#endif
