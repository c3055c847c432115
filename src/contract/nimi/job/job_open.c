#include "contract/nimi/job/job_open.h"

#include "contract/nimi/bearer.h"
#include "contract/nimi/ulid.h"

void job_open_missing(struct job_open *open, const struct err *failed) {
    struct fault fault;
    if (failed) {
        fault_set_code(&fault, NIMI_AI_PROVIDER_UNAVAILABLE, failed->code,
                       "the job cannot be read now; ask again later");
    } else {
        fault_set(&fault, NIMI_AI_MEDIA_JOB_NOT_FOUND, "there is no such job");
    }
    nimi_refuse(open->call, &fault);
}

/* Without issuers of tokens a caller is only the app it claims to be, and every caller that
 * claims the app sees its jobs. With issuers a job is its subject's; one that was submitted
 * anonymously is seen by all callers of the app. */
static bool may_see(const struct nimi_call *call, const struct job_fold *fold) {
    return call->envelope.app_id.len && str_equal(call->envelope.app_id, fold->head.app_id) &&
           bearer_may_see(call, fold->head.subject_user_id);
}

static void on_found(struct job_fold *fold, const struct err *failed, void *ctx) {
    struct job_open *open = ctx;
    struct fault fault;
    open->find = NULL;
    if (open->call->over) return;
    if (!fold) {
        job_open_missing(open, failed);
    } else if (!may_see(open->call, fold)) {
        fault_set(&fault, NIMI_APP_SCOPE_FORBIDDEN,
                  "this job belongs to another app or subject; x-nimi-app-id and the token say "
                  "who asks");
        nimi_refuse(open->call, &fault);
    } else {
        open->on_open(open, fold);
    }
}

void job_open_start(struct job_open *open, struct str job_id, enum job_fold_depth depth) {
    const struct nimi_instance *instance = open->call->instance;
    struct fault fault;
    if (str_trim(job_id).len == 0) {
        fault_set(&fault, NIMI_PROTOCOL_ENVELOPE_INVALID, "the request needs a job_id");
        nimi_refuse(open->call, &fault);
        return;
    }
    if (!ulid_number(job_id, &open->run)) {
        job_open_missing(open, NULL);
        return;
    }
    open->find =
        job_find_new(&(struct job_find_options){.loop = open->call->loop,
                                                .sessions = instance->host->engine->sessions,
                                                .job_id = job_id,
                                                .depth = depth,
                                                .on_found = on_found,
                                                .ctx = open});
}

void job_open_done(struct job_open *open) {
    job_find_free(open->find);
    open->find = NULL;
}
