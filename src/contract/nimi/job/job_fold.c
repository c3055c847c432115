#include "contract/nimi/job/job_fold.h"

#include "contract/nimi/moment.h"
#include "contract/nimi/reason.h"
#include "contract/nimi/ulid.h"

#define ARTIFACTS_MAX 64

/* --- items -------------------------------------------------------------------------------- */

static bool is(const struct event *event, const char *type) {
    return event->kind == EVENT_ITEM && str_equal(event->item.type, str_from(type));
}

/* A whole copy of the item's message. NULL: it is damaged, or the arena is full. */
static void *copy_of(struct job_fold *fold, const struct pb_message *type, struct str bytes) {
    struct str kept;
    struct err e;
    void *message = arena_alloc(fold->run.arena, type->size);
    if (!message || !arena_str(fold->run.arena, bytes, &kept)) return NULL;
    return pb_decode_view(type, kept, fold->run.arena, message, &e) ? message : NULL;
}

static bool copy_head(struct job_fold *fold, const struct nimi_scenario_request_head *from) {
    struct nimi_scenario_request_head *to = &fold->head;
    *to = *from;
    fold->job.head = to;
    bool kept = arena_str(fold->run.arena, from->app_id, &to->app_id) &&
                arena_str(fold->run.arena, from->subject_user_id, &to->subject_user_id) &&
                arena_str(fold->run.arena, from->model_id, &to->model_id) &&
                arena_str(fold->run.arena, from->connector_id, &to->connector_id);
    fold->run.app = to->app_id;
    fold->run.subject = to->subject_user_id;
    return kept;
}

/* Admission let a known extension pass, but nothing reads it. */
static bool show_ignored(struct job_fold *fold,
                         const struct nimi_submit_scenario_job_request *request) {
    if (!request->extensions_count) return true;
    fold->ignored.reason = STR("no provider of this runtime reads extensions");
    fold->job.ignored_extensions = &fold->ignored;
    fold->job.ignored_extensions_count = 1;
    return arena_str(fold->run.arena, request->extensions[0].namespace_,
                     &fold->ignored.namespace_);
}

/* Only the head of the request, its type and its extension are shown. */
static bool job_fold_take_request(struct job_fold *fold, struct str bytes) {
    struct arena *arena = arena_new(8 * bytes.len + 64 * KIB);
    struct nimi_submit_scenario_job_request request;
    struct err e;
    bool whole =
        pb_decode_view(&nimi_submit_scenario_job_request_table, bytes, arena, &request, &e) &&
        request.head && copy_head(fold, request.head) && show_ignored(fold, &request);
    fold->job.scenario_type = request.scenario_type;
    fold->job.execution_mode = NIMI_EXECUTION_MODE_ASYNC_JOB;
    fold->created = fold->updated = nimi_moment(fold->run.started_ms);
    fold->job.created_at = &fold->created;
    fold->job.updated_at = &fold->updated;
    if (whole && fold->run.depth == RUN_FOLD_WHOLE)
        whole = arena_str(fold->run.arena, bytes, &fold->run.request);
    arena_free(arena);
    return whole;
}

static void merge_str(struct str *into, struct str from) {
    if (from.len) *into = from;
}

static bool take_patch(struct job_fold *fold, struct str bytes) {
    const struct nimi_scenario_job *patch = copy_of(fold, &nimi_scenario_job_table, bytes);
    struct nimi_scenario_job *job = &fold->job;
    if (!patch) return false;
    merge_str(&job->job_id, patch->job_id);
    fold->run.id = job->job_id;
    merge_str(&job->trace_id, patch->trace_id);
    merge_str(&job->model_resolved, patch->model_resolved);
    if (patch->route_decision) job->route_decision = patch->route_decision;
    if (patch->usage) {
        fold->usage = *patch->usage;
        job->usage = &fold->usage;
    }
    return true;
}

static bool take_artifact(struct job_fold *fold, struct str bytes) {
    struct nimi_scenario_job *job = &fold->job;
    const struct nimi_scenario_artifact *artifact =
        copy_of(fold, &nimi_scenario_artifact_table, bytes);
    if (!fold->artifacts)
        fold->artifacts =
            arena_alloc(fold->run.arena, ARTIFACTS_MAX * sizeof(*fold->artifacts));
    if (!artifact || !fold->artifacts || job->artifacts_count == ARTIFACTS_MAX) return false;
    fold->artifacts[job->artifacts_count++] = *artifact;
    job->artifacts = fold->artifacts;
    return true;
}

