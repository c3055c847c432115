#include "contract/nimi/job/jobs.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "contract/nimi/job/job_shown.h"
#include "contract/nimi/job/watch.h"
#include "turn/cancel_run.h"

#include <stdlib.h>

#define REASON_MAX_BYTES 1024

bool jobs_is_named(struct nimi_call *call, struct str job_id) {
    if (str_trim(job_id).len) return true;
    nimi_refuse_for(call, NIMI_PROTOCOL_ENVELOPE_INVALID, "the request needs a job_id");
    return false;
}

void jobs_missing(struct run_open *open) {
    nimi_refuse_for(open->call, NIMI_AI_MEDIA_JOB_NOT_FOUND, "there is no such job");
}

/* A call about one job. */
struct watch {
    struct nimi_watch base; /* must be the first member */
    struct job_fold fold;
    struct job_shown *shown; /* the final snapshot, while its bytes are read */
    struct str reason;       /* of a cancel */
};

static struct watch *watch_of(struct run_open *open) {
    return CONTAINER_OF(open, struct watch, base.open);
}

static void jobs_on_closed(void *ctx) {
    struct watch *watch = ctx;
    job_shown_free(watch->shown);
    watch_done(&watch->base);
    free(watch);
}

static const struct nimi_work events = {.drained = watch_drained,
                                        .stopping = watch_stopping,
                                        .cancelled = watch_cancelled,
                                        .closed = jobs_on_closed};

static void on_gone(struct nimi_watch *watch, const struct err *failed) {
    if (failed) {
        run_open_failed(&watch->open, failed);
    } else {
        jobs_missing(&watch->open);
    }
}

static void watch_job(struct nimi_call *call, struct str job_id, struct str reason,
                      void (*on_open)(struct run_open *open)) {
    if (!jobs_is_named(call, job_id)) return;
    struct watch *watch = MEM_NEW(struct watch);
    watch->base.open = (struct run_open){.kind = &job_fold_kind,
                                         .fold = &watch->fold.run,
                                         .on_open = on_open,
                                         .on_missing = jobs_missing};
    watch->base.gone = on_gone;
    watch->reason = nimi_keep(call, reason);
    watch_begin(&watch->base, call, &events, job_id);
}

/* --- GetScenarioJob ----------------------------------------------------------------------- */

static void reply_shown(const void *job, const struct err *failed, void *ctx) {
    struct watch *watch = ctx;
    struct nimi_call *call = watch->base.open.call;
    if (call->over) return;
    if (failed) {
        run_open_failed(&watch->base.open, failed);
    } else {
        nimi_reply(call, &nimi_get_scenario_job_response_table,
                   &(struct nimi_get_scenario_job_response){.job = job});
    }
}

static void reply_job(struct run_open *open) {
    struct watch *watch = watch_of(open);
    watch->shown = job_shown_start(open->call, &watch->fold, reply_shown, watch);
    if (!watch->shown) reply_shown(&watch->fold.job, NULL, watch);
}

void jobs_get(struct nimi_call *call, const void *request) {
    const struct nimi_get_scenario_job_request *from = request;
    watch_job(call, from->job_id, STR_EMPTY, reply_job);
}

/* --- SubscribeScenarioJobEvents ----------------------------------------------------------- */

static void send_snapshot(struct watch *watch, const struct nimi_scenario_job *job) {
    struct rpc_call *rpc = watch->base.open.call->rpc;
    struct nimi_scenario_job_event shown = job_fold_event(&watch->fold);
    shown.job = job;
    pb_encode(&nimi_scenario_job_event_table, &shown, rpc_message_begin(rpc));
    rpc_message_end(rpc);
}

/* The job and the stream are over. Bytes that cannot be read now can be fetched later. */
static void send_last(const void *job, const struct err *failed, void *ctx) {
    struct watch *watch = ctx;
    struct nimi_call *call = watch->base.open.call;
    if (call->over) return;
    send_snapshot(watch, failed ? &watch->fold.job : job);
    nimi_end(call, ERR_NONE, STR_EMPTY);
}

/* If the final snapshot includes bytes, it is sent once they are read, and then the call
 * ends. */
static void send_event(const struct event *event, enum close_frame frame, void *ctx) {
    struct watch *watch = ctx;
    (void)frame; /* the event itself says whether it is the last */
    if (!job_fold_take(&watch->fold, event)) return;
    watch->shown = job_shown_start(watch->base.open.call, &watch->fold, send_last, watch);
    watch->base.ends_later = watch->shown != NULL;
    if (!watch->shown) send_snapshot(watch, &watch->fold.job);
}

static const struct stream_wire subscriber = {
    .project = send_event,
    .queued = nimi_queued,
    .wake_at = nimi_wake_at,
    .stalled_ms = nimi_stalled_ms,
    .ended = watch_ended,
};

static void subscribe(struct run_open *open) {
    watch_subscribe(&watch_of(open)->base, &subscriber);
}

void jobs_subscribe(struct nimi_call *call, const void *request) {
    const struct nimi_subscribe_scenario_job_events_request *from = request;
    watch_job(call, from->job_id, STR_EMPTY, subscribe);
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
    struct nimi_call *call = watch->base.open.call;
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
    .queued = nimi_nothing_queued,
    .ended = on_cancel_ended,
};

/* Reply only when the end is on disk, so that the state shown is final. */
static void job_jobs_cancel(struct run_open *open) {
    struct watch *watch = watch_of(open);
    struct session_table *sessions = open->call->instance->host->engine->sessions;
    if (run_fold_is_over(open->fold)) {
        refuse_cancel(open->call);
        return;
    }
    cancel_run_send(sessions, open->call->loop, open->run, watch->reason);
    watch_for_end(&watch->base, &canceller);
}

void jobs_cancel(struct nimi_call *call, const void *request) {
    const struct nimi_cancel_scenario_job_request *from = request;
    struct str reason = str_head(from->reason, utf8_cut(from->reason, REASON_MAX_BYTES));
    watch_job(call, from->job_id, reason, job_jobs_cancel);
}
