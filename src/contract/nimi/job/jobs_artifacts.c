#include "contract/nimi/job/jobs.h"

#include "base/mem.h"
#include "contract/nimi/job/job_shown.h"

#include <stddef.h>
#include <stdlib.h>

/* One GetScenarioArtifacts. */
struct result {
    struct run_open open; /* must be the first member */
    struct job_fold fold;
    struct job_shown *shown; /* the reply */
};

/* --- the reply ---------------------------------------------------------------------------- */

/* The output from the journal, or one made of the artifacts. The reply holds the artifacts'
 * bytes only once, in the list of artifacts. */
struct parts {
    struct nimi_scenario_output output;
    struct nimi_speech_synthesize_result speech;
    struct nimi_image_generate_result images;
    struct nimi_speech_transcribe_result transcript;
};

/* The transcript's text is in the journal, its artifacts are in the job: combine them. */
static void add_transcript(const struct nimi_scenario_job *job, struct parts *parts) {
    if (parts->output.which_output != NIMI_SCENARIO_OUTPUT_SPEECH_TRANSCRIBE) return;
    parts->transcript = *parts->output.speech_transcribe;
    parts->transcript.artifacts = job->artifacts;
    parts->transcript.artifacts_count = job->artifacts_count;
    parts->output.speech_transcribe = &parts->transcript;
}

static const struct nimi_scenario_output *output_of(const struct job_fold *fold,
                                                    struct arena *arena, struct parts *parts) {
    const struct nimi_scenario_job *job = &fold->job;
    struct err e;
    if (fold->output.len) {
        if (!pb_decode_view(&nimi_scenario_output_table, fold->output, arena, &parts->output,
                            &e))
            return NULL;
        add_transcript(job, parts);
        return &parts->output;
    }
    if (!job->artifacts_count) return NULL;
    if (job->scenario_type == NIMI_SCENARIO_TYPE_SPEECH_SYNTHESIZE) {
        parts->speech =
            (struct nimi_speech_synthesize_result){job->artifacts, job->artifacts_count};
        parts->output.which_output = NIMI_SCENARIO_OUTPUT_SPEECH_SYNTHESIZE;
        parts->output.speech_synthesize = &parts->speech;
    } else {
        parts->images =
            (struct nimi_image_generate_result){job->artifacts, job->artifacts_count};
        parts->output.which_output = NIMI_SCENARIO_OUTPUT_IMAGE_GENERATE;
        parts->output.image_generate = &parts->images;
    }
    return &parts->output;
}

static void reply_shown(const void *reply, const struct err *failed, void *ctx) {
    struct nimi_call *call = ((struct result *)ctx)->open.call;
    if (call->over) return;
    if (failed) {
        nimi_refuse_code(call, NIMI_AI_PROVIDER_UNAVAILABLE, failed->code,
                         "an artifact cannot be read: %s", failed->text);
    } else {
        nimi_reply(call, &nimi_get_scenario_artifacts_response_table, reply);
    }
}

/* The reply, to which the artifacts' bytes are added. NULL: it is too large. */
static struct job_shown *show(struct result *result) {
    static const struct job_shown_kind kind = {
        &nimi_get_scenario_artifacts_response_table,
        offsetof(struct nimi_get_scenario_artifacts_response, artifacts),
        offsetof(struct nimi_get_scenario_artifacts_response, artifacts_count)};
    const struct job_fold *fold = &result->fold;
    struct parts parts = {.output = {.which_output = 0}};
    struct arena *passing = arena_new(64 * MIB);
    const struct nimi_get_scenario_artifacts_response reply = {
        .job_id = fold->job.job_id,
        .artifacts = fold->job.artifacts,
        .artifacts_count = fold->job.artifacts_count,
        .trace_id = fold->job.trace_id, /* K-AUDIT-019: it joins the job's records */
        .output = output_of(fold, passing, &parts)};
    struct job_shown *shown =
        job_shown_new(result->open.call, fold->run.app, &kind, &reply, reply_shown, result);
    arena_free(passing);
    return shown;
}

/* K-JOB-006: a caller whose credential was revoked cannot fetch anything. */
static void jobs_artifacts_on_open(struct run_open *open) {
    struct result *result = CONTAINER_OF(open, struct result, open);
    const struct nimi_scenario_job *job = &result->fold.job;
    if (job->status == NIMI_SCENARIO_JOB_STATUS_FAILED &&
        job->reason_code == NIMI_AI_PROVIDER_AUTH_FAILED) {
        nimi_refuse_for(open->call, NIMI_AI_PROVIDER_AUTH_FAILED, STR_FMT,
                        STR_ARG(job->reason_detail));
        return;
    }
    result->shown = show(result);
    run_fold_done(open->fold); /* it has the whole request, and a reader may be slow */
    if (!result->shown)
        nimi_refuse_for(open->call, NIMI_AI_OUTPUT_INVALID,
                        "what came of the job has no room in a reply");
}

/* --- the call ----------------------------------------------------------------------------- */

static void jobs_artifacts_on_closed(void *ctx) {
    struct result *result = ctx;
    job_shown_free(result->shown);
    run_open_done(&result->open);
    free(result);
}

static const struct nimi_work events = {.closed = jobs_artifacts_on_closed};

void jobs_artifacts(struct nimi_call *call, const void *request) {
    const struct nimi_get_scenario_artifacts_request *from = request;
    if (!jobs_is_named(call, from->job_id)) return;
    struct result *result = MEM_NEW(struct result);
    result->open = (struct run_open){.call = call,
                                     .kind = &job_fold_kind,
                                     .depth = RUN_FOLD_WHOLE,
                                     .fold = &result->fold.run,
                                     .on_open = jobs_artifacts_on_open,
                                     .on_missing = jobs_missing};
    nimi_work(call, &events, result);
    run_open_start(&result->open, from->job_id);
}
