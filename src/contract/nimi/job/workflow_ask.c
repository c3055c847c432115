#include "contract/nimi/job/workflow_ask.h"

#include "base/mem.h"
#include "contract/nimi/call.h"
#include "session/idempotency_lookup.h"
#include "stream/follow.h"
#include "turn/cancel_run.h"

#include <stdlib.h>

#define REQUEST_MAX_BYTES (64 * MIB)
#define NAMES_MAX_BYTES (64 * KIB)
#define AGAIN_MS 1000 /* before a full queue, or a store that cannot tell, is tried again */
#define LOST_MS 20ul  /* before a job is looked for again that is not taken up yet; doubles */
#define LOST_MAX 10

struct workflow_ask {
    struct nimi_instance *instance;
    const struct workflow_ask_events *events;
    void *ctx;
    struct arena *arena; /* holds the names */
    struct str app, user, owner, trace, key;
    const struct trace_context *caller;
    struct buf request; /* encoded */
    struct idempotency_lookup *lookup;
    struct job_work *work; /* begun, and not on disk yet */
    struct follow *follow;
    struct job_fold fold;
    struct timer again;
    struct task end; /* reports `fault`, which is known before the start has returned */
    struct fault fault;
    uint64_t run;  /* 0: not known yet */
    unsigned lost; /* how often the job's events broke off */
};

/* An attempt's key belongs to one request for ever, so the fingerprint says nothing more. */
static const char print[CLAIM_PRINT_BYTES];

static void ask_look(void *ctx);

void workflow_ask_free(struct workflow_ask *ask) {
    if (!ask) return;
    if (ask->work) job_work_forget(ask->work);
    idempotency_lookup_cancel(ask->lookup);
    follow_free(ask->follow);
    timer_stop(&ask->again);
    task_cancel(&ask->end);
    run_fold_done(&ask->fold.run);
    buf_done(&ask->request);
    arena_free(ask->arena);
    free(ask);
}

void workflow_ask_cancel(struct workflow_ask *ask, struct str why) {
    if (!ask) return;
    if (ask->work) {
        job_work_cancel(ask->work, why);
        ask->work = NULL;
    } else if (ask->run) {
        cancel_run_send(ask->instance->host->engine->sessions, ask->instance->host->loop,
                        ask->run, why);
    }
    workflow_ask_free(ask);
}

/* --- its end ------------------------------------------------------------------------------ */

static void ask_fail(void *ctx) {
    struct workflow_ask *ask = ctx;
    struct fault fault = ask->fault;
    ask->events->ended(NULL, &fault, ask->ctx);
}

static void fail_later(struct workflow_ask *ask) {
    loop_defer(ask->instance->host->loop, &ask->end);
}

/* --- following the job -------------------------------------------------------------------- */

static void ask_project(const struct event *event, enum close_frame frame, void *ctx) {
    struct workflow_ask *ask = ctx;
    (void)frame;
    if (job_fold_take(&ask->fold, event) && !run_fold_is_over(&ask->fold.run))
        ask->events->changed(&ask->fold, ask->ctx);
}

/* After a restart the workflow may be taken up before the job. */
static void ask_lost(struct workflow_ask *ask) {
    follow_free(ask->follow);
    ask->follow = NULL;
    run_fold_done(&ask->fold.run);
    job_fold_init(&ask->fold, RUN_FOLD_WHOLE);
    if (++ask->lost <= LOST_MAX) {
        timer_start(&ask->again, LOST_MS << ask->lost);
    } else {
        fault_set(&ask->fault, NIMI_AI_PROVIDER_UNAVAILABLE, "its job cannot be read");
        fail_later(ask);
    }
}

static void ask_ended(struct close_ending ending, enum close_cause cause,
                      const struct event *last, void *ctx) {
    struct workflow_ask *ask = ctx;
    (void)ending, (void)cause, (void)last;
    if (run_fold_is_over(&ask->fold.run)) {
        ask->events->ended(&ask->fold, NULL, ask->ctx);
    } else {
        ask_lost(ask);
    }
}

static const struct stream_wire reader = {
    .project = ask_project, .queued = nimi_nothing_queued, .ended = ask_ended};

static void ask_missing(const struct err *failed, void *ctx) {
    (void)failed;
    ask_lost(ctx);
}

