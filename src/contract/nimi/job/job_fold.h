/* job_fold: rebuild the state of a job from its journal.
 *
 * A job of this protocol is a run_job.h whose request is a SubmitScenarioJobRequest. Besides
 * the states that every job has, its journal holds items named after this protocol's messages:
 *
 *     ScenarioJob        facts as they become known: id, trace, model, route, usage; merged in
 *     ScenarioArtifact   one more artifact, without its bytes
 *     ScenarioOutput     the result
 *
 * Folding is a pure function of the events, in order. GetScenarioJob folds all events,
 * SubscribeScenarioJobEvents sends the fold after each event that counts as one, and after a
 * restart the job continues from its fold. So the three cannot disagree.
 *
 * Memory   owns copies of everything it shows, until job_fold_done().
 * Threads  none; values only.
 * Source   contracts/nimi.md 1.5, 3.4, 6.2.
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_JOB_FOLD_H
#define WEIR_CONTRACT_NIMI_JOB_JOB_FOLD_H

#include "base/arena.h"
#include "contract/nimi/run_find.h"
#include "job/run_job.h"
#include "proto/google.pb.h"
#include "proto/nimi.pb.h"

#define JOB_CONTRACT "nimi-job" /* the contract's name in its runs */
#define JOB_PATCH "nimi.runtime.v1.ScenarioJob"
#define JOB_ARTIFACT "nimi.runtime.v1.ScenarioArtifact"
#define JOB_OUTPUT "nimi.runtime.v1.ScenarioOutput"

#define JOB_ANONYMOUS "anonymous" /* the user of a run whose subject is empty */

enum job_fold_depth {
    JOB_FOLD_SHOWN, /* only what ScenarioJob shows */
    JOB_FOLD_WHOLE, /* also the request and the output */
};

struct job_fold {
    enum job_fold_depth depth;
    struct arena *arena;
    uint64_t seq;      /* of the last event that was folded */
    uint64_t sequence; /* of the last ScenarioJobEvent that it made */
    bool foreign;      /* the run is not a job of this contract, or is damaged */
    int64_t started_ms, last_at_ms;
    struct run_job_note note; /* its state, with the newest attempt */
    struct str user;
    struct str trace;             /* of its submitter's tracing, as its first event has it */
    struct nimi_scenario_job job; /* points into the arena and to the members below */
    struct str request, output;   /* JOB_FOLD_WHOLE: encoded, or empty */
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

/* A fold must not move, because it points into itself. */
void job_fold_init(struct job_fold *fold, enum job_fold_depth depth);
void job_fold_done(struct job_fold *fold);

/* Fold the next event. True: it is a ScenarioJobEvent, see job_fold_event(). */
bool job_fold_take(struct job_fold *fold, const struct event *event);

/* For run_find.h. */
extern const struct run_fold job_fold_kind;

/* Fold all events of these sections. False: a section is incomplete. */
MUST_CHECK bool job_fold_sections(struct job_fold *fold, const struct store_section *sections,
                                  size_t count);

/* Whether enough was folded to show the job; whether the job is over. */
bool job_fold_is_shown(const struct job_fold *fold);
bool job_fold_is_over(const struct job_fold *fold);

/* The last ScenarioJobEvent; borrows from the fold. */
struct nimi_scenario_job_event job_fold_event(const struct job_fold *fold);

/* --- artifacts ---------------------------------------------------------------------------- */

#define JOB_ARTIFACT_HEAD "artifact_" /* followed by a ULID that holds its number */

/* Find the number (store/artifact.h) of an artifact from its id. False: the id holds none. */
bool job_artifact_number(struct str artifact_id, uint64_t *ret);

#endif
