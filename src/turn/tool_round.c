#include "turn/tool_round.h"

#include "base/mem.h"
#include "base/units.h"
#include "conversation/effect.h"
#include "session/session.h"
#include "turn/call_args.h"
#include "turn/long_result.h"
#include "turn/request_item.h"
#include "turn/restore_run.h"
#include "turn/turn.h"
#include "wire/json_unique.h"

#include <stdio.h>
#include <stdlib.h>

#define NAME_SHOWN_BYTES 80
#define CALL_NAME_BYTES 48
#define TIMEOUT_TEXT_BYTES 32
#define PROGRESS_APART_MS 1000

static void start_calls(struct run *run);
static void all_answered(struct run *run);
static void make_calls(struct run *run);

/* --- answers ------------------------------------------------------------------------------ */

void run_answer(struct turn_call *call, struct str result, const struct err *failed) {
    struct run *run = call->run;
    measure_tool_ends(call, failed);
    turn_call_move(call, TURN_CALL_ANSWERED);
    call->out = NULL;
    struct event event = {.kind = EVENT_TOOL_RESULT,
                          .tool_result = {call->call_id, result, failed != NULL,
                                          failed ? err_text(failed) : STR_EMPTY}};
    run_append(run, &event);
}

void run_answer_error(struct turn_call *call, const struct err *why) {
    struct buf result;
    buf_init(&result, 8 * KIB);
    struct json_writer json = json_writer(&result);
    json_open_object(&json);
    json_member_str(&json, "error", err_text(why));
    json_close(&json);
    run_answer(call, buf_str(&result), why);
    buf_done(&result);
}

/* The call has no answer and never will: answer it with what is known of its effect. */
static void answer_effect(struct turn_call *call, enum effect effect, struct str cause) {
    struct buf result;
    struct err why;
    buf_init(&result, EFFECT_MAX_BYTES);
    effect_write(effect, cause, &result, &why);
    run_answer(call, buf_str(&result), &why);
    buf_done(&result);
}

/* --- transfers ---------------------------------------------------------------------------- */

/* The agent that the call names, if the turn may be handed to it. */
static const struct agent *transfer_target(const struct turn_call *call, struct err *e) {
    struct run *run = call->run;
    const struct engine *engine = run->record.engine;
    struct str target = STR_EMPTY;
    struct json member = json_find(json_of(call->args), STR("agent_name"));
    if (!json_str(member, run->arena, &target)) {
        err_set(e, ERR_INVALID_ARGUMENT, "transfer_to_agent needs agent_name, a string");
        return NULL;
    }
    const struct agent *agent = engine_agent(engine, target);
    if (agent && !run->request.addressed && engine_may_transfer(engine, run->agent, target))
        return agent;
    err_set(e, ERR_NOT_FOUND, "no agent '" STR_FMT "' to hand this to",
            STR_ARG(str_head(target, NAME_SHOWN_BYTES)));
    return NULL;
}

/* Answer the call. Returns the agent that the turn is handed to, or NULL. */
static const struct agent *transfer(struct turn_call *call) {
    struct run *run = call->run;
    struct err e;
    const struct agent *agent = transfer_target(call, &e);
    if (!agent) {
        run_answer_error(call, &e);
        return NULL;
    }
    if (run->calls.transfers == run->record.engine->limits.transfers_max) {
        run_fail(run, ERR_RESOURCE_EXHAUSTED, STR("TRANSFERS"),
                 STR("the turn went from agent to agent more often than its limit allows"));
        return NULL;
    }
    run->calls.transfers++;
    run_answer(call, STR("{}"), NULL);
    return agent;
}

static void refuse_second_transfer(struct turn_call *call, const struct agent *taken) {
    struct err e;
    err_set(&e, ERR_FAILED_PRECONDITION,
            "this transfer was not made: the same reply has handed the turn to '" STR_FMT "'",
            STR_ARG(str_head(taken->slug, NAME_SHOWN_BYTES)));
    run_answer_error(call, &e);
}

/* The reply's other calls are answered. The first transfer that may be made is made; the reply's
 * agent has the turn until all of them are answered. */
static void make_transfers(struct run *run) {
    const struct agent *next = NULL;
    struct turn_call *call = calls_transfer(&run->calls);
    for (; call && !run->ending_begun; call = calls_transfer(&run->calls)) {
        if (next) {
            refuse_second_transfer(call, next);
        } else {
            next = transfer(call);
        }
    }
    if (next && !run->ending_begun) run->agent = next;
}

/* --- tools -------------------------------------------------------------------------------- */

