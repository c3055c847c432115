/* openapi: the sidecar's own OpenAPI document, for an agent without one.
 *
 * Threads  one loop's.
 * Source   contracts/agentbreeder.md 1.10 and 4.11.
 */
#ifndef WEIR_SIDECAR_OPENAPI_H
#define WEIR_SIDECAR_OPENAPI_H

#include "sidecar/options.h"

void openapi_write(const struct sidecar_options *options, struct buf *out);

#endif
