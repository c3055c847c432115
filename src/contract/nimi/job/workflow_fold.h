/* workflow_fold: rebuild the state of a workflow from its journal (run_fold.h).
 *
 * A workflow is a run_job.h whose request is a SubmitWorkflowRequest. Besides the states that
 * every job has, its journal holds items, in JSON:
 *
 *     WORKFLOW_KNOWN    {task, trace}                                       once
 *     WORKFLOW_NODE     {node, state, event, attempt, job, output, ...}     each change of a node
 *     WORKFLOW_RESULT   {...}                                               before `done`
 *
 * Memory   owns copies of everything it shows, until run_fold_done().
 * Threads  none; values only.
 * Source   contracts/nimi.md 1.7, 3.5, 6.3.
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_WORKFLOW_FOLD_H
#define WEIR_CONTRACT_NIMI_JOB_WORKFLOW_FOLD_H

#include "contract/nimi/job/run_fold.h"
#include "contract/nimi/job/workflow_graph.h"
#include "wire/json.h"

#define WORKFLOW_CONTRACT "nimi-workflow" /* the contract's name in its runs */
#define WORKFLOW_KNOWN "application/vnd.weir.workflow+json"
#define WORKFLOW_NODE "application/vnd.weir.workflow.node+json"
#define WORKFLOW_RESULT "application/vnd.weir.workflow.result+json"

#define WORKFLOW_ANONYMOUS "anonymous" /* the user of a run whose subject is empty */

/* Of one node's output, and of the result: an event holds it in one message of 4 MiB. */
#define WORKFLOW_OUTPUT_MAX_BYTES (3 * MIB)
#define WORKFLOW_DEPTH_MAX 24 /* a Struct has three messages a level, and parsers allow 100 */

/* One change of a node. `event` 0: subscribers get no event of it. */
struct workflow_note {
    struct str node;
    int32_t event; /* WorkflowEventType */
    enum node_state state;
    enum node_skip skip;
    int32_t attempt, retries, percent, reason;
    int64_t next_ms;          /* Unix time of the next attempt */
    struct str job, callback; /* the job of an attempt */
    struct str error;
    struct str output; /* JSON; empty: none */
};

/* Append the note as JSON, and read it; texts that were escaped are copied to the arena. */
bool workflow_note_write(const struct workflow_note *note, struct buf *out);
bool workflow_note_read(struct str bytes, struct arena *arena, struct workflow_note *ret);

struct workflow_fold {
    struct run_fold run; /* must be the first member */
    int64_t running_ms;  /* Unix time */
    struct str trace;
    struct workflow_note *nodes; /* the newest note of each; node ids in the request's order */
    size_t node_count;
    struct str result; /* JSON; empty: none yet */
    int32_t reason;
    struct str why; /* of a failure */
    /* The last WorkflowEvent. `change` is valid until the next event is folded. */
    int32_t event;
    struct workflow_note change;
    int64_t changed_ms;
};

extern const struct run_kind workflow_fold_kind;

void workflow_fold_init(struct workflow_fold *fold, enum run_fold_depth depth);

/* Fold the next event. True: it is a WorkflowEvent, see workflow_fold_event(). */
bool workflow_fold_take(struct workflow_fold *fold, const struct event *event);

int32_t workflow_fold_status(const struct workflow_fold *fold); /* WorkflowStatus */

/* Append the last WorkflowEvent, encoded. */
bool workflow_fold_event(const struct workflow_fold *fold, struct buf *out);

/* The reply of GetWorkflow, in the arena. False: the arena is full. */
MUST_CHECK bool workflow_fold_reply(const struct workflow_fold *fold, struct arena *arena,
                                    struct nimi_get_workflow_response *ret);

#endif
