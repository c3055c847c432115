/* otlp: sends the spans of turns to an OpenTelemetry collector.
 *
 * It serves nothing. While it is wanted, the daemon's own loop posts once a second what waits, one
 * request at a time. What a collector does not take is lost: it is counted and logged, and
 * nothing waits for it. When the daemon stops, what is left is sent once more, for a second at most.
 *
 * Memory   one batch, beside the bounded queue.
 * Threads  the daemon's own loop.
 * Source   the OTLP specification, "OTLP/HTTP", "JSON Protobuf Encoding".
 */
#ifndef WEIR_CONTRACT_OTLP_CONTRACT_H
#define WEIR_CONTRACT_OTLP_CONTRACT_H

#include "contract/contract.h"

extern const struct contract otlp_contract;

#endif
