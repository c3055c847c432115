#include "run/revive.h"

#include "base/clock.h"
#include "base/mem.h"
#include "run/inner.h"
#include "wire/json.h"

#include <stdlib.h>

/* Call `each` with every event; false when it says so, or when one does not decode. */
static bool walk(const struct store_section *sections, size_t count,
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

static bool note_kind(const struct event *event, void *ctx) {
    if (event->kind != EVENT_ITEM) *(enum event_kind *)ctx = event->kind; /* answers.c */
    return true;
}

static bool note_seq(const struct event *event, void *ctx) {
    *(uint64_t *)ctx = event->seq;
    return true;
}

bool revive_waits(const struct store_section *sections, size_t count) {
    enum event_kind last = EVENT_KIND_COUNT;
    return walk(sections, count, note_kind, &last) && last == EVENT_APPROVAL;
}

/* --- the run from its events -------------------------------------------------------------- */

struct revival {
    struct run *run;
    size_t reply_from;          /* where in run->reply the newest reply begins */
    size_t reply_at;            /* index of its message; SIZE_MAX: it said nothing */
    struct str speaker;         /* who replied, while `calling` */
    bool calling;               /* its calls are read, none of their results yet */
    bool only_transfers;        /* so its part is over */
    struct str dialect, opaque; /* of the reply that comes, or empty */
};

static bool take_started(struct run *run, const struct event *event) {
    int64_t age_ms = clock_unix_ms() - event->started.unix_ms;
    run->started_ms = loop_now_ms(run->host->loop) - (uint64_t)age_ms;
    if (!run_keep(run, event->started.workspace, &run->name.workspace) ||
        !run_keep(run, event->started.user, &run->name.user) ||
        !run_keep(run, event->started.session, &run->name.session) ||
        !run_keep(run, event->started.text, &run->text) ||
        !run_keep(run, event->started.contract, &run->contract)) {
        return false;
    }
    run_add_message(run, (struct message){.role = MESSAGE_USER, .text = run->text});
    return true;
}

/* The first call that a reply asks for: the reply is complete, and becomes a message. */
static bool end_reply(struct revival *revival, struct str agent) {
    struct run *run = revival->run;
    struct str reply = str_skip(buf_str(&run->reply), revival->reply_from);
    struct message message = {.role = MESSAGE_AGENT};
    revival->calling = revival->only_transfers = true;
    revival->reply_at = SIZE_MAX;
    if (!run_keep(run, agent, &revival->speaker)) return false;
    run->call_count = run->calls_answered = 0;
    if (revival->dialect.len) {
        run_add_message(run, (struct message){.role = MESSAGE_OPAQUE,
                                              .agent = revival->speaker,
                                              .tool = revival->dialect,
                                              .text = revival->opaque});
        revival->dialect = STR_EMPTY;
    }
    if (str_trim(reply).len == 0) return true;
    message.agent = revival->speaker;
    if (!run_keep(run, reply, &message.text)) return false;
    revival->reply_at = run->message_count;
    run_add_message(run, message);
    return true;
}

/* As the run did when the reply came: see end_part() in asking.c. */
static bool end_part(struct revival *revival) {
    struct run *run = revival->run;
    struct str part = buf_str(&run->reply);
    if (str_trim(part).len) {
        struct said said = {.index = revival->reply_at};
        if (!event_turn_append(&run->turns, revival->speaker, part)) return false;
        if (revival->reply_from > 0 && said.index != SIZE_MAX) {
            if (!run_keep(run, part, &said.text)) return false;
            run->said = mem_resize(run->said, (run->said_count + 1) * sizeof(struct said));
            run->said[run->said_count++] = said;
        }
    }
    buf_clear(&run->reply);
    return true;
}

/* The first result: all calls of the reply are known. */
static bool end_calls(struct revival *revival) {
    if (!revival->calling) return true;
    revival->calling = false;
    if (revival->only_transfers && !end_part(revival)) return false;
    revival->reply_from = revival->run->reply.len;
    return true;
}

static bool add_call(struct run *run, struct str agent, struct str call_id, struct str tool,
                     struct str args) {
    struct message message = {.role = MESSAGE_TOOL_CALL};
    if (!run_keep(run, agent, &message.agent) || !run_keep(run, call_id, &message.call_id) ||
        !run_keep(run, tool, &message.tool) || !run_keep(run, args, &message.text)) {
        return false;
    }
    run_add_message(run, message);
    run->tool_calls++;
    return true;
}

static struct str tool_of(const struct run *run, struct str call_id) {
    for (size_t i = run->message_count; i-- > 0;) {
        const struct message *message = &run->messages[i];
        if (message->role == MESSAGE_TOOL_CALL && str_equal(message->call_id, call_id)) {
            return message->tool;
        }
    }
    return STR_EMPTY;
}

static bool take_tool_call(struct revival *revival, const struct event *event) {
    struct run *run = revival->run;
    if (!revival->calling && !end_reply(revival, event->agent)) return false;
    if (!str_equal(event->tool_call.tool, STR(TRANSFER_TOOL))) revival->only_transfers = false;
    if (!add_call(run, event->agent, event->tool_call.call_id, event->tool_call.tool,
                  event->tool_call.args))
        return false;
    const struct message *message = &run->messages[run->message_count - 1];
    run->calls = mem_resize(run->calls, (run->call_count + 1) * sizeof(struct call));
    run->call_room = run->call_count + 1;
    run->calls[run->call_count++] = (struct call){.run = run,
                                                  .call_id = message->call_id,
                                                  .tool = message->tool,
                                                  .args = message->text,
                                                  .state = CALL_PENDING,
                                                  .asks = event->tool_call.held};
    return true;
}

static struct call *call_named(struct run *run, struct str call_id) {
    for (size_t i = 0; i < run->call_count; i++) {
        if (str_equal(run->calls[i].call_id, call_id)) return &run->calls[i];
    }
    return NULL;
}

static bool is_decision(struct run *run, const struct event *event) {
    struct str call_id = event->tool_result.call_id;
    return str_starts(call_id, STR(APPROVAL_ID)) && !call_named(run, call_id);
}

/* A human's word about a call; what he changed is what was done. */
static bool take_decision(struct revival *revival, const struct event *event) {
    struct run *run = revival->run;
    struct str call_id = str_skip(event->tool_result.call_id, strlen(APPROVAL_ID));
    struct call *call = call_named(run, call_id);
    struct json result;
    struct err e;
    if (!call || !json_read(event->tool_result.result, &result, &e)) return true;
    call->asks = false;
    run->guarded = NULL;
    struct json args = json_find(result, STR("args"));
    if (args.kind != JSON_OBJECT) return true;
    if (!run_keep(run, args.raw, &call->args)) return false;
    for (size_t i = run->message_count; i-- > 0;) {
        struct message *message = &run->messages[i];
        if (message->role != MESSAGE_TOOL_CALL) continue;
        if (str_equal(message->call_id, call_id)) message->text = call->args;
    }
    return true;
}

/* What only the reply's provider understands. */
static bool take_item(struct revival *revival, const struct event *event) {
    struct str prefix = STR(OPAQUE_ITEM);
    if (!str_starts(event->item.type, prefix)) return true;
    return run_keep(revival->run, str_skip(event->item.type, prefix.len), &revival->dialect) &&
           run_keep(revival->run, event->item.bytes, &revival->opaque);
}

static bool take_result(struct revival *revival, const struct event *event) {
    struct run *run = revival->run;
    if (!end_calls(revival)) return false;
    struct call *call = call_named(run, event->tool_result.call_id);
    if (call && call->state != CALL_ANSWERED) run->calls_answered++;
    if (call) call->state = CALL_ANSWERED;
    struct message message = {.role = MESSAGE_TOOL_RESULT, .error = event->tool_result.error};
    struct message words = {.role = MESSAGE_USER};
    message.tool = tool_of(run, event->tool_result.call_id);
    if (!run_keep(run, event->agent, &message.agent) ||
        !run_keep(run, event->tool_result.call_id, &message.call_id) ||
        !run_keep(run, event->tool_result.result, &message.text)) {
        return false;
    }
    run_add_message(run, message);
    if (!str_equal(message.tool, STR(APPROVAL_TOOL))) return true;
    struct json result;
    struct err e;
    if (json_read(message.text, &result, &e) &&
        json_str(json_find(result, STR("answer")), run->arena, &words.text)) {
        run_add_message(run, words);
    }
    return true;
}

/* A call waits for a human: it stands among those of its reply. */
static bool take_guard(struct revival *revival, const struct event *event) {
    struct run *run = revival->run;
    run->guarded = call_named(run, event->approval.guards);
    run->calls_seq = event->seq;
    return run->guarded && run_keep(run, event->approval.question, &run->question) &&
           run_keep(run, event->approval.call_id, &run->question_id);
}

static bool take_approval(struct revival *revival, const struct event *event) {
    struct run *run = revival->run;
    const struct agent *agent = engine_agent(run->engine, event->agent);
    if (!agent) return false;
    run->agent = agent;
    run->asked_ms = run->started_ms + (uint64_t)event->at_ms;
    if (event->approval.guards.len) return take_guard(revival, event);
    if (!end_reply(revival, event->agent)) return false;
    free(run->calls);
    run->calls = MEM_NEW(struct call);
    run->call_count = run->call_room = 1;
    run->calls[0] = (struct call){.run = run, .state = CALL_PENDING};
    run->asks_human = true;
    run->calls_seq = event->seq;
    buf_clear(&run->reply);
    revival->reply_from = 0;
    revival->calling = false;
    return run_keep(run, event->approval.question, &run->question) &&
           run_keep(run, event->approval.call_id, &run->calls[0].call_id) &&
           run_keep(run, event->approval.tool, &run->calls[0].tool) &&
           run_keep(run, event->approval.args, &run->calls[0].args) &&
           add_call(run, event->agent, event->approval.call_id, STR(APPROVAL_TOOL),
                    event->approval.args);
}

static bool take(const struct event *event, void *ctx) {
    struct revival *revival = ctx;
    struct run *run = revival->run;
    switch (event->kind) {
    case EVENT_STARTED: return take_started(run, event);
    case EVENT_TEXT: return buf_append(&run->reply, event->text.text);
    case EVENT_USAGE:
        run->model_calls++;
        run_count_usage(run, &event->usage);
        return true;
    case EVENT_TOOL_CALL: return take_tool_call(revival, event);
    case EVENT_TOOL_RESULT:
        return is_decision(run, event) ? take_decision(revival, event)
                                       : take_result(revival, event);
    case EVENT_ITEM: return take_item(revival, event);
    case EVENT_APPROVAL: return take_approval(revival, event);
    default: return true;
    }
}

/* --- back into its session ---------------------------------------------------------------- */

/* What was said before this turn comes first. */
static void put_history_first(struct run *run) {
    const struct history *history = run->lease.history;
    size_t before = history->message_count;
    run->seen = history_ref(run->lease.history);
    run->message_room = before + run->message_count + 16;
    run->messages = mem_resize(run->messages, run->message_room * sizeof(struct message));
    memmove(run->messages + before, run->messages, run->message_count * sizeof(struct message));
    history_messages(history, run->messages);
    run->message_count += before;
    run->turn_start = run->record_start = before;
    for (size_t i = 0; i < run->said_count; i++) run->said[i].index += before;
}

void run_revive_over(struct run *run) {
    struct run_host *host = run->host;
    if (!run->reviving) return;
    run->reviving = false;
    if (--host->reviving_count == 0 && host->on_revived) host->on_revived(host->revived_ctx);
}

void run_revive_granted(struct run *run) {
    run->leased = true;
    put_history_first(run);
    run_wait_for_human(run);
    run_revive_over(run);
}

bool run_revive(struct run_host *host, struct engine *engine, uint64_t id,
                const struct store_section *sections, size_t count) {
    uint64_t last_seq = 0;
    if (!walk(sections, count, note_seq, &last_seq)) return false;
    struct run *run = run_new(host, engine, &engine->agents[0], id, last_seq);
    run->state = RUN_WAITING; /* as it was left */
    run->calls_made = true;
    struct revival revival = {.run = run};
    if (!walk(sections, count, take, &revival) || run->ending_seq ||
        !(run->asks_human || run->guarded)) {
        run_discard(run);
        return false;
    }
    run_enter_directory(run);
    run->reviving = true;
    host->reviving_count++;
    struct err e;
    switch (
        session_acquire(run->engine->sessions, &run->name, SESSION_QUEUE, &run->lease, &e)) {
    case SESSION_GRANTED: run_revive_granted(run); break;
    case SESSION_WAITS:
        run->waits = true;
        run_ref(run); /* for the answer that will come */
        break;
    case SESSION_REFUSED: run_fail(run, e.code, err_name(e.code), err_text(&e)); break;
    }
    return true;
}
