#include "contract/nimi/job/jobs.h"

#include "base/mem.h"
#include "contract/nimi/job/watch.h"
#include "contract/nimi/job/workflow_fold.h"
#include "turn/cancel_run.h"

#include <stdlib.h>

/* A call about one workflow. */
struct about {
    struct nimi_watch base; /* must be the first member */
    struct workflow_fold fold;
};

static struct about *about_of(struct run_open *open) {
    return CONTAINER_OF(open, struct about, base.open);
}

static void about_closed(void *ctx) {
    watch_done(&((struct about *)ctx)->base);
    free(ctx);
}

static const struct nimi_work events = {.drained = watch_drained,
                                        .stopping = watch_stopping,
                                        .cancelled = watch_cancelled,
                                        .closed = about_closed};

static void refuse_missing(struct run_open *open) {
    nimi_refuse_for(open->call, NIMI_WF_TASK_NOT_FOUND, "there is no such workflow");
}

static void about_gone(struct nimi_watch *watch, const struct err *failed) {
    (void)failed;
    refuse_missing(&watch->open);
}

static void about_start(struct nimi_call *call, struct str task_id,
                        void (*on_open)(struct run_open *open),
                        void (*on_missing)(struct run_open *open)) {
    struct about *about = MEM_NEW(struct about);
    about->base.open = (struct run_open){.kind = &workflow_fold_kind,
                                         .fold = &about->fold.run,
                                         .on_open = on_open,
                                         .on_missing = on_missing};
    about->base.gone = about_gone;
    watch_begin(&about->base, call, &events, task_id);
}

/* --- GetWorkflow -------------------------------------------------------------------------- */

static void get_missing(struct run_open *open) {
    nimi_reply(open->call, &nimi_get_workflow_response_table,
               &(struct nimi_get_workflow_response){.reason_code = NIMI_WF_TASK_NOT_FOUND});
}

static void get_reply(struct run_open *open) {
    struct nimi_get_workflow_response reply;
    struct arena *arena = arena_new(256 * MIB);
    if (workflow_fold_reply(&about_of(open)->fold, arena, &reply)) {
        nimi_reply(open->call, &nimi_get_workflow_response_table, &reply);
    } else {
        nimi_refuse_for(open->call, NIMI_AI_OUTPUT_INVALID,
                        "the workflow is larger than a reply may be");
    }
    arena_free(arena);
}

void workflows_get(struct nimi_call *call, const void *request) {
    const struct nimi_get_workflow_request *from = request;
    about_start(call, from->task_id, get_reply, get_missing);
}

/* --- SubscribeWorkflowEvents -------------------------------------------------------------- */

static void send_event(const struct event *event, enum close_frame frame, void *ctx) {
    struct about *about = ctx;
    struct rpc_call *rpc = about->base.open.call->rpc;
    (void)frame; /* the event itself says whether it is the last */
    if (!workflow_fold_take(&about->fold, event)) return;
    workflow_fold_event(&about->fold, rpc_message_begin(rpc));
    rpc_message_end(rpc);
}

static const struct stream_wire subscriber = {
    .project = send_event,
    .queued = nimi_queued,
    .wake_at = nimi_wake_at,
    .stalled_ms = nimi_stalled_ms,
    .ended = watch_ended,
};

static void subscribe(struct run_open *open) {
    watch_subscribe(&about_of(open)->base, &subscriber);
}

void workflows_subscribe(struct nimi_call *call, const void *request) {
    const struct nimi_subscribe_workflow_events_request *from = request;
    if (str_trim(from->task_id).len == 0) {
        nimi_refuse_for(call, NIMI_PROTOCOL_ENVELOPE_INVALID, "the request needs a task_id");
        return;
    }
    about_start(call, from->task_id, subscribe, refuse_missing);
}

/* --- CancelWorkflow ----------------------------------------------------------------------- */

static void reply_ack(struct nimi_call *call, bool ok, int reason, const char *hint) {
    nimi_reply(
        call, &nimi_ack_table,
        &(struct nimi_ack){.ok = ok, .reason_code = reason, .action_hint = str_from(hint)});
}

static void cancel_missing(struct run_open *open) {
    reply_ack(open->call, false, NIMI_WF_TASK_NOT_FOUND, "there is no such workflow");
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
    struct nimi_call *call = about->base.open.call;
    (void)cause, (void)last;
    if (watch_is_cut(call, ending)) return;
    bool canceled = workflow_fold_status(&about->fold) == NIMI_WORKFLOW_STATUS_CANCELED;
    reply_ack(call, true, NIMI_ACTION_EXECUTED, canceled ? "" : "workflow already terminal");
}

static const struct stream_wire canceller = {
    .project = fold_event, .queued = nimi_nothing_queued, .ended = on_cancel_ended};

/* Reply only when the end is on disk, so that what was acknowledged stays true. */
static void job_workflows_cancel(struct run_open *open) {
    struct session_table *sessions = open->call->instance->host->engine->sessions;
    if (run_fold_is_over(open->fold)) {
        reply_ack(open->call, true, NIMI_ACTION_EXECUTED, "workflow already terminal");
        return;
    }
    cancel_run_send(sessions, open->call->loop, open->run, STR("the workflow was cancelled"));
    watch_for_end(&about_of(open)->base, &canceller);
}

void workflows_cancel(struct nimi_call *call, const void *request) {
    const struct nimi_cancel_workflow_request *from = request;
    about_start(call, from->task_id, job_workflows_cancel, cancel_missing);
}