/* A tool that reports an unknown outcome, and may be called again, has only failed. */
static void answer_failed(struct turn_call *call, const struct err *why) {
    if (why->code == ERR_EFFECT_UNKNOWN && !call->kind->idempotent) {
        answer_effect(call, EFFECT_UNKNOWN, err_text(why));
    } else {
        run_answer_error(call, why);
    }
}

/* The call exceeded its time limit: end it, and go on with the turn. */
static void on_tool_late(void *ctx) {
    struct turn_call *call = ctx;
    struct run *run = call->run;
    char room[TIMEOUT_TEXT_BYTES];
    struct buf limit = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    struct str name = str_head(call->tool, NAME_SHOWN_BYTES);
    struct err why;
    bool own;
    units_append_duration(&limit,
                          1000 * engine_tool_timeout(run->record.engine, call->kind, &own));
    err_set(&why, ERR_EFFECT_UNKNOWN,
            "tool '" STR_FMT "' did not answer within " STR_FMT "; the setting %s" STR_FMT
            "%s gives it more",
            STR_ARG(name), STR_ARG(buf_str(&limit)), own ? "tools." : "limits.tool",
            STR_ARG(own ? name : STR_EMPTY), own ? ".timeout" : "");
    call->kind->kind->cancel(call->out);
    call->out = NULL;
    answer_failed(call, &why);
    run_calls_continue(run);
}

static void limit_time(struct turn_call *call) {
    bool own;
    uint64_t limit_ms = engine_tool_timeout(call->run->record.engine, call->kind, &own);
    timer_init(&call->late, call->run->record.host->loop, on_tool_late, call);
    if (limit_ms) timer_start(&call->late, limit_ms);
}

/* A step of the turn, but no more than one a second for each call. */
static void on_tool_progress(struct str text, void *ctx) {
    struct turn_call *call = ctx;
    struct run *run = call->run;
    uint64_t now_ms = loop_now_ms(run->record.host->loop);
    struct buf said;
    if (run->ending_begun ||
        (call->reported_ms && now_ms - call->reported_ms < PROGRESS_APART_MS))
        return;
    call->reported_ms = now_ms ? now_ms : 1;
    buf_init(&said, 2 * KIB);
    buf_printf(&said, STR_FMT ": " STR_FMT, STR_ARG(str_head(call->tool, NAME_SHOWN_BYTES)),
               STR_ARG(text));
    struct event event = {.kind = EVENT_STEP, .step = {.description = buf_str(&said)}};
    if (buf_ok(&said)) run_append(run, &event);
    buf_done(&said);
}

static void on_tool_done(struct str result, const struct err *failed, void *ctx) {
    struct turn_call *call = ctx;
    struct run *run = call->run;
    timer_stop(&call->late);
    bool too_long = !failed && result.len > run->record.engine->limits.result_max_bytes;
    call->out = NULL;
    if (too_long && run_keep_result(call, result)) return;
    if (failed) answer_failed(call, failed);
    if (!failed && !too_long) run_answer(call, result, NULL);
    run_calls_continue(run);
}

/* Whether the tool exists and accepts the call. */
static bool check_call(struct turn_call *call, struct err *e) {
    struct run *run = call->run;
    if (call->too_many)
        return err_set(e, ERR_RESOURCE_EXHAUSTED,
                       "this call was not made: a turn may make %u calls at most",
                       run_tool_calls_max(run));
    if (!call_args_check(call, e)) return false;
    if (run_is_callers_call(run, call))
        return err_set(e, ERR_FAILED_PRECONDITION,
                       "this call was not made, because the arguments of another call of the "
                       "reply cannot be read; make both again");
    call->kind = engine_agent_tool(run->record.engine, run->agent, call->tool);
    if (!call->kind)
        return err_set(e, ERR_NOT_FOUND, "tool '" STR_FMT "' not found",
                       STR_ARG(str_head(call->tool, 80)));
    const struct schema *schema = call->kind->schema;
    struct json args = json_of(call->args);
    return (json_check_unique(args, e) && (!schema || schema_check(schema, args, e))) ||
           err_add(e, "tool '" STR_FMT "' was not called: its arguments do not fit",
                   STR_ARG(call->tool));
}

/* Name the call for the world outside. A model's name recurs: some servers begin with `call_0` in
 * every reply. The turn and the call's event in it are one of a kind, also after a restart. */
static bool name_outside(const struct turn_call *call, struct str *ret) {
    char room[CALL_NAME_BYTES];
    int len = snprintf(room, sizeof(room), "%llu-%llu",
                       (unsigned long long)record_id(&call->run->record),
                       (unsigned long long)call->seq);
    return run_keep(call->run, str_of(room, (size_t)len), ret);
}