static bool take_output(struct job_fold *fold, struct str bytes) {
    return fold->run.depth != RUN_FOLD_WHOLE ||
           arena_str(fold->run.arena, bytes, &fold->output);
}

static const struct {
    const char *type;
    bool (*take)(struct job_fold *fold, struct str bytes);
} items[] = {
    {RUN_JOB_REQUEST, job_fold_take_request},
    {JOB_PATCH, take_patch},
    {JOB_ARTIFACT, take_artifact},
    {JOB_OUTPUT, take_output},
};

static bool take_item(struct job_fold *fold, const struct event *event) {
    for (size_t i = 0; i < ARRAY_LEN(items); i++) {
        if (is(event, items[i].type)) return items[i].take(fold, event->item.bytes);
    }
    return true; /* an item of another contract */
}

/* --- states ------------------------------------------------------------------------------- */

/* Show the safe detail in addition to the short summary (K-JOB-007). */
static void show_metadata(struct job_fold *fold) {
    fold->provider_message = (struct google_value){.which_kind = GOOGLE_VALUE_STRING_VALUE,
                                                   .string_value = fold->job.reason_detail};
    fold->metadata_fields[0] =
        (struct google_struct_fields_entry){STR("provider_message"), &fold->provider_message};
    fold->metadata = (struct google_struct){fold->metadata_fields, 1};
    fold->job.reason_metadata = &fold->metadata;
}

static bool show_failure(struct job_fold *fold, const struct event *event) {
    struct nimi_scenario_job *job = &fold->job;
    job->reason_code = reason_of_job_failure(event->failed.reason, event->failed.code);
    if (!arena_str(fold->run.arena, event->failed.message, &job->reason_detail)) return false;
    show_metadata(fold);
    return true;
}

static bool show_state(struct job_fold *fold, const struct event *event,
                       const struct run_job_note *note) {
    struct nimi_scenario_job *job = &fold->job;
    run_fold_note(&fold->run, note);
    job->status = (int32_t)note->state + NIMI_SCENARIO_JOB_STATUS_SUBMITTED;
    job->reason_code = NIMI_ACTION_EXECUTED;
    if (note->state == RUN_JOB_QUEUED) job->artifacts_count = 0; /* earlier attempt's */
    int64_t attempt = fold->run.note.attempt;
    job->retry_count = attempt > 1 ? (int32_t)attempt - 1 : 0;
    fold->updated = nimi_moment(fold->run.started_ms + event->at_ms);
    if (event->kind == EVENT_FAILED) return show_failure(fold, event);
    if (event->kind == EVENT_CANCELLED)
        return arena_str(fold->run.arena, event->cancelled.message, &job->reason_detail);
    if (event->kind == EVENT_DONE) {
        job->progress_percent = 100;
        return true;
    }
    job->progress_percent = (int32_t)note->progress.percent;
    job->progress_current_step = (int32_t)note->progress.step;
    job->progress_total_steps = (int32_t)note->progress.steps;
    return true;
}

/* --- folding events ----------------------------------------------------------------------- */

bool job_fold_take(struct job_fold *fold, const struct event *event) {
    struct run_job_note note;
    if (!run_fold_begin(&fold->run, event, STR(JOB_CONTRACT))) return false;
    bool counts = run_job_read(event, &note);
    bool good =
        counts ? fold->job.head && show_state(fold, event, &note) : take_item(fold, event);
    fold->run.shown |= counts;
    return run_fold_end(&fold->run, good, counts);
}

static void fold_init(struct run_fold *fold, enum run_fold_depth depth) {
    job_fold_init(CONTAINER_OF(fold, struct job_fold, run), depth);
}

static void fold_take(struct run_fold *fold, const struct event *event) {
    job_fold_take(CONTAINER_OF(fold, struct job_fold, run), event);
}

const struct run_kind job_fold_kind = {"job", fold_init, fold_take};

void job_fold_init(struct job_fold *fold, enum run_fold_depth depth) {
    *fold = (struct job_fold){.run = run_fold_new(&job_fold_kind, depth)};
}

struct nimi_scenario_job_event job_fold_event(const struct job_fold *fold) {
    return (struct nimi_scenario_job_event){.event_type =
                                                fold->job.status, /* the numbers are the same */
                                            .sequence = fold->run.sequence,
                                            .trace_id = fold->job.trace_id,
                                            .timestamp = &fold->updated,
                                            .job = &fold->job};
}

bool job_artifact_number(struct str artifact_id, uint64_t *ret) {
    struct str head = STR(JOB_ARTIFACT_HEAD);
    return str_starts(artifact_id, head) && ulid_number(str_skip(artifact_id, head.len), ret);
}
