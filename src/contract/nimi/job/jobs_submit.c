#include "contract/nimi/job/jobs.h"

#include "base/mem.h"
#include "contract/nimi/job/job_bytes.h"
#include "contract/nimi/job/job_find.h"
#include "contract/nimi/job/job_key.h"
#include "contract/nimi/job/job_work.h"
#include "session/idempotency_lookup.h"

#include <stdlib.h>

#define ID_MAX_BYTES 1024 /* of app, subject, model, connector; every event repeats them */
#define REQUEST_MAX_BYTES (64 * MIB)
#define AGAIN_MS 5 /* while another call's job with this key is being written */
#define AGAIN_MAX 1000

/* One SubmitScenarioJob. */
struct submit {
    struct nimi_call *call;
    struct buf request; /* encoded */
    struct str app, user;
    struct job_key key;
    struct idempotency_lookup *lookup; /* while the key is being looked up */
    struct timer again;                /* for the next look-up */
    unsigned agains;
    struct job_work *work;   /* begun, but not on disk yet */
    struct job_find *find;   /* reads the job's current state for the reply */
    struct job_shown *shown; /* a completed job of an earlier call, with its bytes */
};

static void jobs_submit_refuse(struct submit *submit, int reason, enum err_code code,
                               const char *why) {
    struct fault fault;
    fault_set_code(&fault, reason, code, "%s", why);
    nimi_refuse(submit->call, &fault);
}

/* --- the reply ---------------------------------------------------------------------------- */

static void reply_shown(const struct nimi_scenario_job *job, const struct err *failed,
                        void *ctx) {
    struct submit *submit = ctx;
    if (submit->call->over) return;
    if (failed) {
        jobs_submit_refuse(submit, NIMI_AI_PROVIDER_UNAVAILABLE, ERR_UNAVAILABLE,
                           "the job was made before, but cannot be read now; ask again later");
    } else {
        nimi_reply(submit->call, &nimi_submit_scenario_job_response_table,
                   &(struct nimi_submit_scenario_job_response){.job = job});
    }
}

static void on_found(struct job_fold *fold, const struct err *failed, void *ctx) {
    struct submit *submit = ctx;
    submit->find = NULL;
    if (submit->call->over) return;
    if (fold) {
        submit->shown = job_shown_start(submit->call, fold, reply_shown, submit);
        if (!submit->shown) reply_shown(&fold->job, NULL, submit);
    } else if (failed || submit->key.key.len == 0 || ++submit->agains > AGAIN_MAX) {
        jobs_submit_refuse(submit, NIMI_AI_PROVIDER_UNAVAILABLE, ERR_UNAVAILABLE,
                           "the job was taken, but cannot be read now; ask again later");
    } else {
        timer_start(&submit->again, AGAIN_MS);
    }
}

static void show(struct submit *submit, uint64_t run) {
    submit->find = job_find_new(
        &(struct job_find_options){.loop = rpc_loop(submit->call->rpc),
                                   .sessions = submit->call->instance->host->engine->sessions,
                                   .run = run,
                                   .on_found = on_found,
                                   .ctx = submit});
}

static void on_kept(uint64_t run, void *ctx) {
    struct submit *submit = ctx;
    submit->work = NULL;
    if (submit->call->over) return;
    if (run) {
        show(submit, run);
    } else {
        jobs_submit_refuse(submit, NIMI_AI_PROVIDER_UNAVAILABLE, ERR_UNAVAILABLE,
                           "the job could not be stored, and was not begun; ask again later");
    }
}

/* --- beginning ---------------------------------------------------------------------------- */

static void jobs_submit_look(void *ctx);

static void jobs_submit_begin(struct submit *submit, uint64_t key_mark) {
    struct nimi_call *call = submit->call;
    const struct job_ask ask = {.instance = call->instance,
                                .envelope = &call->envelope,
                                .request = buf_str(&submit->request),
                                .trace = nimi_trace(call),
                                .owner = nimi_owner(call),
                                .key = submit->key.key,
                                .print = submit->key.print,
                                .key_mark = key_mark,
                                .on_kept = on_kept,
                                .ctx = submit};
    struct fault fault;
    switch (job_work_begin(&ask, &submit->work, &fault)) {
    case JOB_BEGUN: break;
    case JOB_KEY_TAKEN: jobs_submit_look(submit); break;
    case JOB_REFUSED: nimi_refuse(call, &fault); break;
    }
}