/* Whether the call may be made as it was recorded. A process that takes up the run later may have
 * other tools; a repeat would not learn of an effect that the journal does not know. */
static bool check_recorded(struct turn_call *call, struct err *e) {
    return check_call(call, e) &&
           (call->kind->idempotent || !call->harmless ||
            err_set(e, ERR_FAILED_PRECONDITION,
                    "tool '" STR_FMT "' was not called: it has changed since; call it again",
                    STR_ARG(str_head(call->tool, NAME_SHOWN_BYTES))));
}

static void start_tool(struct turn_call *call) {
    struct run *run = call->run;
    struct str id;
    struct err e;
    if (!check_recorded(call, &e)) {
        run_answer_error(call, &e);
        return;
    }
    if (!name_outside(call, &id)) return;
    turn_call_move(call, TURN_CALL_OUT);
    call->began_ms = loop_now_ms(run->record.host->loop);
    if (!call->kind->idempotent) run->calls.acted = true;
    struct tool_request request = {.call_id = call->call_id,
                                   .id = id,
                                   .args = call->args,
                                   .agent = run->agent->slug,
                                   .workspace = run->request.name.workspace,
                                   .user = run->request.name.user,
                                   .session = run->request.name.session,
                                   .run = record_id(&run->record),
                                   .trace = measure_tool_begins(call),
                                   .progress = on_tool_progress};
    limit_time(call);
    call->out = call->kind->kind->start(call->kind, run->record.host->loop, &request,
                                        on_tool_done, call);
}

/* The conversation so far, without the open calls: what a child run sees. */
static struct history *history_so_far(const struct run *run) {
    const struct conversation *c = &run->conversation;
    size_t count = 0;
    struct message *own = mem_zero(c->count - c->own_from, sizeof(struct message));
    for (size_t i = c->own_from; i < c->count; i++) {
        if (!conversation_is_open(c, i)) own[count++] = c->messages[i];
    }
    struct turn_record *record = turn_record_new(record_id(&run->record), own, count);
    record->starts_anew = c->starts_anew;
    free(own);
    return history_with(run->admission.lease.history, record);
}

static bool wants_tools(const struct run *run) {
    for (size_t i = 0; i < run->calls.count; i++) {
        const struct turn_call *call = &run->calls.list[i];
        if (call->state == TURN_CALL_PENDING && !call->asks && !turn_call_is_transfer(call))
            return true;
    }
    return false;
}

/* Start the calls that may start; when none is left, continue the turn. */
static void start_calls(struct run *run) {
    for (size_t i = 0; i < run->calls.count && !run->ending_begun; i++) {
        struct turn_call *call = &run->calls.list[i];
        if (call->state != TURN_CALL_PENDING || call->asks || turn_call_is_transfer(call))
            continue;
        if (run->calls.out < run->record.engine->limits.tools_at_once) start_tool(call);
    }
    if (!run->ending_begun && calls_settled(&run->calls)) all_answered(run);
}

void run_calls_continue(struct run *run) {
    if (!run->ending_begun) start_calls(run);
}

/* --- the session, lent and taken back ----------------------------------------------------- */

static void all_answered(struct run *run) {
    if (run->calls.lent) {
        if (!session_reclaim(&run->admission.lease)) return; /* children_done follows */
        run->calls.lent = false;
    }
    struct turn_call *undecided = calls_undecided(&run->calls);
    if (!undecided) {
        make_transfers(run);
        if (!run->ending_begun) run_ask(run);
        return;
    }
    run_ask_human(run, undecided);
    if (run->record.in_memory && !run->ending_begun) make_calls(run);
}

void run_work_children_done(struct run *run) {
    if (run->calls.lent && calls_settled(&run->calls)) all_answered(run);
}

/* --- a human has answered ----------------------------------------------------------------- */

/* The call that waited for the decision is made, or answered without the tool. */
static void go_on_decided(struct run *run) {
    struct turn_call *call = run->approval.guarded;
    struct decision decision;
    struct err e;
    if (!run_take_decision(run, &decision)) return;
    if (decision.kind == DECISION_REFUSE) {
        err_set(&e, ERR_PERMISSION_DENIED, "a human refused this call%s%.*s",
                decision.reason.len ? ": " : "",
                (int)(decision.reason.len < 400 ? decision.reason.len : 400),
                decision.reason.at);
        run_answer_error(call, &e);
    }
    if (run->record.in_memory && !run->ending_begun) make_calls(run);
}

