#include "job/job_span.h"

#include "base/clock.h"
#include "spans/spans.h"

void job_span_begin(struct job_span *span, const struct trace_context *caller,
                    uint64_t now_ms) {
    *span = (struct job_span){.passed = caller,
                              .caller = caller,
                              .began_ms = now_ms,
                              .prompt = TOKENS_UNKNOWN,
                              .completion = TOKENS_UNKNOWN};
    span->wanted = spans_wanted() && (!caller || caller->flags & TRACE_SAMPLED);
    if (!span->wanted) return;
    trace_context_fork(caller, &span->own);
    span->passed = &span->own;
}

void job_span_usage(struct job_span *span, const struct event_usage *usage) {
    span->prompt = usage->prompt;
    span->completion = usage->completion;
}

static struct str error_of(const struct event *last) {
    if (!last) return STR("process_ended");
    if (last->kind == EVENT_CANCELLED) return STR("cancelled");
    if (last->kind != EVENT_FAILED) return STR_EMPTY;
    return last->failed.reason.len ? last->failed.reason : err_name(last->failed.code);
}

/* The rest of *report is its caller's. */
static void job_span_report(struct job_span *span, const struct job_span_end *end,
                            struct span *report) {
    if (!span->wanted) return;
    span->wanted = false;
    report->self = &span->own;
    report->parent = span->caller ? span->caller->span : NULL;
    report->ended_unix_ms = clock_unix_ms();
    report->took_ms = end->now_ms - span->began_ms;
    report->error = error_of(end->last);
    spans_report(report);
}

/* What a model was asked for. */
struct model_task {
    struct str operation; /* SPAN_NAME() */
    struct str output;    /* gen_ai.output.type, or empty */
    int64_t dimensions;   /* of vectors; below 1: the model's */
};

static void report_task(struct job_span *span, const struct model_task *task,
                        const struct job_span_end *end) {
    bool done = end->last && end->last->kind == EVENT_DONE;
    const struct span_attribute attributes[] = {
        SPAN_TEXT("gen_ai.operation.name", task->operation),
        SPAN_TEXT("gen_ai.provider.name", end->provider),
        SPAN_TEXT("gen_ai.request.model", end->model),
        SPAN_TEXT("gen_ai.response.model", done ? end->last->done.model : STR_EMPTY),
        SPAN_TEXT("gen_ai.output.type", task->output),
        SPAN_NUMBER("gen_ai.embeddings.dimension.count",
                    task->dimensions > 0 ? task->dimensions : -1),
        SPAN_NUMBER("gen_ai.usage.input_tokens", span->prompt),
        SPAN_NUMBER("gen_ai.usage.output_tokens", span->completion),
        SPAN_NUMBER("weir.run", end->run ? (int64_t)end->run : -1),
    };
    job_span_report(span, end,
                    &(struct span){.operation = task->operation,
                                   .what = end->model,
                                   .kind = SPAN_CLIENT,
                                   .attributes = attributes,
                                   .count = ARRAY_LEN(attributes)});
}

void job_span_end_chat(struct job_span *span, const struct job_span_end *end) {
    static const struct model_task chat = {.operation = SPAN_NAME("chat"),
                                           .output = STR_INIT("")};
    report_task(span, &chat, end);
}

void job_span_end_media(struct job_span *span, const struct media_request *request,
                        const struct job_span_end *end) {
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

void job_span_end_attempt(struct job_span *span, const struct job_span_end *end) {
    const struct span_attribute attributes[] = {
        SPAN_TEXT("messaging.system", STR("weir")),
        SPAN_TEXT("messaging.operation.name", STR("process")),
        SPAN_TEXT("messaging.operation.type", STR("process")),
        SPAN_TEXT("messaging.destination.name", end->contract),
        SPAN_NUMBER("weir.run", (int64_t)end->run),
        SPAN_NUMBER("weir.job.attempt", end->attempt),
    };
    job_span_report(span, end,
                    &(struct span){.operation = SPAN_NAME("process"),
                                   .what = end->contract,
                                   .kind = SPAN_CONSUMER,
                                   .attributes = attributes,
                                   .count = ARRAY_LEN(attributes)});
}
