/* A provider that is recorded. */
#include "provider/tape.h"

#include "base/mem.h"
#include "base/text.h"
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
    struct provider_sink sink;
    void *ctx;
    struct provider_call *inner; /* NULL once it has ended */
    struct take take;
    struct job job;   /* writes the file */
    struct task tell; /* the ending, once it is written */
    bool written;
    bool paused, over;
    unsigned inside; /* callbacks on the stack: the last one to leave frees */

    /* The ending, until it may be told. */
    bool failed;
    struct err why;
    struct text ending; /* the model or the reason */
};

static const struct provider_sink heard;

static void call_free(struct provider_call *call) {
    task_cancel(&call->tell);
    take_done(&call->take);
    text_done(&call->ending);
    free(call);
}

static struct provider_call *enter(void *ctx, struct reply_event event) {
    struct provider_call *call = ctx;
    call->inside++;
    take_hear(&call->take, call->loop, &event);
    return call;
}

static void leave(struct provider_call *call) {
    call->inside--;
    if (call->over && !call->inside) call_free(call);
}

/* --- what it says ------------------------------------------------------------------------- */

static void on_text(struct str text, void *ctx) {
    struct provider_call *call = enter(ctx, (struct reply_event){REPLY_TEXT, .text = text});
    call->sink.on_text(text, call->ctx);
    leave(call);
}

static void on_thinking(struct str text, void *ctx) {
    struct provider_call *call = enter(ctx, (struct reply_event){REPLY_THINKING, .text = text});
    call->sink.on_thinking(text, call->ctx);
    leave(call);
}

static void on_tool_call(struct str call_id, struct str tool, struct str args, void *ctx) {
    struct provider_call *call =
        enter(ctx, (struct reply_event){REPLY_TOOL_CALL, .call_id = call_id, .name = tool,
                                        .args = args});
    call->sink.on_tool_call(call_id, tool, args, call->ctx);
    leave(call);
}

static void on_usage(const struct event_usage *usage, void *ctx) {
    struct provider_call *call = enter(ctx, (struct reply_event){REPLY_USAGE, .usage = usage});
    call->sink.on_usage(usage, call->ctx);
    leave(call);
}

static void on_opaque(struct str dialect, struct str bytes, void *ctx) {
    struct provider_call *call =
        enter(ctx, (struct reply_event){REPLY_OPAQUE, .name = dialect, .text = bytes});
    call->sink.on_opaque(dialect, bytes, call->ctx);
    leave(call);
}

static void on_note(struct str text, void *ctx) {
    struct provider_call *call = enter(ctx, (struct reply_event){REPLY_NOTE, .text = text});
    call->sink.on_note(text, call->ctx);
    leave(call);
}

static void on_approval(struct str call_id, struct str question, struct str tool,
                        struct str args, void *ctx) {
    struct provider_call *call =
        enter(ctx, (struct reply_event){REPLY_APPROVAL, .call_id = call_id, .name = tool,
                                        .text = question, .args = args});
    call->sink.on_approval(call_id, question, tool, args, call->ctx);
    leave(call);
}

/* --- the ending --------------------------------------------------------------------------- */

static void tell(void *ctx) {
    struct provider_call *call = ctx;
    call->over = true;
    call->inside++;
    if (call->failed) {
        call->sink.on_failed(&call->why, text_str(call->ending), call->ctx);
    } else {
        call->sink.on_done(text_str(call->ending), call->ctx);
    }
    leave(call);
}

static void write_take(void *ctx) {
    struct provider_call *call = ctx;
    take_write(&call->take);
}

static void on_written(void *ctx) {
    struct provider_call *call = ctx;
    call->written = true;
    if (call->over) {
        call_free(call);
    } else if (!call->paused) {
        tell(call);
    }
}

static void end(struct provider_call *call, struct str ending) {
    call->inner = NULL;
    call->ending = text_copy(ending);
    tape_put_request(call->request, &call->take.request);
    job_start(&call->job, call->loop, write_take, on_written, call);
    leave(call);
}

static void on_done(struct str model, void *ctx) {
    end(enter(ctx, (struct reply_event){REPLY_DONE, .name = model}), model);
}

static void on_failed(const struct err *why, struct str reason, void *ctx) {
    struct provider_call *call = ctx;
    call->failed = true;
    call->why = *why;
    end(enter(call, (struct reply_event){REPLY_FAILED, .code = why->code, .name = reason,
                                         .text = err_text(why)}),
        reason);
}

static const struct provider_sink heard = {
    .on_text = on_text,
    .on_thinking = on_thinking,
    .on_tool_call = on_tool_call,
    .on_usage = on_usage,
    .on_opaque = on_opaque,
    .on_note = on_note,
    .on_approval = on_approval,
    .on_done = on_done,
    .on_failed = on_failed,
};

/* --- the provider ------------------------------------------------------------------------- */

static struct provider_call *start(struct provider *provider, struct loop *loop,
                                   const struct provider_request *request,
                                   const struct provider_sink *sink, void *ctx) {
    struct provider_call *call = MEM_NEW(struct provider_call);
    call->recorder = CONTAINER_OF(provider, struct recorder, base);
    call->loop = loop;
    call->request = request;
    call->sink = *sink;
    call->ctx = ctx;
    task_init(&call->tell, tell, call);
    take_begin(&call->take, call->recorder->tape, TAPE_MODEL, loop);
    call->inner = provider_call_start(call->recorder->inner, loop, request, &heard, call);
    return call;
}

static void pause(struct provider_call *call) {
    if (call->paused) return;
    call->paused = true;
    task_cancel(&call->tell);
    if (call->inner) call->recorder->inner->kind->pause(call->inner);
}

static void resume(struct provider_call *call) {
    if (!call->paused) return;
    call->paused = false;
    if (call->inner) call->recorder->inner->kind->resume(call->inner);
    if (call->written) loop_defer(call->loop, &call->tell);
}

static void cancel(struct provider_call *call) {
    call->over = true;
    if (call->inner) call->recorder->inner->kind->cancel(call->inner);
    call->inner = NULL;
    if (!call->inside && job_cancel(&call->job)) call_free(call);
}

static void free_recorder(struct provider *provider) {
    struct recorder *recorder = CONTAINER_OF(provider, struct recorder, base);
    tape_unref(recorder->tape);
    free(recorder);
}

static const struct provider_kind recording_kind = {
    .name = "recording",
    .start = start,
    .pause = pause,
    .resume = resume,
    .cancel = cancel,
    .free = free_recorder,
};

struct provider *recording_provider_new(struct tape *tape, struct provider *inner) {
    struct recorder *recorder = MEM_NEW(struct recorder);
    recorder->base = (struct provider){&recording_kind, inner->name};
    recorder->tape = tape_ref(tape);
    recorder->inner = inner;
    return &recorder->base;
}