void run_work_answered(struct run *run) {
    if (run_await_tools(run)) return;
    run_look_back(run);
    if (run->approval.guarded) {
        run_move(run, RUN_WORKING);
        timer_start(&run->limit, run->record.engine->limits.turn_max_ms);
        go_on_decided(run);
        return;
    }
    struct turn_call *call = &run->calls.list[0];
    struct buf result;
    buf_init(&result, 6 * run->approval.answer.len + KIB); /* the longest escape is six bytes */
    struct json_writer json = json_writer(&result);
    json_open_object(&json);
    json_member_str(&json, "answer", run->approval.answer);
    json_close(&json);
    run_move(run, RUN_WORKING);
    timer_start(&run->limit, run->record.engine->limits.turn_max_ms);
    run_answer(call, buf_str(&result), NULL);
    buf_done(&result);
    if (!run->ending_begun) run_ask(run);
}

/* --- the way in --------------------------------------------------------------------------- */

static void record_question(struct run *run, struct turn_call *call) {
    run_append_request(run);
    if (run->ending_begun) return;
    struct event event = {.kind = EVENT_APPROVAL,
                          .approval = {.call_id = call->call_id,
                                       .question = run->approval.question,
                                       .tool = call->tool,
                                       .args = call->args,
                                       .guards = STR_EMPTY,
                                       .said = conversation_reply(&run->conversation)}};
    run->approval.asked_ms = loop_now_ms(run->record.host->loop);
    run->calls.seq = run_append_kept(run, &event);
    call->recorded = !run->ending_begun;
}

static void record_call(struct run *run, struct turn_call *call) {
    struct err e; /* a call that cannot be made needs no approval */
    bool asks = agent_tool_policy(run->agent, call->tool) == TOOL_ASK;
    bool can = !turn_call_is_transfer(call) && check_call(call, &e);
    call->asks = asks && can;
    call->harmless = !can || call->kind->idempotent;
    struct event event = {.kind = EVENT_TOOL_CALL,
                          .tool_call = {.call_id = call->call_id,
                                        .tool = call->tool,
                                        .args = call->args,
                                        .held = call->asks,
                                        .idempotent = call->harmless,
                                        .said = conversation_reply(&run->conversation)}};
    run->calls.seq = call->seq = run_append_kept(run, &event);
    call->recorded = !run->ending_begun;
}

static void record_calls(struct run *run) {
    for (size_t i = 0; i < run->calls.count && !run->ending_begun; i++) {
        struct turn_call *call = &run->calls.list[i];
        if (run->approval.by_model) {
            record_question(run, call);
        } else {
            record_call(run, call);
        }
    }
}

/* The calls are on disk: make them. */
static void make_calls(struct run *run) {
    run->calls.made = true;
    if (run->approval.by_model || run->approval.guarded) {
        run_park(run);
        return;
    }
    if (wants_tools(run)) {
        run->calls.lent = true;
        session_lend(&run->admission.lease, history_so_far(run));
    }
    start_calls(run);
}

void run_work(struct run *run) {
    /* A question must be the only call: others would have to wait for the human. */
    if (run->approval.by_model) calls_leave_only(&run->calls, run->approval.index);
    run_move(run, RUN_WORKING);
    run->calls.made = false;
    record_calls(run);
    if (run->record.in_memory && !run->ending_begun) make_calls(run);
}

void run_work_durable(struct run *run, uint64_t seq) {
    if (run->state == RUN_WORKING && !run->calls.made && seq >= run->calls.seq) make_calls(run);
}

/* The turn ends before this call was answered. */
static void tool_round_close_call(struct turn_call *call) {
    struct run *run = call->run;
    bool asked = run->state == RUN_WAITING && run->approval.by_model;
    if (call->state == TURN_CALL_OUT) {
        bool harmless = call->kind->idempotent;
        answer_effect(call, harmless ? EFFECT_HARMLESS : EFFECT_UNKNOWN,
                      STR("the turn ended while this call was out"));
    } else {
        answer_effect(call, EFFECT_NONE,
                      asked ? STR("the turn ended before anybody answered")
                            : STR("the turn ended first"));
    }
}

/* Every call is accounted for, whatever ends the turn. */
void run_stop_tool_round(struct run *run) {
    for (size_t i = 0; i < run->calls.count; i++) {
        struct turn_call *call = &run->calls.list[i];
        if (call->state == TURN_CALL_OUT && call->out) call->kind->kind->cancel(call->out);
        if (call->state == TURN_CALL_OUT) timer_stop(&call->late);
        call->out = NULL;
        if (call->keeping) run_cut_result(call);
        if (call->recorded && call->state != TURN_CALL_ANSWERED) tool_round_close_call(call);
        if (call->state != TURN_CALL_ANSWERED) turn_call_move(call, TURN_CALL_ANSWERED);
    }
    run_stop_waiting_for_human(run);
}
