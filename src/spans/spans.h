/* spans: what turns and requests did and when, for an OpenTelemetry collector.
 *
 * There is one queue in a process, as there is one registry of metrics. Until spans_start()
 * nothing is recorded, and asking costs one load of a flag. A report writes the span once, in the
 * form in which it is sent, into a chunk of memory. exporter/ takes whole chunks and sends their
 * bytes from a thread of its own. The queue is bounded: what does not fit is dropped and counted,
 * because no turn waits for a collector.
 *
 *     chunk:  12 len span | 12 len span | ...     field `spans` of an OTLP ScopeSpans, repeated
 *
 * Names follow the OpenTelemetry conventions for generative AI (metrics/metrics.h has the
 * release). No text of a user, a model or a tool is in a span.
 *
 * Memory   owns the queue: chunks of SPANS_CHUNK_BYTES, made when they are needed, SPANS_MAX_BYTES
 *          at most with those that were taken.
 * Threads  spans_start() and spans_stop(): before and after all other threads. Others: any.
 * Source   open-telemetry/semantic-conventions-genai, "GenAI spans"; opentelemetry-proto
 *          trace/v1/trace.proto.
 */
#ifndef WEIR_SPANS_SPANS_H
#define WEIR_SPANS_SPANS_H

#include "base/list.h"
#include "wire/trace_context.h"

#include <stdatomic.h>

#define SPANS_CHUNK_BYTES (256 * KIB)
#define SPANS_MAX_BYTES (4 * MIB)
#define SPANS_HEAD_BYTES 1024
#define SPAN_NAME_BYTES 40  /* of an operation, and of the name of an attribute, at most */
#define SPAN_TEXT_BYTES 256 /* longer values, and what was asked, are cut */
#define SPAN_ATTRIBUTES_MAX 16

/* `on_chunk` runs on a reporting thread each time that a chunk is begun, and so once for some
 * 700 spans: where there was none, or because the one before is full. */
typedef void spans_chunk_fn(void *ctx);
void spans_start(spans_chunk_fn *on_chunk, void *ctx);
void spans_stop(void);

extern atomic_bool spans_are_on;
#define spans_wanted() (atomic_load_explicit(&spans_are_on, memory_order_relaxed))

/* The initialiser of a name: a constant with room after its end, so that SPAN_NAME_BYTES of it can
 * be copied, since a copy of constant length is a few instructions. */
#define SPAN_NAME(literal)                                                                     \
    { literal "\0______________________________________", sizeof(literal) - 1 }

enum span_kind { SPAN_INTERNAL = 1, SPAN_SERVER = 2, SPAN_CLIENT = 3, SPAN_CONSUMER = 5 };

/* An empty text and a number below 0 are left out. */
struct span_attribute {
    struct str name; /* SPAN_NAME() */
    struct str text;
    int64_t number;
    bool counts; /* the number is meant */
};

#define SPAN_TEXT(name_, text_)                                                                \
    { .name = SPAN_NAME(name_), .text = (text_), .counts = false }
#define SPAN_NUMBER(name_, number_)                                                            \
    { .name = SPAN_NAME(name_), .number = (number_), .counts = true }

struct span {
    const struct trace_context *self; /* its trace and its own id */
    const unsigned char *parent;      /* id of the span that it is part of, or NULL */
    struct str operation;             /* SPAN_NAME("chat"), then what: "chat gpt-5-mini" */
    struct str what;
    enum span_kind kind;
    int64_t ended_unix_ms;
    uint64_t took_ms;
    const struct span_attribute *attributes;
    size_t count;     /* SPAN_ATTRIBUTES_MAX at most */
    struct str error; /* its kind; empty: none */
};

void spans_report(const struct span *span);

/* --- for the exporter --- */

struct spans_chunk;

enum spans_taken { SPANS_FULL, SPANS_ANY };

/* The chunk that waits longest; NULL: none does, or (SPANS_FULL) it has room for more. The caller
 * ends it with spans_chunk_free(). *ret_dropped: spans that did not fit since the last time. */
struct spans_chunk *spans_take(enum spans_taken which, uint64_t *ret_dropped);
void spans_chunk_free(struct spans_chunk *chunk); /* accepts NULL */

/* Whole spans from `from` on, which is 0 or the end of a part: as many as `max_bytes` hold, but at
 * least one. Without any there are no more. What the parts before it held is given up: the
 * SPANS_HEAD_BYTES in front of it may be written to, so that a request needs no copy. */
struct spans_part {
    char *at; /* in the chunk */
    size_t len, count;
};
struct spans_part spans_chunk_part(struct spans_chunk *chunk, size_t from, size_t max_bytes);

#endif
