#include "turn/restore_run.h"

#include "base/clock.h"
#include "turn/request_item.h"
#include "turn/turn.h"
#include "wire/json.h"

/* Call `each` with every event; false when it says so, or when one does not decode. */
static bool restore_run_walk(const struct store_section *sections, size_t count,
                             bool (*each)(const struct event *event, void *ctx), void *ctx) {
    for (size_t i = 0; i < count; i++) {
        struct str rest = sections[i].events;
        struct event event = {.seq = sections[i].first_seq};
        struct err e;
        for (; rest.len; event.seq++) {
            if (!event_decode(&rest, &event, &e) || !each(&event, ctx)) return false;
        }
    }
    return true;
}

/* A human's words to an open question, and keys, do not end the wait: answers.c. */
static bool note_kind(const struct event *event, void *ctx) {
    if (event->kind != EVENT_ITEM) *(enum event_kind *)ctx = event->kind;
    return true;
}

static bool note_seq(const struct event *event, void *ctx) {
    *(uint64_t *)ctx = event->seq;
    return true;
}

bool restore_run_waits(const struct store_section *sections, size_t count) {
    enum event_kind last = EVENT_KIND_COUNT;
    return restore_run_walk(sections, count, note_kind, &last) && last == EVENT_APPROVAL;
}

/* --- the run from its events -------------------------------------------------------------- */

struct restoring {
    struct run *run;
    bool calling; /* the calls of a reply were read, and none of their results yet */
};

/* What answers a replay is gone with its process; models and tools must not answer it. */
static bool is_lost_replay(const struct run *run, const struct event *event) {
    return str_equal(event->started.contract, STR(REPLAY_CONTRACT)) &&
           !run->record.engine->derived;
}

static bool restore_run_take_started(struct run *run, const struct event *event) {
    if (is_lost_replay(run, event)) return false;
    int64_t age_ms = clock_unix_ms() - event->started.unix_ms;
    run->record.begun_ms = loop_now_ms(run->record.host->loop) - (uint64_t)age_ms;
    run->record.begun_unix_ms = event->started.unix_ms;
    run->guarded.first = engine_agent(run->record.engine, event->agent);
    return run_keep(run, event->started.workspace, &run->request.name.workspace) &&
           run_keep(run, event->started.user, &run->request.name.user) &&
           run_keep(run, event->started.session, &run->request.name.session) &&
           run_keep(run, event->started.text, &run->request.text) &&
           run_keep(run, event->started.extras, &run->request.extras) &&
           run_restore_trace(run, event->started.trace) &&
           run_restore_options(run, event->started.options) &&
           run_keep(run, event->started.contract, &run->request.contract);
}

/* The reply's calls are those since the last result. Their texts are the conversation's. */
static struct turn_call *restore_run_add_call(struct restoring *restoring) {
    struct run *run = restoring->run;
    const struct conversation *c = &run->conversation;
    const struct message *message = &c->messages[c->count - 1];
    if (!restoring->calling) calls_clear(&run->calls);
    restoring->calling = true;
    struct turn_call *call = calls_add(run);
    call->recorded = true;
    call->call_id = message->call_id;
    call->args = message->text;
    call->tool = message->tool;
    return call;
}

static bool take_tool_call(struct restoring *restoring, const struct event *event) {
    restoring->run->calls.total++;
    if (event->tool_call.callers) return true; /* it was not made here */
    if (!event->tool_call.idempotent && !event->tool_call.held)
        restoring->run->calls.acted = true;
    struct turn_call *call = restore_run_add_call(restoring);
    call->asks = event->tool_call.held;
    call->harmless = event->tool_call.idempotent;
    call->seq = event->seq;
    return true;
}

