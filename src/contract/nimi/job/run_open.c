#include "contract/nimi/job/run_open.h"

#include "contract/nimi/bearer.h"

static bool may_see(const struct nimi_call *call, const struct run_fold *fold) {
    struct str app = call->envelope.app_id;
    return app.len && str_equal(app, fold->app) && bearer_may_see(call, fold->subject);
}

static bool is_the_one(const struct run_open *open) {
    return run_fold_is_shown(open->fold) &&
           (!open->id[0] || str_equal(open->fold->id, str_from(open->id)));
}

void run_open_failed(const struct run_open *open, const struct err *failed) {
    nimi_refuse_code(open->call, NIMI_AI_PROVIDER_UNAVAILABLE, failed->code,
                     "the %s cannot be read now; ask again later", open->kind->noun);
}

static void on_found(const struct err *failed, void *ctx) {
    struct run_open *open = ctx;
    open->find = NULL;
    if (open->call->over) return;
    if (failed) {
        run_open_failed(open, failed);
    } else if (!is_the_one(open)) {
        open->on_missing(open);
    } else if (may_see(open->call, open->fold)) {
        open->on_open(open);
    } else {
        nimi_refuse_for(
            open->call, NIMI_APP_SCOPE_FORBIDDEN,
            "this %s belongs to another app or subject; x-nimi-app-id and the token "
            "say who asks",
            open->kind->noun);
    }
}

void run_open_start(struct run_open *open, struct str id) {
    const struct nimi_instance *instance = open->call->instance;
    if (id.at && !ulid_number(id, &open->run)) {
        open->on_missing(open);
        return;
    }
    if (id.at) memcpy(open->id, id.at, ULID_LEN);
    run_open_refold(open);
    open->find =
        run_find_new(&(struct run_find_options){.loop = open->call->loop,
                                                .sessions = instance->host->engine->sessions,
                                                .run = open->run,
                                                .fold = open->fold,
                                                .on_found = on_found,
                                                .ctx = open});
}

void run_open_refold(struct run_open *open) {
    run_fold_done(open->fold);
    open->kind->init(open->fold, open->depth);
}

void run_open_done(struct run_open *open) {
    run_find_free(open->find);
    open->find = NULL;
    run_fold_done(open->fold);
}
