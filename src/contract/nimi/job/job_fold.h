/* job_fold: rebuild the state of a job from its journal (run_fold.h).
 *
 * A job of this protocol is a run_job.h whose request is a SubmitScenarioJobRequest. Besides
 * the states that every job has, its journal holds items named after this protocol's messages:
 *
 *     ScenarioJob        facts as they become known: id, trace, model, route, usage; merged in
 *     ScenarioArtifact   one more artifact, without its bytes
 *     ScenarioOutput     the result
 *
 * Memory   owns copies of everything it shows, until run_fold_done().
 * Threads  none; values only.
 * Source   contracts/nimi.md 1.5, 3.4, 6.2.
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_JOB_FOLD_H
#define WEIR_CONTRACT_NIMI_JOB_JOB_FOLD_H

#include "contract/nimi/job/run_fold.h"
#include "proto/google.pb.h"
#include "proto/nimi.pb.h"

#define JOB_CONTRACT "nimi-job" /* the contract's name in its runs */
#define JOB_PATCH "nimi.runtime.v1.ScenarioJob"
#define JOB_ARTIFACT "nimi.runtime.v1.ScenarioArtifact"
#define JOB_OUTPUT "nimi.runtime.v1.ScenarioOutput"

#define JOB_ANONYMOUS "anonymous" /* the user of a run whose subject is empty */

struct job_fold {
    struct run_fold run;          /* must be the first member */
    struct nimi_scenario_job job; /* points into the arena and to the members below */
    struct str output;            /* RUN_FOLD_WHOLE: encoded, or empty */
    /* `job` points to these. */
    struct nimi_scenario_request_head head;
    struct google_timestamp created, updated;
    struct nimi_usage_stats usage;
    struct nimi_ignored_scenario_extension ignored;
    struct nimi_scenario_artifact *artifacts;
    struct google_value provider_message;
    struct google_struct_fields_entry metadata_fields[1];
    struct google_struct metadata;
};

extern const struct run_kind job_fold_kind;

/* A fold must not move, because it points into itself. */
void job_fold_init(struct job_fold *fold, enum run_fold_depth depth);

/* Fold the next event. True: it is a ScenarioJobEvent, see job_fold_event(). */
bool job_fold_take(struct job_fold *fold, const struct event *event);

/* The last ScenarioJobEvent; borrows from the fold. */
struct nimi_scenario_job_event job_fold_event(const struct job_fold *fold);

/* --- artifacts ---------------------------------------------------------------------------- */

#define JOB_ARTIFACT_HEAD "artifact_" /* followed by a ULID that holds its number */

/* Find the number (store/artifact.h) of an artifact from its id. False: the id holds none. */
bool job_artifact_number(struct str artifact_id, uint64_t *ret);

#endif
