/* usage_stream: the durable consumer of published usage, batch by batch.
 *
 *     open ─▶ take ─▶ (commit) ─▶ done ─▶ take ...
 *
 * What was taken and is not done is delivered again, also to another process. All processes that
 * name this consumer share its messages.
 *
 * Memory   the texts of a batch live until usage_stream_done().
 * Threads  one at a time; everything blocks.
 * Source   contracts of the orchestrator, "NATS and analytics": the consumer usage-writer.
 */
#ifndef WEIR_ORCHESTRATOR_USAGE_STREAM_H
#define WEIR_ORCHESTRATOR_USAGE_STREAM_H

#include "base/err.h"
#include "base/str.h"

#define USAGE_BATCH_MAX 100

struct usage_stream;

/* Makes the consumer if it is missing, and keeps one that there is.
 * errors  ERR_UNAVAILABLE libnats is missing, or the server, or the stream */
MUST_CHECK bool usage_stream_open(struct str url, struct usage_stream **ret, struct err *e);
void usage_stream_close(struct usage_stream *stream);

/* Up to USAGE_BATCH_MAX messages, after half a second at most; there may be none. */
MUST_CHECK bool usage_stream_take(struct usage_stream *stream, struct str ret[USAGE_BATCH_MAX],
                                  size_t *ret_count, struct err *e);
/* Acknowledge them: they are not delivered again. */
void usage_stream_done(struct usage_stream *stream);

/* Whether everything that was in the stream when it was opened is acknowledged. */
MUST_CHECK bool usage_stream_is_read(struct usage_stream *stream, bool *ret, struct err *e);

#endif
