/* A task is cancelled, and followed. */
#include "contract/a2a/door.h"

/* --- cancel ------------------------------------------------------------------------------- */

static void refuse_ended(struct a2a_call *call) {
    a2a_fail(call, A2A_ERROR_TASK_NOT_CANCELABLE,
             STR("this task has ended: there is nothing to cancel"));
}

/* The answer is the task as the cancellation leaves it, or as it ended just before. */
static void tasks_on_cancel(enum cancel_run_answer answer, const struct err *failed,
                            void *ctx) {
    struct a2a_call *call = ctx;
    call->http.cancel = NULL;
    switch (answer) {
    case CANCEL_RUN_ASKED:
        call->from = UINT64_MAX;
        a2a_task_done(&call->task);
        a2a_task_init(&call->task, call->request.task);
        http_turn_attach(&call->http, call->request.task, 0);
        break;
    case CANCEL_RUN_OVER: refuse_ended(call); break;
    case CANCEL_RUN_FAILED: http_turn_give_up(&call->http, failed); break;
    }
}

void a2a_cancel(struct a2a_call *call) {
    if (a2a_state_is_terminal(call->task.state)) {
        refuse_ended(call);
        return;
    }
    call->http.cancel = cancel_run_start(
        http_turn_sessions(&call->http), route_loop(call->http.call), call->request.task,
        STR("the client cancelled the task"), tasks_on_cancel, call);
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
