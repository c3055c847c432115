#include "turn/approval.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "session/waiting.h"
#include "turn/dormant_wake.h"
#include "turn/request_item.h"
#include "turn/turn.h"
#include "wire/json.h"

#include <stdlib.h>

#define QUESTION_ARGS_BYTES 2000

void approval_done(struct approval *approval) {
    free(approval->parked);
}

/* --- the question ------------------------------------------------------------------------- */

static bool write_question(struct run *run, const struct turn_call *call, struct str *ret) {
    struct buf text;
    buf_init(&text, QUESTION_ARGS_BYTES + KIB);
    bool cut = call->args.len > QUESTION_ARGS_BYTES;
    buf_printf(&text, "May '" STR_FMT "' use the tool '" STR_FMT "' with ",
               STR_ARG(run->agent->slug), STR_ARG(str_head(call->tool, 80)));
    buf_append(&text, str_head(call->args, utf8_cut(call->args, QUESTION_ARGS_BYTES)));
    buf_append(&text, cut ? STR(" ...? (yes or no)") : STR("? (yes or no)"));
    bool kept = run_keep(run, buf_str(&text), ret);
    buf_done(&text);
    return kept;
}

static bool name_question(struct run *run, const struct turn_call *call, struct str *ret) {
    struct buf id;
    buf_init(&id, call->call_id.len + 16);
    buf_append(&id, STR(APPROVAL_ID));
    buf_append(&id, call->call_id);
    bool kept = run_keep(run, buf_str(&id), ret);
    buf_done(&id);
    return kept;
}

void run_ask_human(struct run *run, struct turn_call *call) {
    if (!write_question(run, call, &run->approval.question) ||
        !name_question(run, call, &run->approval.id))
        return;
    run_append_request(run);
    if (run->ending_begun) return;
    struct event event = {.kind = EVENT_APPROVAL,
                          .approval = {.call_id = run->approval.id,
                                       .question = run->approval.question,
                                       .tool = call->tool,
                                       .args = call->args,
                                       .guards = call->call_id}};
    run->approval.guarded = call;
    run->calls.made = false;
    run->approval.asked_ms = loop_now_ms(run->record.host->loop);
    run->calls.seq = run_append(run, &event);
}

/* --- the answer --------------------------------------------------------------------------- */

/* It names the call as it is made, for readers that continue from here. */
static uint64_t append_decision(struct run *run, const struct turn_call *call,
                                const struct decision *decision) {
    struct buf result;
    buf_init(&result, 6 * (decision->reason.len + call->tool.len) + call->args.len + KIB);
    struct json_writer json = json_writer(&result);
    json_open_object(&json);
    json_member_str(&json, "decision", decision_name(decision->kind));
    json_member_str(&json, "tool", call->tool);
    json_member_raw(&json, "args", call->args);
    if (decision->reason.len) json_member_str(&json, "reason", decision->reason);
    json_close(&json);
    struct event event = {
        .kind = EVENT_TOOL_RESULT,
        .tool_result = {run->approval.id, buf_str(&result), false, STR_EMPTY}};
    uint64_t seq = run_append(run, &event);
    buf_done(&result);
    return seq;
}

bool run_take_decision(struct run *run, struct decision *ret) {
    struct turn_call *call = run->approval.guarded;
    struct err e;
    if (!decision_read(run->approval.answer, &run->record.engine->limits.decision_words,
                       run->arena, ret, &e)) {
        run_fail_memory(run);
        return false;
    }
    if (ret->kind == DECISION_NONE) ret->kind = DECISION_REFUSE; /* not a decision */
    run->approval.guarded = NULL;
    call->asks = false;
    if (ret->kind == DECISION_EDIT) call->args = ret->args; /* so does the conversation */
    run->calls.made = false;
    run->calls.seq = append_decision(run, call, ret);
    journal_hurry(run->record.journal);
    return true;
}

/* --- waiting ------------------------------------------------------------------------------ */

/* Words for the model pass the guardrails. A decision about a call is taken as it is: its
 * arguments are what a human chose. */
