#include "tool/tape.h"

#include "base/log.h"
#include "base/mem.h"
#include "loop/job.h"
#include "tape/take.h"

#include <assert.h>
#include <stdlib.h>

struct taped {
    struct tool base;
    struct tape *tape;
    struct tool *inner;
};

/* --- requests ----------------------------------------------------------------------------- */

static void put_request(const struct tool *tool, const struct tool_request *request,
                        struct buf *out) {
    struct json_writer writer = json_writer(out);
    json_open_object(&writer);
    json_member_str(&writer, "tool", tool->name);
    json_member_str(&writer, "agent", request->agent);
    tape_put(&writer, "args", request->args);
    json_close(&writer);
}

/* A replay does not compare it, but finds a run's calls by it. */
static void put_who(const struct tool_request *request, struct buf *out) {
    tape_put_who(&(struct tape_who){.run = request->run,
                                    .call_id = request->call_id,
                                    .workspace = request->workspace,
                                    .user = request->user,
                                    .session = request->session},
                 out);
}

/* --- recording ---------------------------------------------------------------------------- */

struct recording {
    const struct taped *tool;
    struct loop *loop;
    struct tool_call *inner; /* NULL once it has answered */
    struct take take;
    struct job job;
    tool_done_fn *done;
    void *ctx;
    bool abandoned, failed;
    struct err why;
    struct buf result;
};

static void recording_free(struct recording *call) {
    take_done(&call->take);
    buf_done(&call->result);
    free(call);
}

static void write_take(void *ctx) {
    take_write(&((struct recording *)ctx)->take);
}

static void on_written(void *ctx) {
    struct recording *call = ctx;
    if (!call->abandoned)
        call->done(buf_str(&call->result), call->failed ? &call->why : NULL, call->ctx);
    recording_free(call);
}

static void tool_tape_on_answer(struct str result, const struct err *failed, void *ctx) {
    struct recording *call = ctx;
    struct reply_event event = {REPLY_RESULT, .text = result};
    call->inner = NULL;
    call->failed = failed != NULL;
    if (failed) {
        call->why = *failed;
        event = reply_event_failed(failed, err_name(failed->code));
    } else {
        buf_init(&call->result, result.len);
        buf_append(&call->result, result);
    }
    take_hear(&call->take, call->loop, &event);
    job_start(&call->job, call->loop, write_take, on_written, call);
}

static struct tool_call *record_start(struct tool *tool, struct loop *loop,
                                      const struct tool_request *request, tool_done_fn *done,
                                      void *ctx) {
    struct recording *call = MEM_NEW(struct recording);
    call->tool = CONTAINER_OF(tool, struct taped, base);
    call->loop = loop;
    call->done = done;
    call->ctx = ctx;
    take_begin(&call->take, call->tool->tape, TAPE_TOOL, loop);
    put_request(tool, request, &call->take.request);
    put_who(request, &call->take.who);
    struct tool *inner = call->tool->inner;
    call->inner = inner->kind->start(inner, loop, request, tool_tape_on_answer, call);
    return (struct tool_call *)call;
}

static void record_cancel(struct tool_call *out) {
    struct recording *call = (struct recording *)out;
    call->abandoned = true;
    if (call->inner) call->tool->inner->kind->cancel(call->inner);
    if (job_cancel(&call->job)) recording_free(call);
}

/* --- playing ------------------------------------------------------------------------------ */

struct playing {
    struct tape *tape; /* a reference */
    struct loop *loop;
    uint64_t began_ms;
    struct job job;
    struct timer timer;
    struct buf request;
    const struct tape_call *found;
    struct err why;
    tool_done_fn *done;
    void *ctx;
    bool abandoned;
};

static void playing_free(struct playing *call) {
    timer_stop(&call->timer);
    buf_done(&call->request);
    tape_unref(call->tape);
    free(call);
}

static void tool_tape_look(void *ctx) {
    struct playing *call = ctx;
    if (!tape_find(call->tape, TAPE_TOOL, buf_str(&call->request), &call->found, &call->why))
        call->found = NULL;
}

static void tool_tape_answer(void *ctx) {
    struct playing *call = ctx;
    const struct reply_event *event = call->found ? &call->found->events[0].reply : NULL;
    if (event && event->kind == REPLY_RESULT) {
        call->done(event->text, NULL, call->ctx);
    } else {
        if (event) err_set(&call->why, event->code, STR_FMT, STR_ARG(event->text));
        call->done(STR_EMPTY, &call->why, call->ctx);
    }
    playing_free(call);
}

static void tool_tape_on_looked(void *ctx) {
    struct playing *call = ctx;
    if (call->abandoned) {
        playing_free(call);
        return;
    }
    if (!call->found) {
        err_add(&call->why, REPLAY_MISS);
        log_often(LOG_WARNING, "replay: %s", call->why.text);
    }
    uint64_t passed = loop_now_ms(call->loop) - call->began_ms;
    bool waits = call->found && tape_pace(call->tape) == TAPE_REAL &&
                 call->found->events[0].at_ms > passed;
    if (waits) {
        timer_start(&call->timer, call->found->events[0].at_ms - passed);
    } else {
        tool_tape_answer(call);
    }
}

static struct tool_call *play_start(struct tool *tool, struct loop *loop,
                                    const struct tool_request *request, tool_done_fn *done,
                                    void *ctx) {
    struct playing *call = MEM_NEW(struct playing);
    call->tape = tape_ref(CONTAINER_OF(tool, struct taped, base)->tape);
    call->loop = loop;
    call->began_ms = loop_now_ms(loop);
    call->done = done;
    call->ctx = ctx;
    timer_init(&call->timer, loop, tool_tape_answer, call);
    buf_init(&call->request, TAPE_FILE_MAX_BYTES);
    put_request(tool, request, &call->request);
    job_start(&call->job, loop, tool_tape_look, tool_tape_on_looked, call);
    return (struct tool_call *)call;
}

static void play_cancel(struct tool_call *out) {
    struct playing *call = (struct playing *)out;
    call->abandoned = true;
    if (job_cancel(&call->job)) playing_free(call);
}

/* --- the tools ---------------------------------------------------------------------------- */

static void taped_free(struct tool *tool) {
    struct taped *taped = CONTAINER_OF(tool, struct taped, base);
    tool_free(taped->inner);
    tape_unref(taped->tape);
    free(taped);
}

static const struct tool_kind recording_kind = {
    .name = "recording",
    .start = record_start,
    .cancel = record_cancel,
    .free = taped_free,
};

static const struct tool_kind playing_kind = {
    .name = "playing",
    .start = play_start,
    .cancel = play_cancel,
    .free = taped_free,
};

/* A tool like `like`, around `inner`. */
static struct tool *taped_new(const struct tool_kind *kind, struct tape *tape,
                              const struct tool *like, struct tool *inner) {
    struct taped *taped = MEM_NEW(struct taped);
    taped->base = *like;
    taped->base.kind = kind;
    taped->tape = tape_ref(tape);
    taped->inner = inner;
    return &taped->base;
}

struct tool *recording_tool_new(struct tape *tape, struct tool *inner) {
    return taped_new(&recording_kind, tape, inner, inner);
}

struct tool *playing_tool_new(struct tape *tape, struct tool *inner) {
    assert(tape_plays(tape));
    return taped_new(&playing_kind, tape, inner, inner);
}

struct tool *playing_tool_like(struct tape *tape, const struct tool *model) {
    assert(tape_plays(tape));
    return taped_new(&playing_kind, tape, model, NULL);
}
