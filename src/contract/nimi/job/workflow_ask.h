/* workflow_ask: one attempt of an AI node, made as a job.
 *
 * The attempt is a ScenarioJob like any that an app submits (job/job_work.h): it waits for a
 * slot as background work, it is on disk before the model is asked, and after a restart it is
 * taken up by itself. Its idempotency key is made of the task, the node and the attempt. So an
 * attempt that a dead process began is found again, and what it has made is not paid for twice.
 *
 *     look the key up ─▶ free: begin the job ─▶ on disk ─▶ follow it ─▶ its end
 *                     └▶ taken: ─────────────────────────────┘
 *
 * Memory   opaque; workflow_ask_free() may be called at any time. It leaves the job alone.
 * Threads  the instance's loop.
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_WORKFLOW_ASK_H
#define WEIR_CONTRACT_NIMI_JOB_WORKFLOW_ASK_H

#include "contract/nimi/job/job_fold.h"
#include "contract/nimi/job/job_work.h"

struct workflow_ask;

struct workflow_ask_events {
    /* The job's state, from its first on; it may come again after a restart. */
    void (*changed)(const struct job_fold *job, void *ctx);
    /* Called once, the last call. failed: no job was made, or it cannot be read. */
    void (*ended)(const struct job_fold *job, const struct fault *failed, void *ctx);
};

struct workflow_ask_options {
    struct nimi_instance *instance;
    const struct nimi_submit_scenario_job_request *request; /* borrowed during the call */
    struct str user, owner, trace, key;                     /* copied */
    const struct trace_context *caller; /* the workflow's own; NULL: none; must live as this */
    const struct workflow_ask_events *events;
    void *ctx;
};

struct workflow_ask *workflow_ask_start(const struct workflow_ask_options *options);
void workflow_ask_free(struct workflow_ask *ask); /* no callback afterwards; NULL is fine */

/* Have the job cancelled, if there is one, and free the attempt. */
void workflow_ask_cancel(struct workflow_ask *ask, struct str why);

#endif
