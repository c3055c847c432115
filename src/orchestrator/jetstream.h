/* jetstream: publish usage to NATS JetStream, one event after the other.
 *
 * libnats is loaded with the first connection; it has threads of its own and reconnects every two
 * seconds for ever. The stream is made when it is missing, and left as it is when it is there.
 *
 * Memory   the caller ends a connection with jetstream_close().
 * Threads  one at a time; everything blocks.
 * Source   contracts of the orchestrator, "NATS and analytics".
 */
#ifndef WEIR_ORCHESTRATOR_JETSTREAM_H
#define WEIR_ORCHESTRATOR_JETSTREAM_H

#include "base/err.h"
#include "base/str.h"

struct jetstream;

/* errors  ERR_UNAVAILABLE libnats is missing, or the server */
MUST_CHECK bool jetstream_open(struct str url, struct jetstream **ret, struct err *e);
void jetstream_close(struct jetstream *jetstream);

/* Publish under crawbl.usage.v1.<workspace>; returns once it is acknowledged. `id` tells
 * repetitions apart. A workspace id that is no subject token has its bytes replaced by '_'.
 * errors  ERR_UNAVAILABLE it was not acknowledged */
MUST_CHECK bool jetstream_publish(struct jetstream *jetstream, struct str workspace,
                                  struct str id, struct str payload, struct err *e);

#endif
