#include "contract/nimi/jobs.h"

#include "base/mem.h"
#include "contract/nimi/job_open.h"
#include "store/artifact.h"

#include <stdlib.h>

#define REPLY_MAX_BYTES (4 * MIB - 64 * KIB) /* the SDK takes no message above 4 MiB */

/* One GetScenarioArtifacts. */
struct result {
    struct job_open open; /* first: it is one */
    struct arena *arena;  /* the reply, its own copy */
    struct nimi_get_scenario_artifacts_response reply;
    struct nimi_scenario_artifact *artifacts; /* those of the reply */
    struct str app;
    size_t left_bytes; /* what the reply may still grow */
    size_t next;       /* index of the artifact whose bytes are read */
    struct buf bytes;  /* so far */
    struct artifact_ask *ask;
};

/* --- bytes -------------------------------------------------------------------------------- */

static void read_next(struct result *result);

static void send_reply(struct result *result) {
    nimi_reply(result->open.call, &nimi_get_scenario_artifacts_response_table, &result->reply);
}

static void on_piece(const struct artifact *artifact, const struct err *failed, void *ctx);

static void read_piece(struct result *result, int64_t id) {
    const struct nimi_desk *desk = result->open.call->desk;
    result->ask = artifact_get_start(
        session_table_store(desk->host->engine->sessions), rpc_loop(result->open.call->rpc),
        result->app, id, result->bytes.len, ARTIFACT_PIECE_MAX_BYTES, on_piece, result);
}

static void refuse_unreadable(struct result *result, const struct err *failed) {
    struct fault fault;
    fault_set_code(&fault, NIMI_AI_PROVIDER_UNAVAILABLE, failed->code,
                   "an artifact cannot be read: %s", failed->text);
    nimi_refuse(result->open.call, &fault);
}

static void on_piece(const struct artifact *artifact, const struct err *failed, void *ctx) {
    struct result *result = ctx;
    struct nimi_scenario_artifact *to = &result->artifacts[result->next];
    result->ask = NULL;
    if (result->open.call->over) return;
    if (failed) {
        refuse_unreadable(result, failed);
        return;
    }
    buf_append(&result->bytes, artifact->bytes);
    if (artifact->bytes.len && result->bytes.len < artifact->size) {
        read_piece(result, artifact->id);
        return;
    }
    if (arena_str(result->arena, buf_str(&result->bytes), &to->bytes))
        result->left_bytes -= to->bytes.len;
    buf_clear(&result->bytes);
    result->next++;
    read_next(result);
}

/* What does not fit is told without its bytes: its id, size and sum are there. */
static void read_next(struct result *result) {
    for (; result->next < result->reply.artifacts_count; result->next++) {
        const struct nimi_scenario_artifact *artifact = &result->artifacts[result->next];
        uint64_t id;
        bool kept = artifact->size_bytes > 0 && /* not only its address */
                    job_artifact_number(artifact->artifact_id, &id);
        if (!kept || (size_t)artifact->size_bytes > result->left_bytes) continue;
        read_piece(result, (int64_t)id);
        return;
    }
    send_reply(result);
}

/* --- the rest of the reply ---------------------------------------------------------------- */

/* What came out, where the journal has it; else it is the artifacts. Their bytes stand in the
 * reply once, beside it. */
struct parts {
    struct nimi_scenario_output output;
    struct nimi_speech_synthesize_result speech;
    struct nimi_image_generate_result images;
};

static const struct nimi_scenario_output *output_of(const struct job_fold *fold,
                                                    struct arena *arena, struct parts *parts) {
    const struct nimi_scenario_job *job = &fold->job;
    struct err e;
    if (fold->output.len)
        return pb_decode_view(&nimi_scenario_output_table, fold->output, arena, &parts->output,
                              &e)
                   ? &parts->output
                   : NULL;
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

/* A copy of everything but the artifacts' bytes, which are still to be read. */
static bool copy_reply(struct result *result, const struct job_fold *fold) {
    struct parts parts = {.output = {.which_output = 0}};
    struct arena *passing = arena_new(64 * MIB);
    const struct nimi_get_scenario_artifacts_response told = {
        .job_id = fold->job.job_id,
        .artifacts = fold->job.artifacts,
        .artifacts_count = fold->job.artifacts_count,
        .trace_id = nimi_trace(result->open.call),
        .output = output_of(fold, passing, &parts)};
    struct buf bytes;
    struct str kept;
    struct err e;
    buf_init(&bytes, REPLY_MAX_BYTES);
    bool copied = pb_encode(&nimi_get_scenario_artifacts_response_table, &told, &bytes) &&
                  arena_str(result->arena, buf_str(&bytes), &kept) &&
                  arena_str(result->arena, fold->head.app_id, &result->app) &&
                  pb_decode_view(&nimi_get_scenario_artifacts_response_table, kept,
                                 result->arena, &result->reply, &e);
    result->left_bytes = REPLY_MAX_BYTES - bytes.len;
    buf_done(&bytes);
    arena_free(passing);
    return copied;
}

static bool own_artifacts(struct result *result) {
    size_t count = result->reply.artifacts_count;
    result->artifacts = arena_alloc(result->arena, (count + 1) * sizeof(*result->artifacts));
    if (!result->artifacts) return false;
    if (count)
        memcpy(result->artifacts, result->reply.artifacts, count * sizeof(*result->artifacts));
    result->reply.artifacts = result->artifacts;
    return true;
}

/* K-JOB-006: whose credential was revoked has nothing to fetch. */
static void on_open(struct job_open *open, struct job_fold *fold) {
    struct result *result = (struct result *)(void *)open; /* its first member */
    struct fault fault;
    if (fold->job.status == NIMI_SCENARIO_JOB_STATUS_FAILED &&
        fold->job.reason_code == NIMI_AI_PROVIDER_AUTH_FAILED) {
        fault_set(&fault, NIMI_AI_PROVIDER_AUTH_FAILED, STR_FMT,
                  STR_ARG(fold->job.reason_detail));
        nimi_refuse(open->call, &fault);
    } else if (!copy_reply(result, fold) || !own_artifacts(result)) {
        fault_set(&fault, NIMI_AI_OUTPUT_INVALID,
                  "what came of the job has no room in a reply");
        nimi_refuse(open->call, &fault);
    } else {
        read_next(result);
    }
}

/* --- the call ----------------------------------------------------------------------------- */

static void on_closed(void *ctx) {
    struct result *result = ctx;
    job_open_done(&result->open);
    artifact_forget(result->ask);
    buf_done(&result->bytes);
    arena_free(result->arena);
    free(result);
}

static const struct nimi_work events = {.closed = on_closed};

void jobs_artifacts(struct nimi_call *call, const void *request, struct arena *arena) {
    const struct nimi_get_scenario_artifacts_request *from = request;
    struct result *result = MEM_NEW(struct result);
    (void)arena;
    result->open = (struct job_open){.call = call, .on_open = on_open};
    result->arena = arena_new(64 * MIB);
    buf_init(&result->bytes, ARTIFACT_MAX_BYTES);
    nimi_work(call, &events, result);
    job_open_start(&result->open, from->job_id, JOB_FOLD_WHOLE);
}
