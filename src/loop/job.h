/* job: work that blocks, done on a thread beside the loops.
 *
 * Reading files, parsing a big page, computing: a job owns all that it touches while it works,
 * and comes back to its loop when it is done.
 *
 *     idle ─▶ waiting ─▶ working ─▶ done        (cancelled while waiting: done never comes)
 *
 * Memory   lives inside its owner, which must not go away between start and done; once
 *          cancelled it may.
 * Threads  start, cancel and `done`: the loop's; `work`: a thread of the pool.
 */
#ifndef WEIR_LOOP_JOB_H
#define WEIR_LOOP_JOB_H

#include "loop/loop.h"

/* Zeroed is idle. */
struct job {
    struct job_request *request; /* what the pool of threads holds on to; NULL: idle */
};

/* work(ctx) runs on another thread, then done(ctx) on `loop`; neither before this returns. On
 * a fake loop both run at the end of its turn. The job must be idle, and is again in done(). */
void job_start(struct job *job, struct loop *loop, task_fn *work, task_fn *done, void *ctx);

/* True: neither function will run (again); so also for an idle job. False: too late, done()
 * will come. */
MUST_CHECK bool job_cancel(struct job *job);

#endif
