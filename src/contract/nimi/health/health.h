/* health: the health of the runtime, over gRPC and HTTP.
 *
 *     /livez                     200 while the process lives
 *     /readyz, /healthz          200 only when READY
 *     /v1/runtime/health         the same, with all details
 *
 * Memory   borrows the instance.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 1.8, 3.2 K-DAEMON-010.
 */
#ifndef WEIR_CONTRACT_NIMI_HEALTH_HEALTH_H
#define WEIR_CONTRACT_NIMI_HEALTH_HEALTH_H

#include "contract/nimi/call.h"

nimi_begin_fn health_get, health_list_providers;

#endif