static bool keep_answer(struct run *run, struct str text) {
    struct buf room;
    if (run->ending_begun) return false;
    if (run->approval.guarded) return run_keep(run, text, &run->approval.answer);
    bool passed = run_guard_words(run, text, &room, &text);
    if (!passed)
        run_fail(run, ERR_PERMISSION_DENIED, STR(GUARDRAIL_BLOCKED),
                 STR("the answer to the question was blocked by a guardrail"));
    bool kept = passed && run_keep(run, text, &run->approval.answer);
    buf_done(&room);
    return kept;
}

void run_forgo_session(struct run *run) {
    if (!run->approval.forgoes) return;
    run->approval.forgoes = false;
    session_forgo(run->record.engine->sessions, run->approval.parked);
}

/* New turns of its session come after its end, as after that of a run that has the session. */
static void forgo_when_over(struct run *run) {
    run->approval.forgoes = true;
    if (run->record.state == RECORD_OVER) run_forgo_session(run);
}

void run_stop_waiting_for_human(struct run *run) {
    if (run->state != RUN_WAITING ||
        !session_expire(run->record.engine->sessions, run->approval.parked))
        return; /* if an answer is on its way, that is heard */
    run->approval.forgoes = true;
    run_unref(run);
}

static void approval_on_answer(struct str text, void *ctx) {
    struct run *run = ctx;
    struct err e;
    timer_stop(&run->limit);
    measure_approval_ends(run);
    if (!keep_answer(run, text)) {
        forgo_when_over(run);
        run_unref(run);
        return;
    }
    if (!run_readmit(run, &e)) run_fail(run, e.code, err_name(e.code), err_text(&e));
    run_unref(run);
}

/* The question, for callers that list what waits. */
static struct pending_question approval_question_of(const struct run *run) {
    const struct turn_call *call =
        run->approval.guarded ? run->approval.guarded : &run->calls.list[0];
    struct tool *tool =
        run->approval.guarded ? engine_tool(run->record.engine, call->tool) : NULL;
    uint64_t max_ms = run->record.engine->limits.approval_max_ms;
    int64_t asked_ms =
        run->record.begun_unix_ms + (int64_t)(run->approval.asked_ms - run->record.begun_ms);
    return (struct pending_question){
        .agent = run->agent->slug,
        .question = run->approval.question,
        .tool = call->tool,
        .args = call->args,
        .guards = run->approval.guarded ? call->call_id : STR_EMPTY,
        .asked_unix_ms = asked_ms,
        .deadline_unix_ms = max_ms ? asked_ms + (int64_t)max_ms : 0,
        .schema = tool ? tool->schema : NULL,
        .words = &run->record.engine->limits.decision_words,
    };
}

void run_wait_for_human(struct run *run) {
    uint64_t max_ms = run->record.engine->limits.approval_max_ms;
    uint64_t waited_ms = loop_now_ms(run->record.host->loop) - run->approval.asked_ms;
    if (!run->approval.parked) run->approval.parked = MEM_NEW(struct pending_approval);
    *run->approval.parked =
        (struct pending_approval){.name = run->request.name,
                                  .run = record_id(&run->record),
                                  .asked = approval_question_of(run),
                                  .loop = run->record.host->loop,
                                  .journal = run->record.journal,
                                  .seq = run->calls.seq,
                                  .after_seq = journal_appended(run->record.journal),
                                  .answer = approval_on_answer,
                                  .lookup = run_take_key,
                                  .ctx = run_ref(run)};
    session_park(run->record.engine->sessions, run->approval.parked);
    dormant_wake_watch(run);
    if (max_ms) timer_start(&run->limit, waited_ms < max_ms ? max_ms - waited_ms : 0);
}

void run_work_expired(struct run *run) {
    if (!session_expire(run->record.engine->sessions, run->approval.parked))
        return; /* the human was faster */
    bool yes = run->approval.guarded && run->record.engine->limits.approval_expires_yes;
    approval_on_answer(
        yes ? STR("{\"decision\":\"approve\",\"reason\":\"nobody answered in time\"}")
            : STR("{\"decision\":\"refuse\",\"reason\":\"nobody answered in time\"}"),
        run);
}

void run_park(struct run *run) {
    run_move(run, RUN_WAITING);
    timer_stop(&run->limit);
    run_wait_for_human(run);
    run_leave_slot(run);
    run_leave_session(run, NULL);
}
