#include "contract/nimi/job/workflow_open.h"

#include "contract/nimi/job/run_open.h"

#include <string.h>

static bool is_the_one(const struct workflow_open *open) {
    return workflow_fold_is_shown(&open->fold) &&
           (!open->id[0] || str_equal(open->fold.task, str_from(open->id)));
}

static void on_found(const struct err *failed, void *ctx) {
    struct workflow_open *open = ctx;
    open->find = NULL;
    if (open->call->over) return;
    if (failed) {
        run_open_failed(open->call, "workflow", failed);
    } else if (!is_the_one(open)) {
        open->on_open(open, NULL);
    } else {
        const struct run_owner owner = {"workflow", open->fold.app, open->fold.subject};
        if (run_open_allowed(open->call, &owner)) open->on_open(open, &open->fold);
    }
}

void workflow_open_start(struct workflow_open *open, struct str task_id, uint64_t run) {
    const struct nimi_instance *instance = open->call->instance;
    open->run = run;
    open->id[0] = '\0';
    workflow_fold_init(&open->fold, WORKFLOW_FOLD_SHOWN);
    if (task_id.at) {
        open->run = 0;
        if (ulid_number(task_id, &open->run)) memcpy(open->id, task_id.at, ULID_LEN);
    }
    open->find =
        run_find_new(&(struct run_find_options){.loop = open->call->loop,
                                                .sessions = instance->host->engine->sessions,
                                                .run = open->run,
                                                .kind = &workflow_fold_kind,
                                                .fold = &open->fold,
                                                .on_found = on_found,
                                                .ctx = open});
}

void workflow_open_done(struct workflow_open *open) {
    run_find_free(open->find);
    open->find = NULL;
    if (open->fold.arena) workflow_fold_done(&open->fold);
}
