/* A task is read, cancelled, and followed. */
#include "contract/a2a/door.h"

void a2a_get(struct a2a_call *call) {
    a2a_reply_task(call);
}

/* --- cancel ------------------------------------------------------------------------------- */

static void on_awake(const struct err *failed, void *ctx) {
    struct a2a_call *call = ctx;
    call->http.wake = NULL;
    if (failed) {
        http_turn_give_up(&call->http, failed);
    } else {
        a2a_look_up(call, call->request.task, a2a_cancel);
    }
}

/* A run that waits for a human must be in memory to be cancelled. */
static bool wake(struct a2a_call *call, struct directory *directory) {
    const struct dormant_filter filter = {.run = call->request.task};
    call->http.wake =
        dormant_wake_start(directory, &filter, 1, route_loop(call->http.call), on_awake, call);
    return call->http.wake != NULL;
}

/* The answer is the task as the cancellation leaves it, or as it ended just before. */
void a2a_cancel(struct a2a_call *call) {
    struct directory *directory = session_table_directory(http_turn_sessions(&call->http));
    uint64_t run = call->request.task;
    struct str why = STR("the client cancelled the task");
    bool over = a2a_state_is_terminal(call->task.state);
    if (!over && directory_cancel(directory, run, why)) {
        call->from = UINT64_MAX;
        a2a_task_done(&call->task);
        a2a_task_init(&call->task, run);
        http_turn_attach(&call->http, run, 0);
    } else if (over || !wake(call, directory)) {
        a2a_fail(call, A2A_ERROR_TASK_NOT_CANCELABLE,
                 STR("this task has ended: there is nothing to cancel"));
    }
}

/* --- subscribe ---------------------------------------------------------------------------- */

/* Clients of 0.3 may ask again for a stream that has ended meanwhile. */
void a2a_subscribe(struct a2a_call *call) {
    bool over = a2a_state_is_terminal(call->task.state);
    if (over && call->dialect == A2A_1_0) {
        a2a_fail(call, A2A_ERROR_UNSUPPORTED_OPERATION,
                 STR("this task has ended: nothing more will happen in it; ask for the task "
                     "itself"));
        return;
    }
    call->from = call->summary.last_seq;
    a2a_task_done(&call->task);
    a2a_task_init(&call->task, call->request.task);
    http_turn_attach(&call->http, call->request.task, 0);
}
