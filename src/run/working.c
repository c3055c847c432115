/* working: what a reply asks for is done: transfers, tools, a human's answer. */
#include "base/mem.h"
#include "base/utf8.h"
#include "run/inner.h"
#include "wire/json.h"

#include <assert.h>
#include <stdlib.h>

static void let_go(struct run *run);
static void all_answered(struct run *run);

/* --- answers ------------------------------------------------------------------------------ */

/* Record one answer; `result` is a JSON object. It is kept first: what is too large for the
 * run's memory must not reach the journal. */
static void answer(struct call *call, struct str result, const struct err *failed) {
    struct run *run = call->run;
    struct message message = {.role = MESSAGE_TOOL_RESULT,
                              .error = failed != NULL,
                              .agent = run->agent->slug,
                              .call_id = call->call_id,
                              .tool = call->tool};
    call->state = CALL_ANSWERED;
    call->out = NULL;
    run->calls_answered++;
    if (!run_keep(run, result, &message.text)) return;
    struct event event = {.kind = EVENT_TOOL_RESULT,
                          .tool_result = {call->call_id, result, failed != NULL,
                                          failed ? err_text(failed) : STR_EMPTY}};
    run_append(run, &event);
    run_add_message(run, message);
}

/* {"error":"..."}: what the model reads of a call that failed. */
static void answer_error(struct call *call, const struct err *why) {
    struct buf result;
    buf_init(&result, 8 * KIB);
    struct json_writer json = json_writer(&result);
    json_open_object(&json);
    json_member_str(&json, "error", err_text(why));
    json_close(&json);
    answer(call, buf_str(&result), why);
    buf_done(&result);
}

/* A result that is too long for a model, as the beginning of its text: cut JSON is none. */
static void answer_cut(struct call *call, struct str result, size_t max_bytes) {
    struct str text = str_head(result, max_bytes);
    struct buf cut;
    text = str_head(text, text.len - utf8_pending(text));
    buf_init(&cut, 6 * text.len + KIB); /* the longest escape is six bytes */
    struct json_writer json = json_writer(&cut);
    json_open_object(&json);
    json_member_str(&json, "cut", text);
    json_member_i64(&json, "bytes_in_all", (int64_t)result.len);
    json_close(&json);
    answer(call, buf_str(&cut), NULL);
    buf_done(&cut);
}

/* --- transfers ---------------------------------------------------------------------------- */

static bool is_transfer(const struct call *call) {
    return str_equal(call->tool, STR(TRANSFER_TOOL));
}

/* Whether `agent` may hand the turn to `target`: its delegates, and back to the Manager. */
static bool may_transfer(const struct run *run, struct str target) {
    const struct agent *manager = &run->engine->agents[0];
    if (run->agent != manager && str_equal(target, manager->slug)) return true;
    for (size_t i = 0; i < run->agent->delegate_count; i++) {
        if (str_equal(run->agent->delegates[i], target)) return true;
    }
    return false;
}

static void transfer(struct call *call) {
    struct run *run = call->run;
    struct str target = STR_EMPTY;
    struct json member = json_find(json_of(call->args), STR("agent_name"));
    struct err e;
    if (!json_str(member, run->arena, &target)) {
        err_set(&e, ERR_INVALID_ARGUMENT, "transfer_to_agent needs agent_name, a string");
        answer_error(call, &e);
        return;
    }
    const struct agent *agent = engine_agent(run->engine, target);
    if (!agent || !may_transfer(run, target)) {
        err_set(&e, ERR_NOT_FOUND, "no agent '" STR_FMT "' to hand this to",
                STR_ARG(str_head(target, 80)));
        answer_error(call, &e);
        return;
    }
    answer(call, STR("{}"), NULL);
    if (!run->ending_seq) run->agent = agent;
}

/* --- tools -------------------------------------------------------------------------------- */

static void on_tool_done(struct str result, const struct err *failed, void *ctx) {
    struct call *call = ctx;
    struct run *run = call->run;
    run->calls_out--;
    if (failed) {
        answer_error(call, failed);
    } else if (result.len > run->engine->limits.result_max_bytes) {
        answer_cut(call, result, run->engine->limits.result_max_bytes);
    } else {
        answer(call, result, NULL);
    }
    if (!run->ending_seq) let_go(run);
}

static void start_tool(struct call *call) {
    struct run *run = call->run;
    call->kind =
        agent_may_use(run->agent, call->tool) ? engine_tool(run->engine, call->tool) : NULL;
    if (!call->kind) {
        struct err e;
        err_set(&e, ERR_NOT_FOUND, "tool '" STR_FMT "' not found",
                STR_ARG(str_head(call->tool, 80)));
        answer_error(call, &e);
        return;
    }
    call->state = CALL_OUT;
    run->calls_out++;
    struct tool_request request = {.call_id = call->call_id,
                                   .args = call->args,
                                   .agent = run->agent->slug,
                                   .workspace = run->name.workspace,
                                   .user = run->name.user,
                                   .session = run->name.session};
    call->out =
        call->kind->kind->start(call->kind, run->host->loop, &request, on_tool_done, call);
}

/* The conversation so far, without the open calls: what a child run sees. */
static struct history *history_so_far(const struct run *run) {
    size_t count = run->message_count - run->turn_start - run->call_count;
    const struct message *turn = run->messages + run->turn_start;
    return history_with(run->lease.history, turn_record_new(run->id, turn, count));
}

static bool wants_tools(const struct run *run) {
    for (size_t i = 0; i < run->call_count; i++) {
        if (!is_transfer(&run->calls[i])) return true;
    }
    return false;
}