static void on_known(const struct idempotency_lookup_result *result, const struct err *failed,
                     void *ctx) {
    struct submit *submit = ctx;
    (void)failed;
    submit->lookup = NULL;
    if (submit->call->over) return;
    switch (result->answer) {
    case IDEMPOTENCY_FREE: jobs_submit_begin(submit, result->mark); break;
    case IDEMPOTENCY_RUN: show(submit, result->run); break;
    case IDEMPOTENCY_OTHER:
        jobs_submit_refuse(submit, NIMI_AI_MEDIA_IDEMPOTENCY_CONFLICT, ERR_ALREADY_EXISTS,
                           "the idempotency key was used for another request; send a new key");
        break;
    case IDEMPOTENCY_FAILED:
        jobs_submit_refuse(submit, NIMI_AI_PROVIDER_UNAVAILABLE, ERR_UNAVAILABLE,
                           "it is unknown now whether this was asked before; ask again later");
        break;
    }
}

static void jobs_submit_look(void *ctx) {
    struct submit *submit = ctx;
    const struct nimi_instance *instance = submit->call->instance;
    if (submit->call->over) return;
    submit->lookup = idempotency_lookup_start(&(struct idempotency_lookup_options){
        .loop = rpc_loop(submit->call->rpc),
        .sessions = instance->host->engine->sessions,
        .name = {submit->app, submit->user, submit->key.key},
        .print = submit->key.print,
        .kept_ms = instance->settings->keys_kept_ms,
        .on_answer = on_known,
        .ctx = submit});
}

/* --- the call ----------------------------------------------------------------------------- */

static void on_closed(void *ctx) {
    struct submit *submit = ctx;
    if (submit->work) job_work_forget(submit->work);
    idempotency_lookup_cancel(submit->lookup);
    timer_stop(&submit->again);
    job_find_free(submit->find);
    job_shown_free(submit->shown);
    buf_done(&submit->request);
    free(submit);
}

static const struct nimi_work events = {.closed = on_closed};

static bool ids_are_short(const struct nimi_scenario_request_head *head, struct fault *fault) {
    const struct str ids[] = {head->app_id, head->subject_user_id, head->model_id,
                              head->connector_id};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        if (ids[i].len <= ID_MAX_BYTES) continue;
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "app_id, subject_user_id, model_id and connector_id have at most %d "
                         "bytes",
                         ID_MAX_BYTES);
    }
    return true;
}

/* Encode the request and read its key. A request without a head is refused later, by
 * admission. */
static bool read_request(struct submit *submit,
                         const struct nimi_submit_scenario_job_request *from,
                         struct fault *fault) {
    struct nimi_call *call = submit->call;
    submit->key.key = submit->key.print = STR_EMPTY;
    if (!pb_encode(&nimi_submit_scenario_job_request_table, from, &submit->request))
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID, "the request is too large");
    if (!from->head) return true;
    struct str user =
        from->head->subject_user_id.len ? from->head->subject_user_id : STR(JOB_ANONYMOUS);
    submit->app = rpc_keep(call->rpc, from->head->app_id);
    submit->user = rpc_keep(call->rpc, user);
    return ids_are_short(from->head, fault) &&
           job_key_read(from, &call->envelope, &submit->key, fault) &&
           (submit->key.key.len == 0 || /* a key never reveals another app's job */
            admit_app(&call->envelope, from->head->app_id, fault));
}

void jobs_submit(struct nimi_call *call, const void *request, struct arena *arena) {
    struct submit *submit = MEM_NEW(struct submit);
    struct fault fault;
    (void)arena;
    submit->call = call;
    buf_init(&submit->request, REQUEST_MAX_BYTES);
    timer_init(&submit->again, rpc_loop(call->rpc), jobs_submit_look, submit);
    nimi_work(call, &events, submit);
    if (!read_request(submit, request, &fault)) {
        nimi_refuse(call, &fault);
    } else if (submit->key.key.len) {
        jobs_submit_look(submit);
    } else {
        jobs_submit_begin(submit, 0);
    }
}
