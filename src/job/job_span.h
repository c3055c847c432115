/* job_span: the span of a job's attempt, or of a question to a model that belongs to no turn
 * (spans/spans.h): a reply of a chat model, or what a media model makes.
 *
 *     who submits ─▶ process nimi-job ┬ chat gpt-5-mini         a conversation
 *                                     ├ embeddings MODEL        vectors
 *                                     └ generate_content MODEL  speech, images, transcripts;
 *                                                               gen_ai.output.type says which
 *
 * Its trace is the caller's, or begins here. One that the caller does not sample is only passed on. By
 * OpenTelemetry's conventions for messages, processing is a child of the span that sent the message, or
 * is linked to it. A job has one submitter, so each attempt is a child, however much later it runs, and
 * in which process: the submitter's trace has all of it.
 *
 * Memory   a plain value that must not move while `passed` is in use. The caller's trace is borrowed
 *          until the end.
 * Threads  the loop of the job or the call.
 * Source   open-telemetry/semantic-conventions-genai, "Inference", "Embeddings"; OpenTelemetry semantic
 *          conventions, "Messaging spans".
 */
#ifndef WEIR_JOB_JOB_SPAN_H
#define WEIR_JOB_JOB_SPAN_H

#include "provider/media.h"
#include "provider/provider.h"

struct job_span {
    const struct trace_context *passed; /* its own, or the caller's; NULL: none */
    const struct trace_context *caller; /* NULL: it has none */
    struct trace_context own;
    bool wanted; /* until it is reported */
    uint64_t began_ms;
    int64_t prompt, completion; /* tokens of a model; below 0: unknown */
};

void job_span_begin(struct job_span *span, const struct trace_context *caller, uint64_t now_ms);

void job_span_usage(struct job_span *span, const struct event_usage *usage);

/* How it ended. */
struct job_span_end {
    struct str provider, model; /* of a question */
    struct str contract;        /* of an attempt */
    int64_t attempt;            /* counted from 1 */
    uint64_t run, now_ms;
    const struct event *last; /* done, failed or cancelled; NULL: the process ended */
};

/* Report it, once. */
void job_span_end_chat(struct job_span *span, const struct job_span_end *end);
void job_span_end_media(struct job_span *span, const struct media_request *request,
                        const struct job_span_end *end);
void job_span_end_attempt(struct job_span *span, const struct job_span_end *end);

#endif
