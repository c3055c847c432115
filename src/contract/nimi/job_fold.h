/* job_fold: what a job is, from what stands in its journal.
 *
 * A job of this protocol is a run_job.h whose request is a SubmitScenarioJobRequest. Beside the
 * states that every job has, its journal holds items with the names of this protocol's
 * messages:
 *
 *     ScenarioJob        what became known: its id, trace, model, route, usage; merged in
 *     ScenarioArtifact   one more artifact, without its bytes
 *     ScenarioOutput     what came out
 *
 * Folding is a pure function of the events, in their order. GetScenarioJob folds what there is,
 * SubscribeScenarioJobEvents tells the fold after each event that is one, and after a restart
 * the job goes on from its fold: so they cannot disagree.
 *
 * Memory   owns copies of all it shows, until job_fold_done().
 * Threads  none; values only.
 * Source   contracts/nimi.md 1.5, 3.4, 6.2.
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_FOLD_H
#define WEIR_CONTRACT_NIMI_JOB_FOLD_H

#include "base/arena.h"
#include "proto/google.pb.h"
#include "proto/nimi.pb.h"
#include "run/run_job.h"

#define JOB_CONTRACT "nimi-job" /* of its run */
#define JOB_PATCH "nimi.runtime.v1.ScenarioJob"
#define JOB_ARTIFACT "nimi.runtime.v1.ScenarioArtifact"
#define JOB_OUTPUT "nimi.runtime.v1.ScenarioOutput"

#define JOB_ANONYMOUS "anonymous" /* the user of a run whose subject is empty */

enum job_fold_depth {
    JOB_FOLD_SHOWN, /* what ScenarioJob shows */
    JOB_FOLD_WHOLE, /* the request and the output too */
};

struct job_fold {
    enum job_fold_depth depth;
    struct arena *arena;
    uint64_t seq;      /* of the last event that was folded */
    uint64_t sequence; /* of the last ScenarioJobEvent that it made */
    bool foreign;      /* that run is no job of this contract, or is damaged */
    int64_t started_ms, last_at_ms;
    struct run_job_note note; /* of its state, with the newest attempt */
    struct str user;
    struct nimi_scenario_job job; /* what is shown; points into the arena and below */
    struct str request, output;   /* JOB_FOLD_WHOLE: encoded, or empty */
    /* What `job` points to. */
    struct nimi_scenario_request_head head;
    struct google_timestamp created, updated;
    struct nimi_usage_stats usage;
    struct nimi_scenario_artifact *artifacts;
    struct google_value provider_message;
    struct google_struct_fields_entry metadata_fields[1];
    struct google_struct metadata;
};

/* Where it stays: it points into itself. */
void job_fold_init(struct job_fold *fold, enum job_fold_depth depth);
void job_fold_done(struct job_fold *fold);

/* Take the next event. True: it is a ScenarioJobEvent, see job_fold_event(). */
bool job_fold_take(struct job_fold *fold, const struct event *event);

/* All events of some sections. False: they are not whole. */
MUST_CHECK bool job_fold_sections(struct job_fold *fold, const struct store_section *sections,
                                  size_t count);

/* The job is known: enough was folded to show it. */
bool job_fold_is_shown(const struct job_fold *fold);
bool job_fold_is_over(const struct job_fold *fold);

/* The last event that was one; borrows the fold. */
struct nimi_scenario_job_event job_fold_event(const struct job_fold *fold);

/* --- artifacts ---------------------------------------------------------------------------- */

#define JOB_ARTIFACT_HEAD "artifact_" /* and a ULID, which holds the artifact's number here */

/* The number (store/artifact.h) of an artifact by its id; false: it has none. */
bool job_artifact_number(struct str artifact_id, uint64_t *ret);

#endif
