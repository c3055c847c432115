#include "contract/nimi/job/submit.h"

#define AGAIN_MS 5 /* while another call's work with this key is being written */
#define AGAIN_MAX 1000

static void submit_look(void *ctx);

void submit_init(struct submit *submit, const struct submit_kind *kind, struct nimi_call *call,
                 size_t request_max_bytes) {
    *submit = (struct submit){.kind = kind, .call = call, .key = STR_EMPTY, .print = STR_EMPTY};
    buf_init(&submit->request, request_max_bytes);
    timer_init(&submit->again, call->loop, submit_look, submit);
}

void submit_done(struct submit *submit) {
    idempotency_lookup_cancel(submit->lookup);
    timer_stop(&submit->again);
    buf_done(&submit->request);
}

/* --- refusing ----------------------------------------------------------------------------- */

void submit_refuse(struct submit *submit, int reason, enum err_code code, const char *why) {
    nimi_refuse_code(submit->call, reason, code, "%s", why);
}

/* `what` follows "the job ". */
static void submit_refuse_for_now(struct submit *submit, const char *what) {
    nimi_refuse_code(submit->call, NIMI_AI_PROVIDER_UNAVAILABLE, ERR_UNAVAILABLE,
                     "the %s %s; ask again later", submit->kind->noun, what);
}

void submit_refuse_unread(struct submit *submit) {
    submit_refuse_for_now(submit, "was taken, but cannot be read now");
}

/* --- the key ------------------------------------------------------------------------------ */

static void on_known(const struct idempotency_lookup_result *result, const struct err *failed,
                     void *ctx) {
    struct submit *submit = ctx;
    const struct submit_kind *kind = submit->kind;
    (void)failed;
    submit->lookup = NULL;
    if (submit->call->over) return;
    switch (result->answer) {
    case IDEMPOTENCY_FREE: kind->begin(submit, result->mark); break;
    case IDEMPOTENCY_RUN: kind->show(submit, result->run); break;
    case IDEMPOTENCY_OTHER:
        submit_refuse(submit, kind->conflict, kind->conflict_code,
                      "the idempotency key was used for another request; send a new key");
        break;
    case IDEMPOTENCY_FAILED:
        submit_refuse(submit, NIMI_AI_PROVIDER_UNAVAILABLE, ERR_UNAVAILABLE,
                      "it is unknown now whether this was asked before; ask again later");
        break;
    }
}

static void submit_look(void *ctx) {
    struct submit *submit = ctx;
    const struct nimi_instance *instance = submit->call->instance;
    if (submit->call->over) return;
    submit->lookup = idempotency_lookup_start(
        &(struct idempotency_lookup_options){.loop = submit->call->loop,
                                             .sessions = instance->host->engine->sessions,
                                             .name = {submit->app, submit->user, submit->key},
                                             .print = submit->print,
                                             .kept_ms = instance->settings->keys_kept_ms,
                                             .on_answer = on_known,
                                             .ctx = submit});
}

void submit_start(struct submit *submit) {
    if (submit->key.len) {
        submit_look(submit);
    } else {
        submit->kind->begin(submit, 0);
    }
}

/* --- its result --------------------------------------------------------------------------- */

void submit_kept(struct submit *submit, uint64_t run) {
    if (submit->call->over) return;
    if (run) {
        submit->kind->show(submit, run);
    } else {
        submit_refuse_for_now(submit, "could not be stored, and was not begun");
    }
}

void submit_missing(struct submit *submit) {
    if (submit->key.len == 0 || ++submit->agains > AGAIN_MAX) {
        submit_refuse_unread(submit);
    } else {
        timer_start(&submit->again, AGAIN_MS);
    }
}