static void ask_follow(struct workflow_ask *ask, uint64_t run) {
    struct session_table *sessions = ask->instance->host->engine->sessions;
    ask->run = run;
    ask->follow =
        follow_new(&(struct follow_options){.loop = ask->instance->host->loop,
                                            .directory = session_table_directory(sessions),
                                            .store = session_table_store(sessions),
                                            .run = run,
                                            .mode = CLOSE_TERMINAL,
                                            .wire = &reader,
                                            .missing = ask_missing,
                                            .ctx = ask});
}

/* --- beginning it ------------------------------------------------------------------------- */

static void ask_kept(uint64_t run, void *ctx) {
    struct workflow_ask *ask = ctx;
    ask->work = NULL;
    if (run) {
        ask_follow(ask, run);
    } else {
        timer_start(&ask->again, AGAIN_MS);
    }
}

/* A full queue refuses new callers, not workflows that were accepted earlier. */
static void ask_refused(struct workflow_ask *ask) {
    if (ask->fault.why.code == ERR_RESOURCE_EXHAUSTED) {
        timer_start(&ask->again, AGAIN_MS);
    } else {
        fail_later(ask);
    }
}

static void ask_begin(struct workflow_ask *ask, uint64_t key_mark) {
    const struct envelope envelope = {.app_id = ask->app};
    const struct job_ask job = {.instance = ask->instance,
                                .envelope = &envelope,
                                .request = buf_str(&ask->request),
                                .trace = ask->trace,
                                .caller = ask->caller,
                                .owner = ask->owner,
                                .key = ask->key,
                                .print = str_of(print, sizeof(print)),
                                .key_mark = key_mark,
                                .on_kept = ask_kept,
                                .ctx = ask};
    switch (job_work_begin(&job, &ask->work, &ask->fault)) {
    case JOB_BEGUN: break;
    case JOB_KEY_TAKEN: ask_look(ask); break;
    case JOB_REFUSED: ask_refused(ask); break;
    }
}

static void ask_known(const struct idempotency_lookup_result *result, const struct err *failed,
                      void *ctx) {
    struct workflow_ask *ask = ctx;
    (void)failed;
    ask->lookup = NULL;
    switch (result->answer) {
    case IDEMPOTENCY_FREE: ask_begin(ask, result->mark); break;
    case IDEMPOTENCY_RUN:
    case IDEMPOTENCY_OTHER: ask_follow(ask, result->run); break;
    case IDEMPOTENCY_FAILED: timer_start(&ask->again, AGAIN_MS); break;
    }
}

static void ask_look(void *ctx) {
    struct workflow_ask *ask = ctx;
    const struct nimi_instance *instance = ask->instance;
    ask->lookup = idempotency_lookup_start(
        &(struct idempotency_lookup_options){.loop = instance->host->loop,
                                             .sessions = instance->host->engine->sessions,
                                             .name = {ask->app, ask->user, ask->key},
                                             .print = str_of(print, sizeof(print)),
                                             .kept_ms = INT64_MAX, /* as long as the workflow */
                                             .on_answer = ask_known,
                                             .ctx = ask});
}

static bool keep_names(struct workflow_ask *ask, const struct workflow_ask_options *options) {
    return arena_str(ask->arena, options->request->head->app_id, &ask->app) &&
           arena_str(ask->arena, options->user, &ask->user) &&
           arena_str(ask->arena, options->owner, &ask->owner) &&
           arena_str(ask->arena, options->trace, &ask->trace) &&
           arena_str(ask->arena, options->key, &ask->key);
}

struct workflow_ask *workflow_ask_start(const struct workflow_ask_options *options) {
    struct workflow_ask *ask = MEM_NEW(struct workflow_ask);
    ask->instance = options->instance;
    ask->events = options->events;
    ask->ctx = options->ctx;
    ask->caller = options->caller;
    ask->arena = arena_new(NAMES_MAX_BYTES);
    buf_init(&ask->request, REQUEST_MAX_BYTES);
    timer_init(&ask->again, options->instance->host->loop, ask_look, ask);
    task_init(&ask->end, ask_fail, ask);
    job_fold_init(&ask->fold, RUN_FOLD_WHOLE);
    if (keep_names(ask, options) &&
        pb_encode(&nimi_submit_scenario_job_request_table, options->request, &ask->request)) {
        ask_look(ask);
    } else {
        fault_set(&ask->fault, NIMI_AI_INPUT_INVALID, "what it asks is too large");
        fail_later(ask);
    }
    return ask;
}
