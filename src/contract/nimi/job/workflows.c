#include "contract/nimi/job/workflows.h"

#include "base/mem.h"
#include "contract/nimi/job/workflow_open.h"
#include "contract/nimi/watch.h"
#include "turn/cancel_run.h"

#include <stdlib.h>

/* A call about one workflow. */
struct about {
    struct nimi_watch base; /* must be the first member */
    struct workflow_open open;
    struct workflow_fold fold; /* what a follower has read */
};

static struct about *about_of(struct workflow_open *open) {
    return CONTAINER_OF(open, struct about, open);
}

static void about_start(struct nimi_call *call, struct str task_id,
                        void (*on_open)(struct workflow_open *, const struct workflow_fold *),
                        const struct nimi_work *events) {
    struct about *about = MEM_NEW(struct about);
    about->base.call = call;
    about->open = (struct workflow_open){.call = call, .on_open = on_open};
    workflow_fold_init(&about->fold, WORKFLOW_FOLD_SHOWN);
    nimi_work(call, events, about);
    workflow_open_start(&about->open, task_id.at ? task_id : STR_EMPTY, 0);
}

static void about_closed(void *ctx) {
    struct about *about = ctx;
    workflow_open_done(&about->open);
    watch_done(&about->base);
    workflow_fold_done(&about->fold);
    free(about);
}

static void about_begun(void *ctx) {
    (void)ctx;
}

static void refuse_missing(struct nimi_call *call) {
    nimi_refuse_for(call, NIMI_WF_TASK_NOT_FOUND, "there is no such workflow");
}

static void about_missing(const struct err *failed, void *ctx) {
    struct about *about = ctx;
    (void)failed;
    if (!about->base.call->over) refuse_missing(about->base.call);
}

/* --- GetWorkflow -------------------------------------------------------------------------- */

static void get_reply(struct workflow_open *open, const struct workflow_fold *found) {
    struct nimi_get_workflow_response reply = {.reason_code = NIMI_WF_TASK_NOT_FOUND};
    struct arena *arena = arena_new(256 * MIB);
    if (!found || workflow_fold_reply(found, arena, &reply)) {
        nimi_reply(open->call, &nimi_get_workflow_response_table, &reply);
    } else {
        nimi_refuse_for(open->call, NIMI_AI_OUTPUT_INVALID,
                        "the workflow is larger than a reply may be");
    }
    arena_free(arena);
}

static const struct nimi_work get_events = {.closed = about_closed};

void workflows_get(struct nimi_call *call, const void *request) {
    const struct nimi_get_workflow_request *from = request;
    about_start(call, from->task_id, get_reply, &get_events);
}

/* --- SubscribeWorkflowEvents -------------------------------------------------------------- */

static void send_event(const struct event *event, enum close_frame frame, void *ctx) {
    struct about *about = ctx;
    struct rpc_call *rpc = about->base.call->rpc;
    (void)frame; /* the event itself says whether it is the last */
    if (!workflow_fold_take(&about->fold, event)) return;
    workflow_fold_event(&about->fold, rpc_message_begin(rpc));
    rpc_message_end(rpc);
}

static void on_watch_ended(struct close_ending ending, enum close_cause cause,
                           const struct event *last, void *ctx) {
    struct about *about = ctx;
    struct nimi_call *call = about->base.call;
    (void)cause, (void)last;
    if (!watch_is_cut(call, ending)) nimi_end(call, ERR_NONE, STR_EMPTY);
}

static const struct stream_wire subscriber = {
    .project = send_event,
    .queued = watch_queued,
    .wake_at = watch_wake_at,
    .stalled_ms = watch_stalled_ms,
    .ended = on_watch_ended,
};

static void on_begun(void *ctx) {
    rpc_establish(((struct about *)ctx)->base.call->rpc);
}

/* A subscription that arrives while the runtime stops is admitted, because it only reads. It
 * gets a finished workflow, and is cut like the others for an unfinished one. */
static void subscribe(struct workflow_open *open, const struct workflow_fold *found) {
    bool stopping = nimi_runtime_state(open->call->instance->runtime) == LIFE_STOPPING;
    if (!found) {
        refuse_missing(open->call);
    } else if (stopping && !workflow_fold_is_over(found)) {
        watch_cut(open->call, ERR_CANCELLED);
    } else {
        watch_start(&about_of(open)->base, open->run, &subscriber, on_begun, about_missing);
    }
}

static const struct nimi_work subscribe_events = {.drained = watch_drained,
                                                  .stopping = watch_stopping,
                                                  .cancelled = watch_cancelled,
                                                  .closed = about_closed};

void workflows_subscribe(struct nimi_call *call, const void *request) {
    const struct nimi_subscribe_workflow_events_request *from = request;
    if (str_trim(from->task_id).len == 0) {
        nimi_refuse_for(call, NIMI_PROTOCOL_ENVELOPE_INVALID, "the request needs a task_id");
        return;
    }
    about_start(call, from->task_id, subscribe, &subscribe_events);
}

/* --- CancelWorkflow ----------------------------------------------------------------------- */

static void reply_ack(struct nimi_call *call, bool ok, int reason, const char *hint) {
    nimi_reply(
        call, &nimi_ack_table,
        &(struct nimi_ack){.ok = ok, .reason_code = reason, .action_hint = str_from(hint)});
}

static void fold_event(const struct event *event, enum close_frame frame, void *ctx) {
    struct about *about = ctx;
    (void)frame;
    workflow_fold_take(&about->fold, event);
}

/* It may have ended by itself before it saw the cancellation. */
static void on_cancel_ended(struct close_ending ending, enum close_cause cause,
                            const struct event *last, void *ctx) {
    struct about *about = ctx;
    struct nimi_call *call = about->base.call;
    (void)cause, (void)last;
    if (watch_is_cut(call, ending)) return;
    bool canceled = workflow_fold_status(&about->fold) == NIMI_WORKFLOW_STATUS_CANCELED;
    reply_ack(call, true, NIMI_ACTION_EXECUTED, canceled ? "" : "workflow already terminal");
}

static const struct stream_wire canceller = {
    .project = fold_event, .queued = watch_nothing_queued, .ended = on_cancel_ended};

/* Reply only when the end is on disk, so that what was acknowledged stays true. */
static void job_workflows_cancel(struct workflow_open *open,
                                 const struct workflow_fold *found) {
    struct session_table *sessions = open->call->instance->host->engine->sessions;
    if (!found) {
        reply_ack(open->call, false, NIMI_WF_TASK_NOT_FOUND, "there is no such workflow");
    } else if (workflow_fold_is_over(found)) {
        reply_ack(open->call, true, NIMI_ACTION_EXECUTED, "workflow already terminal");
    } else {
        cancel_run_send(sessions, open->call->loop, open->run,
                        STR("the workflow was cancelled"));
        watch_start(&about_of(open)->base, open->run, &canceller, about_begun, about_missing);
    }
}

static const struct nimi_work cancel_events = {
    .stopping = watch_stopping, .cancelled = watch_cancelled, .closed = about_closed};

void workflows_cancel(struct nimi_call *call, const void *request) {
    const struct nimi_cancel_workflow_request *from = request;
    about_start(call, from->task_id, job_workflows_cancel, &cancel_events);
}
