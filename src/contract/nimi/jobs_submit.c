#include "contract/nimi/jobs.h"

#include "base/mem.h"
#include "contract/nimi/job_find.h"
#include "contract/nimi/job_work.h"

#include <stdlib.h>

#define ID_MAX_BYTES 1024 /* of app, subject, model, connector: every event shows them */
#define KEY_MAX_CHARS 256

/* One SubmitScenarioJob. */
struct submit {
    struct nimi_call *call;
    struct job_work *work; /* begun, and not yet on disk */
    struct job_find *find; /* the reply shows what it is by then */
};

/* --- the reply ---------------------------------------------------------------------------- */

static void on_found(struct job_fold *fold, const struct err *failed, void *ctx) {
    struct submit *submit = ctx;
    struct fault fault;
    submit->find = NULL;
    if (submit->call->over) return;
    if (fold) {
        nimi_reply(submit->call, &nimi_submit_scenario_job_response_table,
                   &(struct nimi_submit_scenario_job_response){.job = &fold->job});
        return;
    }
    fault_set_code(&fault, NIMI_AI_PROVIDER_UNAVAILABLE, ERR_UNAVAILABLE,
                   "the job was taken, but cannot be read now: %s",
                   failed ? failed->text : "it is gone");
    nimi_refuse(submit->call, &fault);
}

static void show(struct submit *submit, uint64_t run) {
    submit->find = job_find_new(
        &(struct job_find_options){.loop = rpc_loop(submit->call->rpc),
                                   .sessions = submit->call->desk->host->engine->sessions,
                                   .run = run,
                                   .on_found = on_found,
                                   .ctx = submit});
}

static void on_kept(uint64_t run, void *ctx) {
    struct submit *submit = ctx;
    struct fault fault;
    submit->work = NULL;
    if (run) {
        show(submit, run);
        return;
    }
    fault_set(&fault, NIMI_AI_PROVIDER_UNAVAILABLE,
              "the job could not be stored, and was not begun; ask again later");
    nimi_refuse(submit->call, &fault);
}

/* --- beginning ---------------------------------------------------------------------------- */

static void begin(struct submit *submit,
                  const struct nimi_submit_scenario_job_request *request) {
    struct nimi_call *call = submit->call;
    const struct job_ask ask = {.desk = call->desk,
                                .envelope = &call->envelope,
                                .request = request,
                                .trace = nimi_trace(call),
                                .key = STR_EMPTY,
                                .print = STR_EMPTY,
                                .on_kept = on_kept,
                                .ctx = submit};
    struct fault fault;
    if (job_work_begin(&ask, &submit->work, &fault) == JOB_REFUSED) nimi_refuse(call, &fault);
}

/* --- the call ----------------------------------------------------------------------------- */

static void on_closed(void *ctx) {
    struct submit *submit = ctx;
    if (submit->work) job_work_forget(submit->work);
    job_find_free(submit->find);
    free(submit);
}

static const struct nimi_work events = {.closed = on_closed};

static bool ids_are_short(const struct nimi_scenario_request_head *head, struct fault *fault) {
    if (!head) return true; /* admission says what is missing */
    size_t longest = head->app_id.len;
    const struct str others[] = {head->subject_user_id, head->model_id, head->connector_id};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        if (others[i].len > longest) longest = others[i].len;
    }
    return longest <= ID_MAX_BYTES ||
           fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                     "app_id, subject_user_id, model_id and connector_id have at most %d bytes",
                     ID_MAX_BYTES);
}

void jobs_submit(struct nimi_call *call, const void *request, struct arena *arena) {
    const struct nimi_submit_scenario_job_request *from = request;
    struct submit *submit = MEM_NEW(struct submit);
    struct fault fault;
    (void)arena;
    submit->call = call;
    nimi_work(call, &events, submit);
    if (ids_are_short(from->head, &fault)) {
        begin(submit, from);
    } else {
        nimi_refuse(call, &fault);
    }
}
