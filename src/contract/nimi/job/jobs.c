#include "contract/nimi/job/jobs.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "contract/nimi/job/job_bytes.h"
#include "contract/nimi/job/job_open.h"
#include "contract/nimi/watch.h"
#include "turn/cancel_run.h"

#include <stdlib.h>

#define REASON_MAX_BYTES 1024

/* A call that finds its job and then follows it. */
struct watch {
    struct nimi_watch base; /* must be the first member */
    struct job_open open;
    struct job_fold fold;
    struct job_shown *shown; /* the final snapshot, while its bytes are read */
    struct str reason;       /* of a cancel */
};

static struct watch *watch_of(struct job_open *open) {
    return CONTAINER_OF(open, struct watch, open);
}

static struct watch *watch_new(struct nimi_call *call,
                               void (*on_open)(struct job_open *, struct job_fold *),
                               const struct nimi_work *events) {
    struct watch *watch = MEM_NEW(struct watch);
    watch->base.call = call;
    watch->open = (struct job_open){.call = call, .on_open = on_open};
    watch->reason = STR_EMPTY;
    job_fold_init(&watch->fold, JOB_FOLD_SHOWN);
    nimi_work(call, events, watch);
    return watch;
}

static void on_closed(void *ctx) {
    struct watch *watch = ctx;
    job_open_done(&watch->open);
    watch_done(&watch->base);
    job_shown_free(watch->shown);
    job_fold_done(&watch->fold);
    free(watch);
}

static void on_missing(const struct err *failed, void *ctx) {
    struct watch *watch = ctx;
    if (!watch->open.call->over) job_open_missing(&watch->open, failed);
}

/* --- GetScenarioJob ----------------------------------------------------------------------- */

static void reply_shown(const struct nimi_scenario_job *job, const struct err *failed,
                        void *ctx) {
    struct watch *watch = ctx;
    struct nimi_call *call = watch->open.call;
    if (call->over) return;
    if (failed) {
        job_open_missing(&watch->open, failed);
    } else {
        nimi_reply(call, &nimi_get_scenario_job_response_table,
                   &(struct nimi_get_scenario_job_response){.job = job});
    }
}

static void reply_job(struct job_open *open, struct job_fold *fold) {
    struct watch *watch = watch_of(open);
    watch->shown = job_shown_start(open->call, fold, reply_shown, watch);
    if (!watch->shown) reply_shown(&fold->job, NULL, watch);
}

static const struct nimi_work get_events = {.closed = on_closed};

void jobs_get(struct nimi_call *call, const void *request) {
    const struct nimi_get_scenario_job_request *from = request;
    struct watch *watch = watch_new(call, reply_job, &get_events);
    job_open_start(&watch->open, from->job_id, JOB_FOLD_SHOWN);
}

/* --- SubscribeScenarioJobEvents ----------------------------------------------------------- */

static void send_snapshot(struct watch *watch, const struct nimi_scenario_job *job) {
    struct rpc_call *rpc = watch->open.call->rpc;
    struct nimi_scenario_job_event shown = job_fold_event(&watch->fold);
    shown.job = job;
    pb_encode(&nimi_scenario_job_event_table, &shown, rpc_message_begin(rpc));
    rpc_message_end(rpc);
}

/* The job and the stream are over. Bytes that cannot be read now can be fetched later. */
static void send_last(const struct nimi_scenario_job *job, const struct err *failed,
                      void *ctx) {
    struct watch *watch = ctx;
    if (watch->open.call->over) return;
    send_snapshot(watch, failed ? &watch->fold.job : job);
    nimi_end(watch->open.call, ERR_NONE, STR_EMPTY);
}

/* If the final snapshot includes bytes, it is sent once they are read, and then the call
 * ends. */
static void send_event(const struct event *event, enum close_frame frame, void *ctx) {
    struct watch *watch = ctx;
    (void)frame; /* the event itself says whether it is the last */
    if (!job_fold_take(&watch->fold, event)) return;
    watch->shown = job_shown_start(watch->open.call, &watch->fold, send_last, watch);
    if (!watch->shown) send_snapshot(watch, &watch->fold.job);
}

