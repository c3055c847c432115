#include "contract/nimi/job/watch.h"

#include "session/session.h"

void watch_begin(struct nimi_watch *watch, struct nimi_call *call,
                 const struct nimi_work *events, struct str id) {
    watch->open.call = call;
    nimi_work(call, events, watch);
    run_open_start(&watch->open, id.at ? id : STR_EMPTY);
}

void watch_done(struct nimi_watch *watch) {
    follow_free(watch->follow);
    watch->follow = NULL;
    run_open_done(&watch->open);
}

/* --- following ---------------------------------------------------------------------------- */

static void watch_cut(struct nimi_call *call, enum err_code status) {
    if (status == ERR_CANCELLED) {
        nimi_end(call, status, NIMI_STOPPING_TEXT);
    } else if (status == ERR_RESOURCE_EXHAUSTED) {
        nimi_end(call, status, STR("slow consumer"));
    } else {
        nimi_end(call, status, STR("the events broke off; ask for the current state"));
    }
}

static void watch_missing(const struct err *failed, void *ctx) {
    struct nimi_watch *watch = ctx;
    if (!watch->open.call->over) watch->gone(watch, failed);
}

static void watch_start(struct nimi_watch *watch, const struct stream_wire *wire,
                        void (*begun)(void *ctx)) {
    const struct nimi_instance *instance = watch->open.call->instance;
    struct session_table *sessions = instance->host->engine->sessions;
    run_open_refold(&watch->open);
    watch->follow =
        follow_new(&(struct follow_options){.loop = watch->open.call->loop,
                                            .directory = session_table_directory(sessions),
                                            .store = session_table_store(sessions),
                                            .run = watch->open.run,
                                            .mode = CLOSE_TERMINAL,
                                            .stall_ms = instance->settings->stall_ms,
                                            .wire = wire,
                                            .begun = begun,
                                            .missing = watch_missing,
                                            .ctx = watch});
}

static void watch_begun(void *ctx) {
    rpc_establish(((struct nimi_watch *)ctx)->open.call->rpc);
}

void watch_subscribe(struct nimi_watch *watch, const struct stream_wire *wire) {
    struct nimi_call *call = watch->open.call;
    bool stopping = nimi_runtime_state(call->instance->runtime) == LIFE_STOPPING;
    if (stopping && !run_fold_is_over(watch->open.fold)) {
        watch_cut(call, ERR_CANCELLED);
    } else {
        watch_start(watch, wire, watch_begun);
    }
}

void watch_for_end(struct nimi_watch *watch, const struct stream_wire *wire) {
    watch_start(watch, wire, NULL);
}

bool watch_is_cut(struct nimi_call *call, struct close_ending ending) {
    if (!call->over && ending.status != ERR_NONE) watch_cut(call, ending.status);
    return call->over || ending.status != ERR_NONE;
}

void watch_ended(struct close_ending ending, enum close_cause cause, const struct event *last,
                 void *ctx) {
    struct nimi_watch *watch = ctx;
    (void)cause, (void)last;
    if (!watch_is_cut(watch->open.call, ending) && !watch->ends_later)
        nimi_end(watch->open.call, ERR_NONE, STR_EMPTY);
}

/* --- parts of a struct nimi_work ---------------------------------------------------------- */

void watch_drained(void *ctx) {
    struct nimi_watch *watch = ctx;
    if (watch->follow) follow_drained(watch->follow);
}

void watch_stopping(void *ctx) {
    struct nimi_watch *watch = ctx;
    if (watch->follow) follow_end(watch->follow, CAUSE_STOPPING);
}

void watch_cancelled(enum close_cause why, void *ctx) {
    struct nimi_watch *watch = ctx;
    if (watch->follow) follow_end(watch->follow, why);
}
