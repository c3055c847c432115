/* A job that a media interface does; its results arrive complete. Artifacts are written to the
 * store as they arrive and are noted in the job's journal once stored. Vectors and transcripts
 * are gathered and noted at the end. */
#include "base/clock.h"
#include "base/mem.h"
#include "contract/nimi/fetch.h"
#include "contract/nimi/job/job_inner.h"
#include "contract/nimi/ulid.h"
#include "session/session.h"
#include "store/artifact.h"
#include "wire/digest.h"

#include <stdlib.h>

#define MADE_MAX_BYTES (64 * MIB)
#define PERCENT 100

/* One artifact on its way to the store. */
struct put {
    struct list link; /* in work->puts */
    struct job_work *work;
    struct artifact_ask *ask;
    struct buf texts; /* text that `shown` borrows */
    struct nimi_scenario_artifact shown;
    char sum[2 * DIGEST_BYTES + 1];
};

static void put_free(struct put *put) {
    list_remove(&put->link);
    artifact_forget(put->ask);
    buf_done(&put->texts);
    free(put);
}

static void job_media_give_up(struct job_work *work, const struct err *why) {
    job_fail(work, why->code, STR(MEDIA_RUN_UNUSABLE), err_text(why));
}

/* --- the end ------------------------------------------------------------------------------ */

static void complete(struct job_work *work) {
    struct nimi_scenario_output output = {.which_output = 0};
    struct nimi_text_embed_output vectors = {work->vectors, work->spec.media.input_count};
    struct nimi_speech_transcribe_result transcript = {.text = buf_str(&work->text)};
    switch (work->spec.media.task) {
    case MEDIA_EMBEDDING:
        output.which_output = NIMI_SCENARIO_OUTPUT_TEXT_EMBED;
        output.text_embed = &vectors;
        break;
    case MEDIA_TRANSCRIPT:
        output.which_output = NIMI_SCENARIO_OUTPUT_SPEECH_TRANSCRIBE;
        output.speech_transcribe = &transcript;
        break;
    default: break; /* its artifacts are noted already */
    }
    job_complete(work, output.which_output ? &output : NULL, work->made_by);
}

/* Complete the job when the media interface is done and everything is stored. */
static void complete_if_all(struct job_work *work) {
    if (work->made_all && list_empty(&work->puts)) complete(work);
}

/* --- progress ----------------------------------------------------------------------------- */

/* Number of pieces requested. With one there is no progress to report. */
static size_t pieces_of(const struct media_request *request) {
    if (request->task == MEDIA_EMBEDDING) return request->input_count;
    return request->task == MEDIA_IMAGE && request->count > 1 ? (size_t)request->count : 1;
}

static void job_media_report(void *ctx) {
    struct job_work *work = ctx;
    size_t pieces = pieces_of(&work->spec.media);
    size_t made = work->made_count < pieces ? work->made_count : pieces;
    run_job_report(work->job, &(struct run_job_progress){(int64_t)(made * PERCENT / pieces),
                                                         (int64_t)made, (int64_t)pieces});
}

/* Count one more finished piece. */
static void count_piece(struct job_work *work) {
    work->made_count++;
    if (pieces_of(&work->spec.media) > 1) loop_defer(work->instance->host->loop, &work->tell);
}

/* --- artifacts ---------------------------------------------------------------------------- */

static void spell_sum(struct str bytes, char *ret) {
    uint8_t sum[DIGEST_BYTES];
    digest_text(bytes, sum);
    digest_digits(sum, DIGEST_DIGITS, ret);
    ret[DIGEST_DIGITS] = '\0';
}

/* `number` is the store's; 0: its bytes are not stored. False: the job has failed. */
static bool note_artifact(struct put *put, uint64_t number) {
    char id[sizeof(JOB_ARTIFACT_HEAD) + ULID_LEN] = JOB_ARTIFACT_HEAD;
    struct job_work *work = put->work;
    char *ulid = id + sizeof(JOB_ARTIFACT_HEAD) - 1;
    if (number) {
        ulid_new_numbered(ulid, clock_unix_ms(), number);
    } else {
        ulid_new(ulid);
    }
    put->shown.artifact_id = str_from(id);
    bool fits = job_note(work, JOB_ARTIFACT, &nimi_scenario_artifact_table, &put->shown);
    put_free(put);
    if (!fits) {
        struct err e;
        err_set(&e, ERR_INTERNAL, "the provider's artifact has an address that is too long");
        job_media_give_up(work, &e);
        return false;
    }
    count_piece(work);
    complete_if_all(work);
    return true;
}

static void job_media_on_put(const struct artifact *artifact, const struct err *failed,
                             void *ctx) {
    struct put *put = ctx;
    put->ask = NULL;
    if (failed) {
        job_media_give_up(put->work, failed); /* this also frees `put` */
    } else {
        (void)note_artifact(put, (uint64_t)artifact->id);
    }
}

static struct put *put_new(struct job_work *work, const struct media_artifact *from) {
    struct put *put = MEM_NEW(struct put);
    size_t type_len = from->content_type.len, uri_len = from->uri.len;
    put->work = work;
    buf_init(&put->texts, type_len + uri_len + 1);
    buf_append(&put->texts, from->content_type);
    buf_append(&put->texts, from->uri);
    struct str texts = buf_str(&put->texts);
    if (from->bytes.len) spell_sum(from->bytes, put->sum);
    put->shown =
        (struct nimi_scenario_artifact){.mime_type = str_head(texts, type_len),
                                        .uri = str_skip(texts, type_len),
                                        .sha256 = str_from(put->sum),
                                        .size_bytes = (int64_t)from->bytes.len,
                                        .duration_ms = from->duration_ms,
                                        .width = (int32_t)from->width,
                                        .height = (int32_t)from->height,
                                        .sample_rate_hz = (int32_t)from->sample_rate_hz,
                                        .channels = (int32_t)from->channels};
    list_append(&work->puts, &put->link);
    return put;
}

