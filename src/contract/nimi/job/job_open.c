#include "contract/nimi/job/job_open.h"

#include "contract/nimi/job/run_open.h"
#include "contract/nimi/ulid.h"

void job_open_missing(struct job_open *open, const struct err *failed) {
    if (failed) {
        run_open_failed(open->call, "job", failed);
        return;
    }
    nimi_refuse_for(open->call, NIMI_AI_MEDIA_JOB_NOT_FOUND, "there is no such job");
}

static void on_found(struct job_fold *fold, const struct err *failed, void *ctx) {
    struct job_open *open = ctx;
    open->find = NULL;
    if (open->call->over) return;
    if (!fold) {
        job_open_missing(open, failed);
        return;
    }
    const struct run_owner owner = {"job", fold->head.app_id, fold->head.subject_user_id};
    if (run_open_allowed(open->call, &owner)) open->on_open(open, fold);
}

void job_open_start(struct job_open *open, struct str job_id, enum job_fold_depth depth) {
    const struct nimi_instance *instance = open->call->instance;
    if (str_trim(job_id).len == 0) {
        nimi_refuse_for(open->call, NIMI_PROTOCOL_ENVELOPE_INVALID,
                        "the request needs a job_id");
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
