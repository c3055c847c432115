#include "loop/job.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <uv.h>

/* Allocated apart from the job: libuv reports a cancelled request later, when the owner of the
 * job may be gone. */
struct job_request {
    uv_work_t uv;     /* on a real loop */
    struct task turn; /* on a fake one */
    bool fake;
    struct job *job; /* NULL: cancelled */
    task_fn *work, *done;
    void *ctx;
};

static void job_finish(struct job_request *request) {
    task_fn *done = request->done;
    void *ctx = request->ctx;
    request->job->request = NULL;
    free(request);
    done(ctx);
}

/* --- on a real loop ----------------------------------------------------------------------- */

static void on_thread(uv_work_t *uv) {
    struct job_request *request = uv->data;
    request->work(request->ctx);
}

static void on_loop(uv_work_t *uv, int status) {
    struct job_request *request = uv->data;
    assert((status == UV_ECANCELED) == !request->job);
    if (!request->job) {
        free(request);
        return;
    }
    job_finish(request);
}

static void queue(struct job_request *request, struct loop *loop) {
    request->uv.data = request;
    int queued = uv_queue_work(loop_uv(loop), &request->uv, on_thread, on_loop);
    assert(queued == 0); /* fails only for wrong arguments */
    (void)queued;
}

static bool take_back(struct job_request *request) {
    if (uv_cancel((uv_req_t *)&request->uv) != 0) return false;
    request->job = NULL; /* on_loop() frees the request */
    return true;
}

/* --- on a fake loop ----------------------------------------------------------------------- */

static void on_turn(void *ctx) {
    struct job_request *request = ctx;
    request->work(request->ctx);
    job_finish(request);
}

static void job_forget(struct job_request *request) {
    task_cancel(&request->turn);
    free(request);
}

/* --- public functions --------------------------------------------------------------------- */

void job_start(struct job *job, struct loop *loop, task_fn *work, task_fn *done, void *ctx) {
    assert(!job->request);
    struct job_request *request = MEM_NEW(struct job_request);
    *request = (struct job_request){.job = job, .work = work, .done = done, .ctx = ctx};
    task_init(&request->turn, on_turn, request);
    request->fake = loop_uv(loop) == NULL;
    job->request = request;
    if (request->fake) {
        loop_defer(loop, &request->turn);
    } else {
        queue(request, loop);
    }
}

bool job_cancel(struct job *job) {
    struct job_request *request = job->request;
    if (!request) return true;
    if (request->fake) {
        /* The job cannot be running: cancel is called on the thread that runs it. */
        assert(list_linked(&request->turn.link));
        job_forget(request);
    } else if (!take_back(request)) {
        return false;
    }
    job->request = NULL;
    return true;
}
