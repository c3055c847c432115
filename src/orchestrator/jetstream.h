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

#include "base/buf.h"
#include "base/err.h"

struct jetstream;

/* errors  ERR_UNAVAILABLE libnats is missing, or the server */
MUST_CHECK bool jetstream_open(struct str url, struct jetstream **ret, struct err *e);
void jetstream_close(struct jetstream *jetstream);

/* Append crawbl.usage.v1.<workspace>. The id is one token, so that no workspace's filter matches
 * another's events: all but letters, digits, '-' and '_' is percent-encoded ("a.b" is a%2Eb). Two
 * ids never have one subject. */
void jetstream_subject(struct str workspace, struct buf *out);

/* Publish under the workspace's subject; returns once it is acknowledged. `id` tells repetitions
 * apart.
 * errors  ERR_UNAVAILABLE it was not acknowledged; ERR_TOO_LARGE the server takes no such event,
 *         now or later */
MUST_CHECK bool jetstream_publish(struct jetstream *jetstream, struct str workspace,
                                  struct str id, struct str payload, struct err *e);

#endif