/* A human's decision about a call; edited arguments are the ones that were used. */
static void restore_run_take_decision(struct restoring *restoring, const struct event *event) {
    struct run *run = restoring->run;
    struct str call_id = event->tool_result.call_id;
    struct str guarded = str_skip(call_id, strlen(APPROVAL_ID));
    struct turn_call *call =
        str_starts(call_id, STR(APPROVAL_ID)) ? calls_open(&run->calls, guarded) : NULL;
    if (!call) return;
    call->asks = false;
    call->args = conversation_call(&run->conversation, guarded)->text;
    run->approval.guarded = NULL;
    if (!json_is(json_find(json_of(event->tool_result.result), STR("decision")), STR("refuse")))
        run->calls.acted = true;
}

static bool restore_run_take_result(struct restoring *restoring, const struct event *event) {
    struct run *run = restoring->run;
    struct turn_call *call = calls_open(&run->calls, event->tool_result.call_id);
    restoring->calling = false;
    if (call) {
        turn_call_move(call, TURN_CALL_ANSWERED);
    } else {
        restore_run_take_decision(restoring, event);
    }
    return true;
}

static bool restore_run_take_approval(struct restoring *restoring, const struct event *event) {
    struct run *run = restoring->run;
    const struct agent *agent = engine_agent(run->record.engine, event->agent);
    struct str tool;
    if (!agent) return false;
    run->agent = agent;
    run->approval.asked_ms = run->record.begun_ms + (uint64_t)event->at_ms;
    run->calls.seq = event->seq;
    if (!run_keep(run, event->approval.question, &run->approval.question)) return false;
    if (event->approval.guards.len) {
        run->approval.guarded = calls_open(&run->calls, event->approval.guards);
        return run->approval.guarded &&
               run_keep(run, event->approval.call_id, &run->approval.id);
    }
    if (!run_keep(run, event->approval.tool, &tool)) return false;
    restoring->calling = false;
    struct turn_call *call = restore_run_add_call(restoring);
    if (tool.at) call->tool = tool;
    restoring->calling = false;
    run->approval.by_model = true;
    return true;
}

static bool restore_run_take_item(struct run *run, const struct event *event) {
    struct str type = event->item.type, bytes = event->item.bytes;
    if (str_equal(type, STR(ASIDE_PRINT_ITEM))) return run_note_print(run, bytes);
    return !str_equal(type, STR(REQUEST_ITEM)) || run_restore_request(run, bytes);
}

static bool restore_run_take(const struct event *event, void *ctx) {
    struct restoring *restoring = ctx;
    struct run *run = restoring->run;
    if (!conversation_apply(&run->conversation, event, TEXTS_LENT)) return false;
    switch (event->kind) {
    case EVENT_STARTED: return restore_run_take_started(run, event);
    case EVENT_USAGE:
        run->model_round.model_calls++;
        run_count_usage(run, &event->usage);
        return true;
    case EVENT_TOOL_CALL: return take_tool_call(restoring, event);
    case EVENT_TOOL_RESULT: return restore_run_take_result(restoring, event);
    case EVENT_APPROVAL: return restore_run_take_approval(restoring, event);
    case EVENT_ITEM: return restore_run_take_item(run, event);
    default: return true;
    }
}

/* --- parking the run ---------------------------------------------------------------------- */

void run_look_back(struct run *run) {
    if (run->seen) return;
    run->seen = history_before(run->admission.lease.history, record_id(&run->record));
    run_precede(run);
    run_show_history(run);
}

struct run *run_restore(struct run_host *host, struct engine *engine, uint64_t id,
                        const struct store_section *sections, size_t count) {
    uint64_t last_seq = 0;
    if (!restore_run_walk(sections, count, note_seq, &last_seq)) return NULL;
    struct run *run =
        run_new(host, engine, &engine->agents[0], (struct run_left){id, last_seq, RUN_WAITING});
    run->calls.made = true;
    struct restoring restoring = {.run = run};
    run->ending_begun = true; /* one that does not fit in its memory does not end here */
    if (!restore_run_walk(sections, count, restore_run_take, &restoring) ||
        !(run->approval.by_model || run->approval.guarded)) {
        run_discard(run);
        return NULL;
    }
    run->ending_begun = false;
    run_enter_directory(run);
    run_wait_for_human(run);
    return run;
}
