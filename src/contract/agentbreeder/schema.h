/* schema: JSON Schema for this contract's bodies. Private to this contract.
 *
 * Memory   writes to the caller's writer.
 * Threads  any.
 * Source   contracts/agentbreeder.md 1.6 to 1.12; JSON Schema 2020-12.
 */
#ifndef WEIR_CONTRACT_AGENTBREEDER_SCHEMA_H
#define WEIR_CONTRACT_AGENTBREEDER_SCHEMA_H

#include "wire/json.h"

/* Write the member "schemas" of an OpenAPI document's components. */
void schema_write(struct json_writer *json);

#endif