static bool keep_bytes(struct put *put, const struct media_artifact *from, struct err *e) {
    struct job_work *work = put->work;
    struct store *store = session_table_store(work->engine->sessions);
    char token[ARTIFACT_TOKEN_BYTES];
    fetch_token(token);
    const struct artifact artifact = {.run = run_job_id(work->job),
                                      .name = STR("made"),
                                      .content_type = from->content_type,
                                      .bytes = from->bytes,
                                      .token = str_of(token, sizeof(token))};
    if (!store)
        return err_set(e, ERR_UNAVAILABLE,
                       "nothing is stored here, so no artifact can be kept");
    return artifact_put_start(store, work->instance->host->loop, work->request.head->app_id,
                              &artifact, job_media_on_put, put, &put->ask, e);
}

/* False: the job has failed. */
static bool keep_artifact(struct job_work *work, const struct media_artifact *artifact) {
    struct err e;
    struct put *put = put_new(work, artifact);
    if (artifact->bytes.len == 0) return note_artifact(put, 0);
    if (keep_bytes(put, artifact, &e)) return true;
    job_media_give_up(work, &e);
    return false;
}

static void on_artifact(const struct reply_event *event, void *ctx) {
    (void)keep_artifact(ctx, event->artifact);
}

/* --- transcripts and vectors -------------------------------------------------------------- */

static void on_text(const struct reply_event *event, void *ctx) {
    struct job_work *work = ctx;
    buf_append(&work->text, event->text);
}

static void on_vector(const struct reply_event *event, void *ctx) {
    struct job_work *work = ctx;
    const struct reply_vector *vector = event->vector;
    struct err e;
    double *kept = arena_alloc(work->made, vector->count * sizeof(double));
    if (!kept) {
        err_set(&e, ERR_RESOURCE_EXHAUSTED,
                "the vectors are longer than a job may hold; ask for fewer at once");
        job_media_give_up(work, &e);
        return;
    }
    memcpy(kept, vector->values, vector->count * sizeof(double));
    work->vectors[vector->input] = (struct nimi_embedding_vector){kept, vector->count};
    count_piece(work);
}

static void on_usage(const struct reply_event *event, void *ctx) {
    struct job_work *work = ctx;
    work->usage = job_usage(event->usage);
    run_job_usage(work->job, event->usage);
}

/* A transcript is also kept as an artifact, for clients that do not know outputs. */
static bool keep_transcript(struct job_work *work) {
    return keep_artifact(work, &(struct media_artifact){.content_type = STR("text/plain"),
                                                        .bytes = buf_str(&work->text),
                                                        .uri = STR_EMPTY});
}

static void job_media_on_done(const struct reply_event *event, void *ctx) {
    struct job_work *work = ctx;
    work->media_run = NULL;
    if (!arena_str(work->made, event->model, &work->made_by)) work->made_by = STR_EMPTY;
    if (work->spec.media.task == MEDIA_TRANSCRIPT && !keep_transcript(work)) return;
    work->made_all = true;
    complete_if_all(work);
}

static void on_failed(const struct reply_event *event, void *ctx) {
    struct job_work *work = ctx;
    work->media_run = NULL;
    job_fail(work, event->code, event->reason, event->text);
}

static void on_reply(const struct reply_event *event, void *ctx) {
    static reply_event_fn *const handlers[REPLY_KIND_COUNT] = {
        [REPLY_ARTIFACT] = on_artifact,   [REPLY_TEXT] = on_text,
        [REPLY_VECTOR] = on_vector,       [REPLY_USAGE] = on_usage,
        [REPLY_DONE] = job_media_on_done, [REPLY_FAILED] = on_failed,
    };
    reply_event_handle(handlers, event, ctx);
}

/* --- the request -------------------------------------------------------------------------- */

static bool job_media_ask(struct job_work *work, struct err *e) {
    struct run_host *host = work->instance->host;
    size_t inputs = work->spec.media.input_count;
    work->made = arena_new(MADE_MAX_BYTES);
    work->made_count = 0;
    work->made_all = false;
    task_init(&work->tell, job_media_report, work);
    work->vectors = arena_alloc(work->made, (inputs + 1) * sizeof(*work->vectors));
    if (!work->vectors)
        return err_set(e, ERR_RESOURCE_EXHAUSTED, "there are more inputs than a job may have");
    return media_run_start(
        &(struct media_run_options){.host = host,
                                    .engine = work->engine,
                                    .media = work->admission.connector->media,
                                    .request = &work->spec.media,
                                    .record = MEDIA_RUN_UNRECORDED,
                                    .workspace = work->request.head->app_id,
                                    .user = run_job_user(work->job),
                                    .text = work->spec.asked,
                                    .contract = STR("nimi"),
                                    .trace = run_job_trace(work->job),
                                    .asked_ms = loop_now_ms(host->loop),
                                    .clocks = {.total_ms = work->spec.total_ms},
                                    .on_reply = on_reply,
                                    .ctx = work},
        &work->media_run, e);
}

static void job_media_stop(struct job_work *work, struct str why) {
    if (work->media_run) media_run_cancel(work->media_run, why);
    work->media_run = NULL;
    if (work->made) task_cancel(&work->tell);
    LIST_EACH(&work->puts, link) {
        put_free(CONTAINER_OF(link, struct put, link));
    }
    arena_free(work->made);
    work->made = NULL;
}

const struct job_asked job_asks_media = {job_media_ask, job_media_stop};
