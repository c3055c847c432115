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
    *(enum event_kind *)ctx = event->kind;
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

/* A reply is over when its usage is told: what was said becomes a message. */
static bool take_usage(struct run *run, const struct event *event) {
    struct str reply = str_skip(buf_str(&run->reply), run->reply_from);
    struct message message = {.role = MESSAGE_AGENT};
    run->model_calls++;
    run->reply_from = run->reply.len;
    if (str_trim(reply).len == 0) return true;
    if (!run_keep(run, event->agent, &message.agent)) return false;
    if (!run_keep(run, reply, &message.text)) return false;
    run_add_message(run, message);
    return true;
}

static void end_part(struct run *run, struct str agent) {
    if (str_trim(buf_str(&run->reply)).len) {
        event_turn_append(&run->turns, agent, buf_str(&run->reply));
    }
    buf_clear(&run->reply);
    run->reply_from = 0;
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

static bool take_result(struct run *run, const struct event *event) {
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

static bool take_approval(struct run *run, const struct event *event) {
    const struct agent *agent = engine_agent(run->engine, event->agent);
    if (!agent) return false;
    run->agent = agent;
    free(run->calls);
    run->calls = MEM_NEW(struct call);
    run->call_count = run->call_room = 1;
    run->calls[0] = (struct call){.run = run, .state = CALL_PENDING};
    run->asks_human = true;
    run->calls_seq = event->seq;
    buf_clear(&run->reply);
    run->reply_from = 0;
    return run_keep(run, event->approval.question, &run->question) &&
           run_keep(run, event->approval.call_id, &run->calls[0].call_id) &&
           run_keep(run, event->approval.tool, &run->calls[0].tool) &&
           run_keep(run, event->approval.args, &run->calls[0].args) &&
           add_call(run, event->agent, event->approval.call_id, STR(APPROVAL_TOOL),
                    event->approval.args);
}

static bool take(const struct event *event, void *ctx) {
    struct run *run = ctx;
    switch (event->kind) {
    case EVENT_STARTED: return take_started(run, event);
    case EVENT_TEXT: return buf_append(&run->reply, event->text.text);
    case EVENT_USAGE: return take_usage(run, event);
    case EVENT_TOOL_CALL:
        if (str_equal(event->tool_call.tool, STR(TRANSFER_TOOL))) end_part(run, event->agent);
        return add_call(run, event->agent, event->tool_call.call_id, event->tool_call.tool,
                        event->tool_call.args);
    case EVENT_TOOL_RESULT: return take_result(run, event);
    case EVENT_APPROVAL: return take_approval(run, event);
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
    run->turn_start = before;
}

void run_revive_granted(struct run *run) {
    run->reviving = false;
    run->leased = true;
    put_history_first(run);
    run_wait_for_human(run);
}

bool run_revive(struct run_host *host, uint64_t id, const struct store_section *sections,
                size_t count) {
    uint64_t last_seq = 0;
    if (!walk(sections, count, note_seq, &last_seq)) return false;
    struct run *run = run_new(host, &host->engine->agents[0], id, last_seq);
    run->state = RUN_WAITING; /* as it was left */
    run->reviving = run->calls_made = true;
    if (!walk(sections, count, take, run) || run->ending_seq || !run->asks_human) {
        run_discard(run);
        return false;
    }
    run_enter_directory(run);
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
