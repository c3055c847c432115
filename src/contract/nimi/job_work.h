/* job_work: a job at work, and those of a desk.
 *
 *     begun ─▶ on disk ─▶ waits for a slot ─▶ runs ─▶ output recorded ─▶ over
 *                           ▲                  │ the process ends
 *                           └─── taken up ◀────┘ (JOB_ATTEMPTS_MAX attempts in all)
 *
 * Nobody has to listen: it stays when its caller has gone, until it is over or cancelled. What
 * it is shown as stands in its journal alone (job_fold.h).
 *
 * Memory   a job belongs to its desk, from its beginning until it is over.
 * Threads  the desk's loop.
 * Source   contracts/nimi.md 3.4, 6.2; checks.md R-5.
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_WORK_H
#define WEIR_CONTRACT_NIMI_JOB_WORK_H

#include "contract/nimi/admit.h"
#include "run/run_job.h"

#define JOB_ATTEMPTS_MAX 5 /* so often a job is begun, in one process after the other */

struct job_work;

/* Once, later: what was submitted is on disk. run 0: it could not be written, and there is no
 * job. */
typedef void job_kept_fn(uint64_t run, void *ctx);

struct job_ask {
    struct nimi_desk *desk;
    const struct envelope *envelope;
    struct str request; /* a SubmitScenarioJobRequest, encoded; copied */
    struct str trace;
    struct str key, print; /* as struct run_request has them */
    uint64_t key_mark;
    job_kept_fn *on_kept;
    void *ctx;
};

enum job_begun {
    JOB_BEGUN,
    JOB_KEY_TAKEN, /* since it was looked at: look again */
    JOB_REFUSED,   /* the fault says why; nothing was begun */
};

enum job_begun job_work_begin(const struct job_ask *ask, struct job_work **ret,
                              struct fault *fault);

/* Whoever began it listens no more. */
void job_work_forget(struct job_work *work);

/* Go on with what an earlier process left: see recover.h. `desk` is a struct nimi_desk. */
void job_work_take(uint64_t run, const struct store_section *sections, size_t count,
                   void *desk);

/* The process ends: leave all of them to the next one. */
void job_work_leave_all(struct nimi_desk *desk);

#endif
