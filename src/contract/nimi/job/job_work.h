/* job_work: a running job, and the running jobs of an instance.
 *
 *     begun ─▶ on disk ─▶ waits for a slot ─▶ runs ─▶ its result is noted ─▶ over
 *                            ▲                 │
 *                            └── taken up ◀────┘ the process ends
 *                           (JOB_ATTEMPTS_MAX attempts in all)
 *
 * A job needs no listener. It continues after its caller has gone, until it is over or
 * cancelled. Its visible state is in its journal alone (job_fold.h).
 *
 * Memory   a job belongs to its instance, from its beginning until it is over.
 * Threads  the instance's loop.
 * Source   contracts/nimi.md 3.4, 6.2; checks.md R-5.
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_JOB_WORK_H
#define WEIR_CONTRACT_NIMI_JOB_JOB_WORK_H

#include "contract/nimi/admit.h"
#include "job/run_job.h"

#define JOB_ATTEMPTS_MAX 5 /* times a job is started, over all processes */

struct job_work;

/* Called once, later: the submitted job is on disk. run 0: it could not be written, and there
 * is no job. */
typedef void job_kept_fn(uint64_t run, void *ctx);

struct job_ask {
    struct nimi_instance *instance;
    const struct envelope *envelope;
    struct str request;      /* a SubmitScenarioJobRequest, encoded; copied */
    struct str trace, owner; /* owner: whose share of the slots it uses */
    struct str key, print;   /* as in struct run_request */
    uint64_t key_mark;
    const struct trace_context *caller; /* of the submitter's tracing; NULL: none; copied */
    job_kept_fn *on_kept;
    void *ctx;
};

enum job_begun {
    JOB_BEGUN,
    JOB_KEY_TAKEN, /* taken since it was looked up: look it up again */
    JOB_REFUSED,   /* nothing was begun; the fault says why */
};

enum job_begun job_work_begin(const struct job_ask *ask, struct job_work **ret,
                              struct fault *fault);

/* The caller that began it no longer waits: on_kept is not called. */
void job_work_forget(struct job_work *work);

/* Cancel a job that is not on disk yet; on_kept is not called. */
void job_work_cancel(struct job_work *work, struct str why);

/* Resume a job that an earlier process left: see recover.h. `instance` is a struct
 * nimi_instance. */
void job_work_take(uint64_t run, const struct store_section *sections, size_t count,
                   void *instance);

/* The process ends. Leave all jobs to the next process. */
void job_work_leave_all(struct nimi_instance *instance);

#endif