/* Start what may start; when nothing is left, go on. */
static void let_go(struct run *run) {
    for (size_t i = 0; i < run->call_count && !run->ending_seq; i++) {
        struct call *call = &run->calls[i];
        if (call->state != CALL_PENDING) continue;
        if (is_transfer(call)) {
            transfer(call);
        } else if (run->calls_out < run->engine->limits.tools_at_once) {
            start_tool(call);
        }
    }
    if (!run->ending_seq && run->calls_answered == run->call_count) all_answered(run);
}

/* --- the session, lent and taken back ----------------------------------------------------- */

static void add_child_turns(struct run *run) {
    size_t count;
    struct turn_record **records = session_take_children(&run->lease, &count);
    for (size_t i = 0; i < count; i++) {
        for (size_t m = 0; m < records[i]->message_count; m++) {
            struct message message = records[i]->messages[m];
            if (run_keep(run, message.text, &message.text) &&
                run_keep(run, message.agent, &message.agent) &&
                run_keep(run, message.call_id, &message.call_id) &&
                run_keep(run, message.tool, &message.tool)) {
                run_add_message(run, message);
            }
        }
        turn_record_unref(records[i]);
    }
    free(records);
}

static void all_answered(struct run *run) {
    if (run->lent) {
        if (!session_reclaim(&run->lease)) return; /* children_done will come */
        run->lent = false;
        add_child_turns(run);
    }
    if (!run->ending_seq) run_ask(run);
}

void run_work_children_done(struct run *run) {
    if (run->lent && run->calls_answered == run->call_count) all_answered(run);
}

/* --- a human ------------------------------------------------------------------------------ */

static void on_answer(struct str text, void *ctx) {
    struct run *run = ctx;
    struct err e;
    bool kept = !run->ending_seq && run_keep(run, text, &run->answer);
    if (!kept) {
        run_unref(run);
        return;
    }
    switch (
        session_acquire(run->engine->sessions, &run->name, SESSION_QUEUE, &run->lease, &e)) {
    case SESSION_GRANTED:
        run->leased = true;
        run_work_answered(run);
        break;
    case SESSION_WAITS: run->waits = true; return; /* so does the reference */
    case SESSION_REFUSED: run_fail(run, e.code, err_name(e.code), err_text(&e)); break;
    }
    run_unref(run);
}

void run_wait_for_human(struct run *run) {
    run->parked = (struct parked){.name = run->name,
                                  .loop = run->host->loop,
                                  .journal = run->journal,
                                  .seq = run->calls_seq,
                                  .answer = on_answer,
                                  .ctx = run_ref(run)};
    session_park(&run->lease, &run->parked);
    run->leased = false;
    session_release(&run->lease, NULL);
}

static void park(struct run *run) {
    run_move(run, RUN_WAITING);
    timer_stop(&run->limit); /* a human may take his time */
    run_wait_for_human(run);
}

void run_work_answered(struct run *run) {
    struct call *call = &run->calls[0];
    struct buf result;
    buf_init(&result, 6 * run->answer.len + KIB); /* the longest escape is six bytes */
    struct json_writer json = json_writer(&result);
    json_open_object(&json);
    json_member_str(&json, "answer", run->answer);
    json_close(&json);
    run_move(run, RUN_WORKING);
    timer_start(&run->limit, run->engine->limits.turn_max_ms);
    answer(call, buf_str(&result), NULL);
    buf_done(&result);
    if (run->ending_seq) return;
    run_add_message(run, (struct message){.role = MESSAGE_USER, .text = run->answer});
    run_ask(run);
}

/* --- the way in --------------------------------------------------------------------------- */

static void record_calls(struct run *run) {
    for (size_t i = 0; i < run->call_count; i++) {
        struct call *call = &run->calls[i];
        struct event event = {.kind = EVENT_TOOL_CALL,
                              .tool_call = {call->call_id, call->tool, call->args}};
        if (run->asks_human) {
            event = (struct event){
                .kind = EVENT_APPROVAL,
                .approval = {call->call_id, run->question, call->tool, call->args}};
        }
        run->calls_seq = run_append(run, &event);
        run_add_message(
            run, (struct message){.role = MESSAGE_TOOL_CALL,
                                  .agent = run->agent->slug,
                                  .text = call->args,
                                  .call_id = call->call_id,
                                  .tool = run->asks_human ? STR(APPROVAL_TOOL) : call->tool});
    }
}

/* The calls are on disk: make them. */
static void make_calls(struct run *run) {
    run->calls_made = true;
    if (run->asks_human) {
        park(run);
        return;
    }
    if (wants_tools(run)) {
        run->lent = true;
        session_lend(&run->lease, history_so_far(run));
    }
    let_go(run);
}

void run_work(struct run *run) {
    if (run->asks_human) { /* it stands alone: calls beside it would have to wait for him */
        run->calls[0] = run->calls[run->human_call];
        run->call_count = 1;
    }
    run_move(run, RUN_WORKING);
    run->calls_out = run->calls_answered = 0;
    run->calls_made = false;
    record_calls(run);
    if (!run->host->keeper) make_calls(run);
}

void run_work_durable(struct run *run, uint64_t seq) {
    if (run->state == RUN_WORKING && !run->calls_made && seq >= run->calls_seq) make_calls(run);
}

void run_stop_working(struct run *run) {
    for (size_t i = 0; i < run->call_count; i++) {
        struct call *call = &run->calls[i];
        if (call->state == CALL_OUT && call->out) call->kind->kind->cancel(call->out);
        call->out = NULL;
        call->state = CALL_ANSWERED;
    }
    run->calls_out = 0;
    if (run->state == RUN_WAITING && session_unpark(run->engine->sessions, &run->parked)) {
        run_unref(run);
    }
}
