/* describe: what stands at /openapi.json and in the agent card, made of the table that serves.
 *
 * Paths, methods and the statuses of the checks come from the table's rows; a paragraph in
 * describe.c adds what a row cannot know: what it is for, its bodies, its own refusals. A row
 * without a paragraph is our own mistake.
 *
 * Memory   appends to the caller's buffer.
 * Threads  any.
 * Source   OpenAPI 3.1; contracts/agentbreeder.md 1.10 and 1.11.
 */
#ifndef WEIR_CONTRACT_AGENTBREEDER_DESCRIBE_H
#define WEIR_CONTRACT_AGENTBREEDER_DESCRIBE_H

#include "contract/agentbreeder/runtime.h"

#define DESCRIPTION_MAX_BYTES (128 * KIB)

void describe_openapi(const struct route_table *table, struct buf *out);

void describe_card(const struct route_table *table, const struct runtime_settings *settings,
                   struct buf *out);

#endif
