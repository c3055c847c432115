/* A message: a new run, or the answer that a run waits for. */
#include "contract/a2a/door.h"

#include "session/waiting.h"
#include "toolserver/sessions.h"
#include "wire/digest.h"

/* --- a new run ---------------------------------------------------------------------------- */

static bool name_context(struct a2a_call *call, struct err *e) {
    char id[TOOLSERVER_SESSION_BYTES];
    if (call->request.context.len) return true;
    return toolserver_random_id(id, e) &&
           (arena_str(call->http.arena, str_from(id), &call->request.context) ||
            err_set(e, ERR_RESOURCE_EXHAUSTED, "the call holds too much"));
}

/* The run goes on by itself; the answer does not wait for it. */
static void answer_at_once(struct a2a_call *call, struct run *run) {
    const struct a2a_request *request = &call->request;
    call->http.run = run;
    http_turn_name_run(&call->http, run_id(run));
    call->task.run = run_id(run);
    a2a_add_webhook(call, run_id(run));
    a2a_task_queued(&call->task, request->context, request->text, request->extras);
    run_leave(run, (struct leaving){.how = LEAVING_DETACHES},
              STR("the client did not wait for the task"));
    a2a_reply_task(call);
}

static void start(struct a2a_call *call, struct run_request *asked, uint64_t mark) {
    struct http_turn *http = &call->http;
    struct run *run;
    struct err e;
    if (!call->request.immediately || http->mode != CLOSE_SINGLE) {
        http_turn_start(http, asked, mark);
        return;
    }
    asked->promised = true;
    asked->policy = http->site->rules.busy;
    asked->key = http->key;
    asked->print = http->print;
    asked->key_mark = mark;
    if (run_start(http->site->host, asked, &run, &e)) {
        answer_at_once(call, run);
    } else if (e.code == ERR_ALREADY_EXISTS) {
        http_turn_start(http, asked, mark); /* which finds the run that has the key */
    } else {
        http_turn_give_up(http, &e);
    }
}

/* The message that a waiting run of the context gets must name the task. */
static void refuse_waiting(struct a2a_call *call, const struct session_name *name) {
    const struct pending_approvals_filter filter = {
        .workspace = name->workspace, .user = name->user, .session = name->session};
    struct pending_view view = {.run = 0};
    struct buf message;
    bool more;
    (void)pending_approvals_list(session_table_approvals(http_turn_sessions(&call->http)),
                                 &filter, 1, call->http.arena, &view, &more);
    buf_init(&message, KIB);
    buf_append(&message, STR("a task of this context waits for a person's answer: send it as a "
                             "message with the taskId"));
    if (view.run) buf_append_byte(&message, ' ');
    if (view.run) buf_append_u64(&message, view.run);
    a2a_fail(call, A2A_ERROR_UNSUPPORTED_OPERATION, buf_str(&message));
    buf_done(&message);
}

static void begin_run(struct a2a_call *call, uint64_t mark) {
    const struct a2a_request *request = &call->request;
    struct err e;
    if (!name_context(call, &e)) {
        http_turn_give_up(&call->http, &e);
        return;
    }
    struct run_request asked = {
        .name = {call->http.workspace, call->http.user, request->context},
        .agent = text_str(call->agent),
        .text = request->text,
        .messages = request->pictured,
        .message_count = request->pictured ? 1 : 0,
        .brought = BROUGHT_MERGE,
        .extras = request->extras,
        .contract = STR("a2a")};
    if (session_has_pending(http_turn_sessions(&call->http), &asked.name)) {
        refuse_waiting(call, &asked.name);
        return;
    }
    start(call, &asked, mark);
}

/* --- an answer ---------------------------------------------------------------------------- */

/* The words decide nothing, so the task still waits. */
static void send_ask_again(struct a2a_call *call) {
    if (call->http.mode == CLOSE_SINGLE) {
        a2a_reply_task(call);
    } else {
        a2a_stream_task(call);
    }
}

static void settle(struct a2a_call *call) {
    const struct run_summary *summary = &call->summary;
    struct pending_answered answered;
    enum pending_found found;
    struct err e = {.code = ERR_NONE};
    struct pending_answer answer = {
        .name = {summary->workspace, summary->user, summary->session},
        .run = summary->run,
        .seq = call->task.question,
        .text = call->request.text,
        .asks_again = true};
    if (http_turn_settle(&call->http, &answer, call->mark, &found, &answered, &e)) return;
    if (found == PENDING_UNDECIDED) {
        send_ask_again(call);
    } else if (found == PENDING_REFUSED) {
        a2a_fail(call, A2A_ERROR_INVALID_PARAMS, err_text(&e));
    } else {
        a2a_fail(call, A2A_ERROR_UNSUPPORTED_OPERATION,
                 STR("this task does not wait any more: its question was answered, or it was "
                     "cancelled"));
    }
}

static void answer_task(struct a2a_call *call) {
    struct str context = call->request.context;
    if (context.len && !str_equal(context, text_str(call->task.session))) {
        a2a_fail(call, A2A_ERROR_INVALID_PARAMS,
                 STR("the task is of another context; send its contextId, or none"));
    } else if (a2a_state_is_terminal(call->task.state)) {
        a2a_fail(call, A2A_ERROR_UNSUPPORTED_OPERATION,
                 STR("this task has ended; send the message without a taskId, with the same "
                     "contextId, to go on with the conversation"));
    } else if (call->task.state != A2A_INPUT_REQUIRED) {
        a2a_fail(call, A2A_ERROR_UNSUPPORTED_OPERATION,
                 STR("this task is at work and asks nothing; wait for it, or cancel it"));
    } else {
        a2a_add_webhook(call, call->summary.run);
        settle(call);
    }
}

/* --- both --------------------------------------------------------------------------------- */

static void send_on(struct a2a_call *call) {
    if (call->request.names_task) {
        a2a_look_up(call, call->request.task, answer_task);
    } else {
        begin_run(call, call->mark);
    }
}

void a2a_send(struct a2a_call *call, uint64_t mark) {
    call->mark = mark;
    a2a_check_webhook(call, send_on);
}

#define PLAIN_PARTS 4 /* of a message of text alone, which has the print of earlier versions */

/* A key stands for the same message to the same agent: its text, its pictures, its metadata. The
 * message's id and the options of its answer may differ. */
bool a2a_take_print(struct a2a_call *call, struct err *e) {
    const struct a2a_request *request = &call->request;
    const struct str parts[] = {text_str(call->agent),
                                request->text,
                                request->context,
                                str_of(&request->task, sizeof(request->task)),
                                request->pictured ? request->pictured->parts : STR_EMPTY,
                                request->metadata};
    bool plain = !request->pictured && !request->metadata.len;
    uint8_t digest[DIGEST_BYTES];
    if (!call->http.key.len) return true;
    digest_parts(parts, plain ? PLAIN_PARTS : ARRAY_LEN(parts), digest);
    return arena_str(call->http.arena, str_of(digest, sizeof(digest)), &call->http.print) ||
           err_set(e, ERR_RESOURCE_EXHAUSTED, "the call holds too much");
}

/* The run that an earlier message with this key began, or whose question `seq` it answered. */
void a2a_join(struct a2a_call *call, uint64_t run, uint64_t seq) {
    call->from = seq ? seq + 1 : 0;
    a2a_task_done(&call->task); /* a look-up may have filled it */
    a2a_task_init(&call->task, run);
    http_turn_attach(&call->http, run, 0);
}
