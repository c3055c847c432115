/* describe: write /openapi.json and the agent card from the route table that serves them.
 *
 * Paths, methods and the statuses of the checks come from the table's rows. A paragraph in
 * describe.c adds what a row does not know: its purpose, its bodies and its own errors. A row
 * without a paragraph is a bug.
 *
 * Memory   appends to the caller's buffer.
 * Threads  any.
 * Source   OpenAPI 3.1; contracts/agentbreeder.md 1.10 and 1.11.
 */
#ifndef WEIR_CONTRACT_AGENTBREEDER_DESCRIBE_H
#define WEIR_CONTRACT_AGENTBREEDER_DESCRIBE_H

#include "contract/agentbreeder/runtime.h"
#include "wire/json.h"

#define DESCRIPTION_MAX_BYTES (16 * MIB)

void describe_openapi(const struct route_table *table, struct buf *out);

/* The members of the Runtime Contract's card, in the object that is open. */
void describe_card(const struct route_table *table, const struct runtime_settings *settings,
                   struct json_writer *w);

#endif
