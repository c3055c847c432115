#include "job/attempt_span.h"

#include "base/clock.h"
#include "spans/spans.h"

void attempt_span_begin(struct attempt_span *span, uint64_t now_ms) {
    span->runs = spans_wanted() && (!span->caller || span->caller->flags & TRACE_SAMPLED);
    if (!span->runs) return;
    trace_context_fork(span->caller, &span->own);
    span->began_ms = now_ms;
}

const struct trace_context *attempt_span_trace(const struct attempt_span *span) {
    return span->runs ? &span->own : span->caller;
}

void attempt_span_end(struct attempt_span *span, const struct attempt_span_end *end) {
    if (!span->runs) return;
    span->runs = false;
    const struct span_attribute attributes[] = {
        SPAN_TEXT("messaging.system", STR("weir")),
        SPAN_TEXT("messaging.operation.name", STR("process")),
        SPAN_TEXT("messaging.operation.type", STR("process")),
        SPAN_TEXT("messaging.destination.name", end->contract),
        SPAN_NUMBER("weir.run", (int64_t)end->run),
        SPAN_NUMBER("weir.job.attempt", end->attempt),
    };
    spans_report(&(struct span){.self = &span->own,
                                .parent = span->caller ? span->caller->span : NULL,
                                .operation = SPAN_NAME("process"),
                                .what = end->contract,
                                .kind = SPAN_CONSUMER,
                                .ended_unix_ms = clock_unix_ms(),
                                .took_ms = end->now_ms - span->began_ms,
                                .attributes = attributes,
                                .count = ARRAY_LEN(attributes),
                                .error = end->error});
}
