/* spans: what turns did and when, for an OpenTelemetry collector.
 *
 * There is one queue in a process, as there is one registry of metrics. Until spans_start()
 * nothing is recorded, and asking costs one load of a flag. A span is written as JSON at once,
 * so a report keeps nothing of its caller's. The queue is bounded: what does not fit is dropped and
 * counted, because no turn waits for a collector. contract/otlp takes the queue and sends it.
 *
 * Names follow the OpenTelemetry conventions for generative AI (metrics/metrics.h has the
 * release). No text of a user, a model or a tool is in a span.
 *
 * Memory   owns the queue, SPANS_MAX_BYTES at most.
 * Threads  spans_start() and spans_stop(): before and after all other threads. Others: any.
 * Source   open-telemetry/semantic-conventions-genai, "GenAI spans"; opentelemetry-proto
 *          trace/v1, in the JSON of the OTLP specification (ids are hexadecimal).
 */
#ifndef WEIR_SPANS_SPANS_H
#define WEIR_SPANS_SPANS_H

#include "base/buf.h"
#include "wire/trace_context.h"

#include <stdatomic.h>

#define SPANS_MAX_BYTES (4 * MIB)
#define SPAN_TEXT_BYTES 256 /* longer names and values are cut */

void spans_start(void);
void spans_stop(void);

extern atomic_bool spans_are_on;
#define spans_wanted() (atomic_load_explicit(&spans_are_on, memory_order_relaxed))

enum span_kind { SPAN_INTERNAL = 1, SPAN_SERVER = 2, SPAN_CLIENT = 3 };

/* An empty text and a number below 0 are left out. */
struct span_attribute {
    const char *name;
    struct str text;
    int64_t number;
    bool counts; /* the number is meant */
};

#define SPAN_TEXT(name_, text_)                                                                \
    { .name = (name_), .text = (text_), .counts = false }
#define SPAN_NUMBER(name_, number_)                                                            \
    { .name = (name_), .number = (number_), .counts = true }

struct span {
    const struct trace_context *self; /* its trace and its own id */
    struct str parent;                /* id of the span that it is part of, or empty */
    const char *operation;            /* "chat", then what: "chat gpt-5-mini" */
    struct str what;
    enum span_kind kind;
    int64_t ended_unix_ms;
    uint64_t took_ms;
    const struct span_attribute *attributes;
    size_t count;
    struct str error; /* its kind; empty: none */
};

void spans_report(const struct span *span);

/* Append what waits, as JSON objects with commas between, and empty the queue. False: nothing
 * waits. *ret_dropped: spans that did not fit since the last time. */
MUST_CHECK bool spans_take(struct buf *out, uint64_t *ret_dropped);

#endif
