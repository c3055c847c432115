/* A run by its id, for a caller who may see it. */
#include "contract/a2a/door.h"

static void note_event(const struct event *event, uint64_t seq, void *ctx) {
    struct a2a_call *call = ctx;
    (void)a2a_task_note(&call->task, event, seq);
}

bool a2a_read_live(struct a2a_call *call, uint64_t run) {
    a2a_task_done(&call->task);
    a2a_task_init(&call->task, run);
    run_summary_done(&call->summary);
    run_summary_init(&call->summary, run);
    call->summary.each = note_event;
    call->summary.each_ctx = call;
    bool whole = run_summary_read_live(&call->summary,
                                       session_table_directory(http_turn_sessions(&call->http)),
                                       route_loop(call->http.call));
    if (whole && !call->summary.started)
        a2a_task_queued(&call->task, call->summary.session, STR_EMPTY, STR_EMPTY);
    return whole;
}

static void refuse_unknown(struct route_call *route, void *ctx) {
    struct a2a_call *call = ctx;
    (void)route;
    a2a_fail(call, A2A_ERROR_TASK_NOT_FOUND, STR("there is no such task"));
}

static void lookup_on_read(const struct err *failed, void *ctx) {
    struct a2a_call *call = ctx;
    const struct run_summary *summary = &call->summary;
    call->scan = NULL;
    if (failed) {
        http_turn_give_up(&call->http, failed);
    } else if (!summary->known || !a2a_may_see(call, summary->workspace, summary->user)) {
        late_refuse(&call->late, route_loop(call->http.call), call->http.call, refuse_unknown,
                    call);
    } else {
        call->found(call);
    }
}

void a2a_look_up(struct a2a_call *call, uint64_t run, void (*found)(struct a2a_call *call)) {
    call->found = found;
    http_turn_watch(&call->http);
    if (a2a_read_live(call, run)) {
        lookup_on_read(NULL, call);
    } else {
        call->scan = run_scan_start(route_loop(call->http.call), call->instance->store,
                                    &call->summary, lookup_on_read, call);
    }
}
