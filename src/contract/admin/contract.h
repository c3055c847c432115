/* admin: the operator's listener: probes, and metrics for a Prometheus server.
 *
 *     /livez              200: the process answers
 *     /readyz, /healthz   200 while turns are accepted, else 503 with the state
 *     /metrics            metrics/metrics.h, and what the process itself uses
 *
 * It is off unless listen.admin is set, and it asks for no token: nothing on it names a user, a
 * session or a text. Keep it on loopback or on a network of its own.
 */
#ifndef WEIR_CONTRACT_ADMIN_CONTRACT_H
#define WEIR_CONTRACT_ADMIN_CONTRACT_H

#include "contract/contract.h"

extern const struct contract admin_contract;

#endif
