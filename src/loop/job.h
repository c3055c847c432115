/* job: run blocking work on a thread beside the loops.
 *
 * For reading files, parsing a big page, or computing. A job owns everything it touches while
 * it works, and returns to its loop when it is done.
 *
 *     idle ─▶ waiting ─▶ working ─▶ done        (cancelled while waiting: done never comes)
 *
 * Memory   lives inside its owner, which must live from start until done, or until a
 *          successful cancel.
 * Threads  start, cancel and `done`: the loop's; `work`: a thread of the pool.
 */
#ifndef WEIR_LOOP_JOB_H
#define WEIR_LOOP_JOB_H

#include "loop/loop.h"

/* Zeroed is idle. */
struct job {
    struct job_request *request; /* the thread pool's part; NULL: idle */
};

/* Run work(ctx) on another thread, then done(ctx) on `loop`. Neither runs before this returns.
 * On a fake loop both run at the end of its turn. The job must be idle; it is idle again when
 * done() is called. */
void job_start(struct job *job, struct loop *loop, task_fn *work, task_fn *done, void *ctx);

/* True: neither function will run any more; also for an idle job. False: too late, done() will
 * be called. */
MUST_CHECK bool job_cancel(struct job *job);

#endif
