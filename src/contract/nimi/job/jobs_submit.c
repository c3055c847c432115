#include "contract/nimi/job/jobs.h"

#include "base/mem.h"
#include "contract/nimi/job/job_key.h"
#include "contract/nimi/job/job_shown.h"
#include "contract/nimi/job/job_work.h"
#include "contract/nimi/job/run_find.h"
#include "contract/nimi/job/submit.h"

#include <stdlib.h>

#define REQUEST_MAX_BYTES (64 * MIB)

/* One SubmitScenarioJob. */
struct job_submit {
    struct submit submit;
    struct job_key key;
    struct job_work *work; /* begun, but not on disk yet */
    struct run_find *find; /* reads the job's current state for the reply */
    struct job_fold fold;
    struct job_shown *shown; /* a completed job of an earlier call, with its bytes */
};

static struct job_submit *job_of(struct submit *submit) {
    return CONTAINER_OF(submit, struct job_submit, submit);
}

/* --- the reply ---------------------------------------------------------------------------- */

static void reply_shown(const void *job, const struct err *failed, void *ctx) {
    struct submit *submit = ctx;
    if (submit->call->over) return;
    if (failed) {
        submit_refuse(submit, NIMI_AI_PROVIDER_UNAVAILABLE, ERR_UNAVAILABLE,
                      "the job was made before, but cannot be read now; ask again later");
    } else {
        nimi_reply(submit->call, &nimi_submit_scenario_job_response_table,
                   &(struct nimi_submit_scenario_job_response){.job = job});
    }
}

static void jobs_submit_on_found(const struct err *failed, void *ctx) {
    struct submit *submit = ctx;
    struct job_submit *job = job_of(submit);
    job->find = NULL;
    if (submit->call->over) return;
    if (failed) {
        submit_refuse_unread(submit);
    } else if (!run_fold_is_shown(&job->fold.run)) {
        submit_missing(submit);
    } else {
        job->shown = job_shown_start(submit->call, &job->fold, reply_shown, submit);
        if (!job->shown) reply_shown(&job->fold.job, NULL, submit);
    }
}

static void job_show(struct submit *submit, uint64_t run) {
    struct job_submit *job = job_of(submit);
    run_fold_done(&job->fold.run);
    job_fold_init(&job->fold, RUN_FOLD_SHOWN);
    job->find = run_find_new(
        &(struct run_find_options){.loop = submit->call->loop,
                                   .sessions = submit->call->instance->host->engine->sessions,
                                   .run = run,
                                   .fold = &job->fold.run,
                                   .on_found = jobs_submit_on_found,
                                   .ctx = submit});
}

/* --- beginning ---------------------------------------------------------------------------- */

static void jobs_submit_on_kept(uint64_t run, void *ctx) {
    struct submit *submit = ctx;
    job_of(submit)->work = NULL;
    submit_kept(submit, run);
}

static void job_begin(struct submit *submit, uint64_t key_mark) {
    struct nimi_call *call = submit->call;
    const struct job_ask ask = {.instance = call->instance,
                                .envelope = &call->envelope,
                                .request = buf_str(&submit->request),
                                .trace = nimi_trace(call),
                                .caller = call->caller_trace,
                                .owner = nimi_owner(call),
                                .key = submit->key,
                                .print = submit->print,
                                .key_mark = key_mark,
                                .on_kept = jobs_submit_on_kept,
                                .ctx = submit};
    struct fault fault;
    switch (job_work_begin(&ask, &job_of(submit)->work, &fault)) {
    case JOB_BEGUN: break;
    case JOB_KEY_TAKEN: submit_start(submit); break;
    case JOB_REFUSED: nimi_refuse(call, &fault); break;
    }
}

static const struct submit_kind kind = {"job", NIMI_AI_MEDIA_IDEMPOTENCY_CONFLICT,
                                        ERR_ALREADY_EXISTS, job_begin, job_show};

/* --- the call ----------------------------------------------------------------------------- */

static void jobs_submit_on_closed(void *ctx) {
    struct job_submit *job = ctx;
    if (job->work) job_work_forget(job->work);
    run_find_free(job->find);
    job_shown_free(job->shown);
    run_fold_done(&job->fold.run);
    submit_done(&job->submit);
    free(job);
}

static const struct nimi_work events = {.closed = jobs_submit_on_closed};

static bool ids_are_short(const struct nimi_scenario_request_head *head, struct fault *fault) {
    const struct str ids[] = {head->app_id, head->subject_user_id, head->model_id,
                              head->connector_id};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        if (ids[i].len <= SUBMIT_ID_MAX_BYTES) continue;
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "app_id, subject_user_id, model_id and connector_id have at most %d "
                         "bytes",
                         SUBMIT_ID_MAX_BYTES);
    }
    return true;
}

/* Encode the request and read its key. A request without a head is refused later, by
 * admission. */
static bool read_request(struct job_submit *job,
                         const struct nimi_submit_scenario_job_request *from,
                         struct fault *fault) {
    struct submit *submit = &job->submit;
    struct nimi_call *call = submit->call;
    if (!pb_encode(&nimi_submit_scenario_job_request_table, from, &submit->request))
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID, "the request is too large");
    if (!from->head) return true;
    struct str user =
        from->head->subject_user_id.len ? from->head->subject_user_id : STR(JOB_ANONYMOUS);
    submit->app = nimi_keep(call, from->head->app_id);
    submit->user = nimi_keep(call, user);
    if (!ids_are_short(from->head, fault) ||
        !job_key_read(from, &call->envelope, &job->key, fault))
        return false;
    submit->key = job->key.key;
    submit->print = job->key.print;
    return submit->key.len == 0 || /* a key never reveals another app's job */
           admit_app(&call->envelope, from->head->app_id, fault);
}

void jobs_submit(struct nimi_call *call, const void *request) {
    struct job_submit *job = MEM_NEW(struct job_submit);
    struct fault fault;
    submit_init(&job->submit, &kind, call, REQUEST_MAX_BYTES);
    nimi_work(call, &events, job);
    if (read_request(job, request, &fault)) {
        submit_start(&job->submit);
    } else {
        nimi_refuse(call, &fault);
    }
}
