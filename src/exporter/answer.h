/* answer: what a collector says about the spans that it was sent.
 *
 * A collector that took a request may still have refused some of its spans; one that refused the
 * request may say why. Both are for the log: none of it is sent again.
 *
 * Memory   the caller's arena.
 * Threads  none.
 * Source   opentelemetry-proto collector/trace/v1 ExportTraceServiceResponse; the OTLP
 *          specification, "OTLP/HTTP Response"; google.rpc.Status.
 */
#ifndef WEIR_EXPORTER_ANSWER_H
#define WEIR_EXPORTER_ANSWER_H

#include "base/arena.h"
#include "base/str.h"

#include <stdint.h>

struct exporter_answer {
    int64_t rejected;   /* spans; 0: none */
    struct str message; /* or empty; a peer's text, valid UTF-8 */
};

/* The answer to a request that was taken, and to one that was not. What is no such message, as the
 * page of a proxy, says nothing. `body` must outlive the result. */
struct exporter_answer exporter_answer_taken(struct str body, struct arena *arena);
struct exporter_answer exporter_answer_refused(struct str body, struct arena *arena);

#endif
