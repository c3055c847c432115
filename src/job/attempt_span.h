/* attempt_span: the span of one attempt of a job (spans/spans.h).
 *
 *     who submits ─▶ process nimi-job ┬ chat MODEL       a child of the submitter's span, however
 *                                     └ embeddings ...   much later it runs, and in which process
 *
 * By OpenTelemetry's conventions for messages, processing is a child of the span that sent the
 * message, or is linked to it. A job has one submitter, so each attempt is a child: the submitter's
 * trace has all of it.
 *
 * Memory   a plain value that must not move while its trace is in use.
 * Threads  the loop of its job.
 * Source   OpenTelemetry semantic conventions, "Messaging spans".
 */
#ifndef WEIR_JOB_ATTEMPT_SPAN_H
#define WEIR_JOB_ATTEMPT_SPAN_H

#include "wire/trace_context.h"

struct attempt_span {
    const struct trace_context *caller; /* the submitter's; NULL: it has none */
    struct trace_context own;
    bool runs; /* it has begun and is not reported */
    uint64_t began_ms;
};

/* Nothing begins if nobody wants it. */
void attempt_span_begin(struct attempt_span *span, uint64_t now_ms);

/* What the attempt passes on: its own span, or the caller's; NULL: there is none. */
const struct trace_context *attempt_span_trace(const struct attempt_span *span);

struct attempt_span_end {
    struct str contract;
    uint64_t run;
    int64_t attempt; /* counted from 1 */
    uint64_t now_ms;
    struct str error; /* empty: it is done */
};

/* Report it, if it runs. */
void attempt_span_end(struct attempt_span *span, const struct attempt_span_end *end);

#endif
