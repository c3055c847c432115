/* otlp: has the spans of turns sent to an OpenTelemetry collector (exporter/exporter.h).
 *
 * It serves nothing: it reads the settings, and starts and stops the exporter with the process.
 *
 * Threads  the daemon's own loop.
 */
#ifndef WEIR_CONTRACT_OTLP_CONTRACT_H
#define WEIR_CONTRACT_OTLP_CONTRACT_H

#include "contract/contract.h"

extern const struct contract otlp_contract;

#endif
