/* model_span: the span of a question to a model that belongs to no turn (spans/spans.h): a reply of
 * a chat model, or what a media model makes.
 *
 *     chat gpt-5-mini             a conversation
 *     embeddings MODEL            vectors
 *     generate_content MODEL      speech, images, transcripts; gen_ai.output.type says which
 *
 * Its trace is the caller's, or begins here. One that the caller does not sample is only passed on.
 *
 * Memory   a plain value that must not move while `passed` is in use. The caller's trace is borrowed
 *          until model_span_end().
 * Threads  the loop of the call.
 * Source   open-telemetry/semantic-conventions-genai, "Inference", "Embeddings".
 */
#ifndef WEIR_JOB_MODEL_SPAN_H
#define WEIR_JOB_MODEL_SPAN_H

#include "provider/media.h"
#include "provider/provider.h"

struct model_span {
    const struct trace_context *passed; /* to the model: its own, or the caller's; NULL: none */
    const struct trace_context *caller; /* NULL: it has none */
    struct trace_context own;
    bool wanted;                /* until it is reported */
    uint64_t began_ms;          /* by the loop */
    int64_t prompt, completion; /* tokens; below 0: unknown */
};

void model_span_begin(struct model_span *span, const struct trace_context *caller,
                      uint64_t now_ms);

void model_span_usage(struct model_span *span, const struct event_usage *usage);

/* How it ended. */
struct model_span_end {
    struct str provider, model;
    struct str answered_by; /* the model that answered; or empty */
    uint64_t run, now_ms;
    struct str error; /* empty: it has answered */
};

/* Report it, once. */
void model_span_end_chat(struct model_span *span, const struct model_span_end *end);
void model_span_end_media(struct model_span *span, const struct media_request *request,
                          const struct model_span_end *end);

#endif
