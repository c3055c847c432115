#include "contract/nimi/watch.h"

#include "session/session.h"

void watch_start(struct nimi_watch *watch, uint64_t run, const struct stream_wire *wire,
                 void (*begun)(void *ctx),
                 void (*missing)(const struct err *failed, void *ctx)) {
    const struct nimi_instance *instance = watch->call->instance;
    struct session_table *sessions = instance->host->engine->sessions;
    watch->follow =
        follow_new(&(struct follow_options){.loop = watch->call->loop,
                                            .directory = session_table_directory(sessions),
                                            .store = session_table_store(sessions),
                                            .run = run,
                                            .mode = CLOSE_TERMINAL,
                                            .stall_ms = instance->settings->stall_ms,
                                            .wire = wire,
                                            .begun = begun,
                                            .missing = missing,
                                            .ctx = watch});
}

void watch_done(struct nimi_watch *watch) {
    follow_free(watch->follow);
    watch->follow = NULL;
}

void watch_cut(struct nimi_call *call, enum err_code status) {
    if (status == ERR_CANCELLED) {
        nimi_end(call, status, NIMI_STOPPING_TEXT);
    } else if (status == ERR_RESOURCE_EXHAUSTED) {
        nimi_end(call, status, STR("slow consumer"));
    } else {
        nimi_end(call, status, STR("the events broke off; ask for the current state"));
    }
}

bool watch_is_cut(struct nimi_call *call, struct close_ending ending) {
    if (!call->over && ending.status != ERR_NONE) watch_cut(call, ending.status);
    return call->over || ending.status != ERR_NONE;
}

size_t watch_queued(void *ctx) {
    return rpc_queued(((struct nimi_watch *)ctx)->call->rpc);
}

size_t watch_nothing_queued(void *ctx) {
    (void)ctx;
    return 0;
}

void watch_wake_at(size_t low, void *ctx) {
    rpc_wake_at(((struct nimi_watch *)ctx)->call->rpc, low);
}

uint64_t watch_stalled_ms(void *ctx) {
    return rpc_stalled_ms(((struct nimi_watch *)ctx)->call->rpc);
}

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