static void on_watch_ended(struct close_ending ending, enum close_cause cause,
                           const struct event *last, void *ctx) {
    struct watch *watch = ctx;
    struct nimi_call *call = watch->open.call;
    (void)cause, (void)last;
    if (!watch_is_cut(call, ending) && !watch->shown) nimi_end(call, ERR_NONE, STR_EMPTY);
}

static const struct stream_wire subscriber = {
    .project = send_event,
    .queued = watch_queued,
    .wake_at = watch_wake_at,
    .stalled_ms = watch_stalled_ms,
    .ended = on_watch_ended,
};

static void on_begun(void *ctx) {
    rpc_establish(((struct watch *)ctx)->open.call->rpc);
}

/* A subscription that arrives while the runtime stops is admitted, because it only reads. It
 * gets a finished job, and is cut like the others for an unfinished one. */
static void subscribe(struct job_open *open, struct job_fold *fold) {
    bool stopping = nimi_runtime_state(open->call->instance->runtime) == LIFE_STOPPING;
    if (stopping && !job_fold_is_over(fold)) {
        watch_cut(open->call, ERR_CANCELLED);
    } else {
        watch_start(&watch_of(open)->base, open->run, &subscriber, on_begun, on_missing);
    }
}

static const struct nimi_work subscribe_events = {.drained = watch_drained,
                                                  .stopping = watch_stopping,
                                                  .cancelled = watch_cancelled,
                                                  .closed = on_closed};

void jobs_subscribe(struct nimi_call *call, const void *request) {
    const struct nimi_subscribe_scenario_job_events_request *from = request;
    struct watch *watch = watch_new(call, subscribe, &subscribe_events);
    job_open_start(&watch->open, from->job_id, JOB_FOLD_SHOWN);
}

/* --- CancelScenarioJob -------------------------------------------------------------------- */

static void refuse_cancel(struct nimi_call *call) {
    nimi_refuse_for(call, NIMI_AI_MEDIA_JOB_NOT_CANCELLABLE, "the job is over already");
}

static void fold_event(const struct event *event, enum close_frame frame, void *ctx) {
    struct watch *watch = ctx;
    (void)frame;
    job_fold_take(&watch->fold, event);
}

/* The job may have ended by itself before it saw the cancellation. */
static void on_cancel_ended(struct close_ending ending, enum close_cause cause,
                            const struct event *last, void *ctx) {
    struct watch *watch = ctx;
    struct nimi_call *call = watch->open.call;
    (void)cause, (void)last;
    if (watch_is_cut(call, ending)) return;
    if (watch->fold.job.status != NIMI_SCENARIO_JOB_STATUS_CANCELED) {
        refuse_cancel(call);
    } else {
        nimi_reply(call, &nimi_cancel_scenario_job_response_table,
                   &(struct nimi_cancel_scenario_job_response){.job = &watch->fold.job});
    }
}

static const struct stream_wire canceller = {
    .project = fold_event,
    .queued = watch_nothing_queued,
    .ended = on_cancel_ended,
};

static void on_cancel_begun(void *ctx) {
    (void)ctx;
}

/* Reply only when the end is on disk, so that the state shown is final. */
static void job_jobs_cancel(struct job_open *open, struct job_fold *fold) {
    struct watch *watch = watch_of(open);
    struct session_table *sessions = open->call->instance->host->engine->sessions;
    if (job_fold_is_over(fold)) {
        refuse_cancel(open->call);
        return;
    }
    cancel_run_send(sessions, open->call->loop, open->run, watch->reason);
    watch_start(&watch->base, open->run, &canceller, on_cancel_begun, on_missing);
}

static const struct nimi_work cancel_events = {
    .stopping = watch_stopping, .cancelled = watch_cancelled, .closed = on_closed};

void jobs_cancel(struct nimi_call *call, const void *request) {
    const struct nimi_cancel_scenario_job_request *from = request;
    struct watch *watch = watch_new(call, job_jobs_cancel, &cancel_events);
    struct str reason = str_head(from->reason, utf8_cut(from->reason, REASON_MAX_BYTES));
    watch->reason = nimi_keep(call, reason);
    job_open_start(&watch->open, from->job_id, JOB_FOLD_SHOWN);
}
