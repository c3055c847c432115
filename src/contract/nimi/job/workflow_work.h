/* workflow_work: a running workflow, and the running workflows of an instance.
 *
 *     begun ─▶ on disk ─▶ waits for its turn ─▶ read from its journal ─▶ nodes run ─▶ over
 *                              ▲                                           │
 *                              └────────── taken up by the next process ◀──┘
 *
 * A workflow needs no listener. While it waits it holds little more than its names: what it is
 * to do stands in its journal. While it runs it holds the outputs that later nodes need, at
 * most WORKFLOW_HELD_MAX_BYTES. Its visible state is in its journal alone (workflow_fold.h).
 *
 * Memory   a workflow belongs to its instance, from its beginning until it is over.
 * Threads  the instance's loop.
 * Source   contracts/nimi.md 3.5, 6.3.
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_WORKFLOW_WORK_H
#define WEIR_CONTRACT_NIMI_JOB_WORKFLOW_WORK_H

#include "contract/nimi/job/workflow_fold.h"
#include "contract/nimi/nimi.h"

/* How many run at once, in the process and of one app; the others wait, fairly (fair.h). */
#define WORKFLOW_SLOTS 32
#define WORKFLOW_SLOTS_PER_APP 8
#define WORKFLOW_QUEUE_MAX (1 << 20) /* bounded by bytes: */

#define WORKFLOW_LIVE_MAX_BYTES (64 * MIB) /* the requests of a loop's live workflows */
#define WORKFLOW_HELD_MAX_BYTES (8 * MIB)  /* the outputs that one holds while it runs */
#define WORKFLOW_MADE_MAX_BYTES (32 * MIB) /* all its outputs: GetWorkflow reads past them */
#define WORKFLOW_DEFAULT_MS (2 * 60 * 1000)
#define WORKFLOW_ATTEMPTS_MAX 100 /* times it is taken up */

struct workflow_work;

/* As job_kept_fn. */
typedef void workflow_kept_fn(uint64_t run, void *ctx);

struct workflow_begin {
    struct nimi_instance *instance;
    struct str request; /* a SubmitWorkflowRequest, checked and encoded; copied */
    struct str app, user, type;
    struct str trace, owner;
    struct str key, print; /* as in struct run_request */
    uint64_t key_mark;
    const struct trace_context *caller; /* of the submitter's tracing; NULL: none; copied */
    workflow_kept_fn *on_kept;
    void *ctx;
};

/* errors  ERR_ALREADY_EXISTS the key was taken since it was looked up: look it up again;
 *         ERR_RESOURCE_EXHAUSTED too many workflows are unfinished */
MUST_CHECK bool workflow_work_begin(const struct workflow_begin *begin,
                                    struct workflow_work **ret, struct err *e);

/* The caller that began it no longer waits: on_kept is not called. */
void workflow_work_forget(struct workflow_work *work);

/* Resume a workflow that an earlier process left. Of one that is not `whole` the sections are
 * only the first; the rest is read from the store. False: it is no workflow. */
bool workflow_work_take(uint64_t run, const struct store_section *sections, size_t count,
                        bool whole, struct nimi_instance *instance);

/* The process ends. Leave all workflows to the next process. */
void workflow_work_leave_all(struct nimi_instance *instance);

#endif
