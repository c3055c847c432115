/* Speech and embeddings: a media interface delivers its result at once. The result is fed into
 * a journal of this call, and the stream reads it there like a model's text. The media run
 * (job/media_run.h) records the request and its cost. */
#include "contract/nimi/media_spec.h"
#include "contract/nimi/scenario/work.h"

#include <stddef.h>

/* --- the answer --------------------------------------------------------------------------- */

static void scenario_media_on_failed(const struct reply_event *event, void *ctx) {
    struct work *work = ctx;
    work->media_run = NULL;
    work_release_slot(work);
    feed_append(work->feed, &(struct event){.kind = EVENT_FAILED,
                                            .failed = {.code = event->code,
                                                       .reason = event->reason,
                                                       .message = event->text}});
}

/* The result cannot be kept or sent: cancel the request and fail. */
static void scenario_media_give_up(struct work *work, const struct err *why) {
    struct reply_event failed = reply_event_failed(why, STR(MEDIA_RUN_UNUSABLE));
    media_run_cancel(work->media_run, failed.text);
    scenario_media_on_failed(&failed, work);
}

static void end_well(struct work *work) {
    feed_append(work->feed, &(struct event){.kind = EVENT_USAGE, .usage = work->usage});
    feed_append(work->feed,
                &(struct event){.kind = EVENT_DONE, .done = {work->made_by, STR_EMPTY}});
}

/* Everything is in the journal. */
static void on_empty(void *ctx) {
    struct work *work = ctx;
    if (work->made) end_well(work);
}

static void scenario_media_on_artifact(const struct reply_event *event, void *ctx) {
    struct work *work = ctx;
    const struct media_artifact *artifact = event->artifact;
    struct err e;
    bool usable = artifact->bytes.len || err_set(&e, ERR_INTERNAL,
                                                 "the provider made no sound but an address; "
                                                 "ask for it as a job");
    if (usable && feed_put(work->feed, artifact->content_type, artifact->bytes, &e)) return;
    scenario_media_give_up(work, &e);
}

static void scenario_media_on_vector(const struct reply_event *event, void *ctx) {
    struct work *work = ctx;
    const struct reply_vector *vector = event->vector;
    struct err e;
    double *kept = arena_alloc(work->arena, vector->count * sizeof(double));
    if (!kept) {
        err_set(&e, ERR_RESOURCE_EXHAUSTED,
                "the vectors are longer than a call may hold; ask for fewer at once");
        scenario_media_give_up(work, &e);
        return;
    }
    memcpy(kept, vector->values, vector->count * sizeof(double));
    work->vectors[vector->input] = (struct nimi_embedding_vector){kept, vector->count};
}

static void scenario_media_on_usage(const struct reply_event *event, void *ctx) {
    struct work *work = ctx;
    work->usage = *event->usage;
    work->usage.model = STR_EMPTY; /* only lent; the record has it */
}

static void scenario_media_on_done(const struct reply_event *event, void *ctx) {
    struct work *work = ctx;
    work->media_run = NULL;
    work->made = true;
    work->made_by = nimi_keep(work->call, event->model);
    work_release_slot(work);
    if (feed_is_empty(work->feed)) end_well(work);
}

static void scenario_media_on_reply(const struct reply_event *event, void *ctx) {
    static reply_event_fn *const handlers[REPLY_KIND_COUNT] = {
        [REPLY_ARTIFACT] = scenario_media_on_artifact,
        [REPLY_VECTOR] = scenario_media_on_vector,
        [REPLY_USAGE] = scenario_media_on_usage,
        [REPLY_DONE] = scenario_media_on_done,
        [REPLY_FAILED] = scenario_media_on_failed,
    };
    reply_event_handle(handlers, event, ctx);
}

/* --- the request -------------------------------------------------------------------------- */

static bool ask_for(struct work *work, struct str text, struct journal **ret_journal,
                    struct err *e) {
    struct run_host *host = work->call->instance->host;
    struct media_run_options options = {.host = host,
                                        .engine = work->engine,
                                        .media = work->admission.connector->media,
                                        .request = &work->request,
                                        .record = MEDIA_RUN_RECORDED,
                                        .workspace = work->app,
                                        .user = work->subject,
                                        .text = text,
                                        .contract = STR("nimi"),
                                        .trace = work->call->caller_trace,
                                        .asked_ms = work->call->opened_ms,
                                        .clocks = work->clocks,
                                        .on_reply = scenario_media_on_reply,
                                        .ctx = work};
    work->feed =
        feed_new(&(struct feed_options){.loop = host->loop,
                                        .pace_max_bytes = work->engine->limits.pace_max_bytes,
                                        .put_max_bytes = MEDIA_ARTIFACT_MAX_BYTES,
                                        .on_empty = on_empty,
                                        .ctx = work});
    *ret_journal = feed_journal(work->feed);
    feed_append(work->feed, &(struct event){.kind = EVENT_STARTED});
    return media_run_start(&options, &work->media_run, e);
}

static void scenario_media_stop(struct work *work, struct str why) {
    if (work->media_run) media_run_cancel(work->media_run, why);
    work->media_run = NULL;
}

/* --- speech ------------------------------------------------------------------------------- */

static bool prepare_speech(struct work *work, const struct scenario *asked,
                           struct fault *fault) {
    work->projection.tells_usage = true;
    return media_spec_speech(asked->spec->speech_synthesize, work->admission.connector->media,
                             work->admission.model, &work->request, fault) &&
           media_spec_keep(&work->request, work->arena, fault);
}

static bool ask_speech(struct work *work, struct journal **ret_journal, struct err *e) {
    return ask_for(work, work->request.text, ret_journal, e);
}

const struct scenario_kind scenario_speech = {offsetof(struct nimi_settings, speech),
                                              prepare_speech, ask_speech, scenario_media_stop,
                                              NULL};

/* --- vectors ------------------------------------------------------------------------------ */

static bool prepare_embedding(struct work *work, const struct scenario *asked,
                              struct fault *fault) {
    const struct nimi_text_embed_scenario_spec *spec = asked->spec->text_embed;
    work->vectors = arena_alloc(work->arena, spec->inputs_count * sizeof(*work->vectors));
    if (!work->vectors)
        return fault_set(fault, NIMI_AI_INPUT_INVALID,
                         "there are more inputs than a call may hold; ask for fewer at once");
    return media_spec_embedding(spec, work->admission.connector->media, work->admission.model,
                                &work->request, fault) &&
           media_spec_keep(&work->request, work->arena, fault);
}

static bool ask_embedding(struct work *work, struct journal **ret_journal, struct err *e) {
    return ask_for(work, work->request.inputs[0], ret_journal, e);
}

static void reply_embedding(struct work *work, struct str model) {
    const struct nimi_text_embed_output vectors = {work->vectors, work->request.input_count};
    work_reply(work,
               &(struct nimi_scenario_output){.which_output = NIMI_SCENARIO_OUTPUT_TEXT_EMBED,
                                              .text_embed = &vectors},
               model);
}

const struct scenario_kind scenario_embedding = {offsetof(struct nimi_settings, embedding),
                                                 prepare_embedding, ask_embedding,
                                                 scenario_media_stop, reply_embedding};
