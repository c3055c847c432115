/* A provider that records another one. */
#include "provider/tape.h"

#include "base/mem.h"
#include "loop/job.h"
#include "tape/take.h"

#include <stdlib.h>

struct recorder {
    struct provider base;
    struct tape *tape;
    struct provider *inner;
};

struct provider_call {
    const struct recorder *recorder;
    struct loop *loop;
    const struct provider_request *request;
    reply_event_fn *on_reply;
    void *ctx;
    struct provider_call *inner; /* NULL once it has ended */
    struct take take;
    struct job job;   /* writes the file */
    struct task tell; /* reports the ending, once the file is written */
    bool written;
    bool paused, over;
    unsigned inside;           /* callbacks on the stack; the last one frees the call */
    struct reply_copy *ending; /* held back until then */
};

static void tape_record_call_free(struct provider_call *call) {
    task_cancel(&call->tell);
    take_done(&call->take);
    reply_copy_free(call->ending);
    free(call);
}

static void recorder_leave(struct provider_call *call) {
    call->inside--;
    if (call->over && !call->inside) tape_record_call_free(call);
}

/* --- the ending --------------------------------------------------------------------------- */

static void report_ending(void *ctx) {
    struct provider_call *call = ctx;
    call->over = true;
    call->inside++;
    call->on_reply(&call->ending->event, call->ctx);
    recorder_leave(call);
}

static void write_take(void *ctx) {
    struct provider_call *call = ctx;
    take_write(&call->take);
}

static void on_written(void *ctx) {
    struct provider_call *call = ctx;
    call->written = true;
    if (call->over) {
        tape_record_call_free(call);
    } else if (!call->paused) {
        report_ending(call);
    }
}

static void recorder_end(struct provider_call *call, const struct reply_event *ending) {
    call->inner = NULL;
    call->ending = reply_event_copy(ending);
    tape_put_request(call->request, &call->take.request);
    job_start(&call->job, call->loop, write_take, on_written, call);
}

static void on_heard(const struct reply_event *event, void *ctx) {
    struct provider_call *call = ctx;
    call->inside++;
    take_hear(&call->take, call->loop, event);
    if (reply_event_ends(event)) {
        recorder_end(call, event);
    } else {
        call->on_reply(event, call->ctx);
    }
    recorder_leave(call);
}

/* Whose call it is. A replay does not compare it, but finds a run's calls by it. */
static void put_who(const struct provider_request *request, struct buf *out) {
    tape_put_who(&(struct tape_who){.run = request->run,
                                    .workspace = request->workspace,
                                    .user = request->user,
                                    .session = request->session},
                 out);
}

/* --- the provider ------------------------------------------------------------------------- */

static struct provider_call *tape_record_start(struct provider *provider, struct loop *loop,
                                               const struct provider_request *request,
                                               reply_event_fn *on_reply, void *ctx) {
    struct provider_call *call = MEM_NEW(struct provider_call);
    call->recorder = CONTAINER_OF(provider, struct recorder, base);
    call->loop = loop;
    call->request = request;
    call->on_reply = on_reply;
    call->ctx = ctx;
    task_init(&call->tell, report_ending, call);
    take_begin(&call->take, call->recorder->tape, TAPE_MODEL, loop);
    put_who(request, &call->take.who);
    call->inner = provider_call_start(call->recorder->inner, loop, request, on_heard, call);
    return call;
}

static void pause(struct provider_call *call) {
    if (call->paused) return;
    call->paused = true;
    task_cancel(&call->tell);
    if (call->inner) call->recorder->inner->kind->pause(call->inner);
}

static void tape_record_resume(struct provider_call *call) {
    if (!call->paused) return;
    call->paused = false;
    if (call->inner) call->recorder->inner->kind->resume(call->inner);
    if (call->written) loop_defer(call->loop, &call->tell);
}

/* A replay is finished at the same place, by the same rule. */
static void tape_record_finish(struct provider_call *call) {
    const struct reply_event done = {REPLY_DONE, .model = call->request->model};
    if (!call->inner) return; /* its own ending is on its way */
    call->recorder->inner->kind->cancel(call->inner);
    take_hear(&call->take, call->loop, &done);
    recorder_end(call, &done);
}

static void tape_record_cancel(struct provider_call *call) {
    call->over = true;
    if (call->inner) call->recorder->inner->kind->cancel(call->inner);
    call->inner = NULL;
    if (!call->inside && job_cancel(&call->job)) tape_record_call_free(call);
}

static void free_recorder(struct provider *provider) {
    struct recorder *recorder = CONTAINER_OF(provider, struct recorder, base);
    tape_unref(recorder->tape);
    free(recorder);
}

static const struct provider_kind recording_kind = {
    .name = "recording",
    .start = tape_record_start,
    .pause = pause,
    .resume = tape_record_resume,
    .cancel = tape_record_cancel,
    .finish = tape_record_finish,
    .free = free_recorder,
};

struct provider *recording_provider_new(struct tape *tape, struct provider *inner) {
    struct recorder *recorder = MEM_NEW(struct recorder);
    recorder->base = (struct provider){&recording_kind, inner->name};
    recorder->tape = tape_ref(tape);
    recorder->inner = inner;
    return &recorder->base;
}
