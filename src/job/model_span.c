#include "job/model_span.h"

#include "base/clock.h"
#include "spans/spans.h"

void model_span_begin(struct model_span *span, const struct trace_context *caller,
                      uint64_t now_ms) {
    *span = (struct model_span){.passed = caller,
                                .caller = caller,
                                .began_ms = now_ms,
                                .prompt = TOKENS_UNKNOWN,
                                .completion = TOKENS_UNKNOWN};
    span->wanted = spans_wanted() && (!caller || caller->flags & TRACE_SAMPLED);
    if (!span->wanted) return;
    trace_context_fork(caller, &span->own);
    span->passed = &span->own;
}

void model_span_usage(struct model_span *span, const struct event_usage *usage) {
    span->prompt = usage->prompt;
    span->completion = usage->completion;
}

/* What was asked for. */
struct model_task {
    struct str operation; /* SPAN_NAME() */
    struct str output;    /* gen_ai.output.type, or empty */
    int64_t dimensions;   /* of vectors; below 1: the model's */
};

static void report_task(struct model_span *span, const struct model_task *task,
                        const struct model_span_end *end) {
    if (!span->wanted) return;
    span->wanted = false;
    const struct span_attribute attributes[] = {
        SPAN_TEXT("gen_ai.operation.name", task->operation),
        SPAN_TEXT("gen_ai.provider.name", end->provider),
        SPAN_TEXT("gen_ai.request.model", end->model),
        SPAN_TEXT("gen_ai.response.model", end->answered_by),
        SPAN_TEXT("gen_ai.output.type", task->output),
        SPAN_NUMBER("gen_ai.embeddings.dimension.count",
                    task->dimensions > 0 ? task->dimensions : -1),
        SPAN_NUMBER("gen_ai.usage.input_tokens", span->prompt),
        SPAN_NUMBER("gen_ai.usage.output_tokens", span->completion),
        SPAN_NUMBER("weir.run", end->run ? (int64_t)end->run : -1),
    };
    spans_report(&(struct span){.self = &span->own,
                                .parent = span->caller ? span->caller->span : NULL,
                                .operation = task->operation,
                                .what = end->model,
                                .kind = SPAN_CLIENT,
                                .ended_unix_ms = clock_unix_ms(),
                                .took_ms = end->now_ms - span->began_ms,
                                .attributes = attributes,
                                .count = ARRAY_LEN(attributes),
                                .error = end->error});
}

void model_span_end_chat(struct model_span *span, const struct model_span_end *end) {
    static const struct model_task chat = {.operation = SPAN_NAME("chat"),
                                           .output = STR_INIT("")};
    report_task(span, &chat, end);
}

void model_span_end_media(struct model_span *span, const struct media_request *request,
                          const struct model_span_end *end) {
    static const struct model_task tasks[MEDIA_TASKS] = {
        [MEDIA_SPEECH] = {.operation = SPAN_NAME("generate_content"),
                          .output = STR_INIT("speech")},
        [MEDIA_EMBEDDING] = {.operation = SPAN_NAME("embeddings"), .output = STR_INIT("")},
        [MEDIA_IMAGE] = {.operation = SPAN_NAME("generate_content"),
                         .output = STR_INIT("image")},
        [MEDIA_TRANSCRIPT] = {.operation = SPAN_NAME("generate_content"),
                              .output = STR_INIT("text")},
    };
    struct model_task task = tasks[request->task];
    if (request->task == MEDIA_EMBEDDING) task.dimensions = request->dimensions;
    report_task(span, &task, end);
}
