#include "contract/crawbl/project.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "proto/runtime.pb.h"

#include <stdlib.h>

#define ERROR_MARK STR("ERROR:")
#define MODEL_MAX_BYTES 1024
#define TURNS_MAX 1024

/* One ConverseEvent whose only member, number `member`, is `message` of type `table`. */
static void send_event(struct rpc_call *call, uint32_t member, const struct pb_message *table,
                       const void *message) {
    size_t len = pb_encoded_len(table, message);
    struct buf *out = rpc_message_begin(call);
    char *at = buf_room(out, pb_tag_len(member) + pb_varint_len(len));
    if (at) {
        buf_grew(out, (size_t)(pb_put_head(at, member, len) - at));
        pb_encode(table, message, out);
    }
    rpc_message_end(call);
}

/* Most of all messages are these: chunk and thinking have the same two fields. */
static void send_text(struct rpc_call *call, uint32_t member, struct str agent,
                      struct str text) {
    size_t inner = pb_str_len(1, agent) + pb_str_len(2, text);
    size_t len = pb_bytes_len(member, inner);
    struct buf *out = rpc_message_begin(call);
    char *at = buf_room(out, len);
    if (at) {
        at = pb_put_head(at, member, inner);
        at = pb_put_str(at, 1, agent);
        pb_put_str(at, 2, text);
        buf_grew(out, len);
    }
    rpc_message_end(call);
}

static void send_chunk(struct rpc_call *call, struct str agent, struct str text) {
    send_text(call, CRAWBL_CONVERSE_EVENT_CHUNK, agent, text);
}

static void send_tool_call(struct rpc_call *call, struct str agent, struct str tool,
                           struct str args, struct str call_id) {
    struct crawbl_tool_call_event event = {agent, tool, args, call_id};
    send_event(call, CRAWBL_CONVERSE_EVENT_TOOL_CALL, &crawbl_tool_call_event_table, &event);
}

/* Unknown is 0 on this wire (K21). */
static int32_t tokens(int64_t count) {
    if (count < 0) return 0;
    return count > INT32_MAX ? INT32_MAX : (int32_t)count;
}

static void note_model(struct converse_shown *shown, struct str model) {
    size_t len = utf8_cut(model, sizeof(shown->model) - 1);
    if (len) memcpy(shown->model, model.at, len);
    shown->model[len] = '\0';
}

/* Whatever the message has a field for, by its name. */
static void fill_counts(struct crawbl_usage_event *out, const struct event_usage *usage) {
    const struct pb_message *message = &crawbl_usage_event_table;
    for (size_t i = 0; i < message->field_count; i++) {
        const struct pb_field *to = &message->fields[i];
        const struct usage_field *from = usage_field_find(str_from(to->name));
        if (!from || to->kind != PB_INT32) continue;
        int32_t count = tokens(usage_get(usage, from));
        memcpy((char *)out + to->at, &count, sizeof(count));
    }
}

static void send_usage(struct rpc_call *call, const struct event *event,
                       struct converse_shown *shown) {
    const struct event_usage *usage = &event->usage;
    note_model(shown, usage->model);
    struct crawbl_usage_event out = {
        .agent_id = event->agent,
        .model = usage->model,
    };
    fill_counts(&out, usage);
    out.call_sequence = shown->usages++;
    send_event(call, CRAWBL_CONVERSE_EVENT_USAGE, &crawbl_usage_event_table, &out);
}

/* --- done --------------------------------------------------------------------------------- */

static void send_done(struct rpc_call *call, struct str model, const struct crawbl_turn *turns,
                      size_t count) {
    struct crawbl_done_event done = {model, turns, count};
    send_event(call, CRAWBL_CONVERSE_EVENT_DONE, &crawbl_done_event_table, &done);
}

/* A model may be named anything, but a success must not read as a failure (K10). */
static struct str safe_model(struct str model) {
    while (str_starts(str_trim(model), ERROR_MARK)) {
        model = str_skip(str_trim(model), ERROR_MARK.len);
    }
    return model;
}

static void send_success(struct rpc_call *call, const struct event *event) {
    struct crawbl_turn few[8], *turns = few;
    size_t count = 0;
    struct event_turn turn;
    for (struct str rest = event->done.turns; event_turn_next(&rest, &turn);) count++;
    if (count > ARRAY_LEN(few)) turns = mem_zero(count, sizeof(*turns));
    struct str rest = event->done.turns;
    for (size_t i = 0; i < count && event_turn_next(&rest, &turn); i++) {
        turns[i] = (struct crawbl_turn){turn.agent, turn.text};
    }
    send_done(call, safe_model(event->done.model), turns, count);
    if (turns != few) free(turns);
}

static void send_failure(struct rpc_call *call, struct str agent, enum err_code code,
                         struct str message, const struct converse_view *view) {
    struct buf model;
    buf_init(&model, MODEL_MAX_BYTES + 64);
    buf_printf(&model, "ERROR: %s: ", err_kinds[code].name);
    buf_append(&model, str_head(message, utf8_cut(message, MODEL_MAX_BYTES)));
    if (view->errors_as_text) send_chunk(call, agent, str_skip(buf_str(&model), 7));
    send_done(call, buf_str(&model), NULL, 0);
    buf_done(&model);
}

/* A question ends the turn on this wire: the session's next message answers it. */
static void send_question(struct rpc_call *call, const struct event *event,
                          const struct converse_shown *shown) {
    send_tool_call(call, event->agent, STR("request_approval"), event->approval.args,
                   event->approval.call_id);
    if (shown->seam.speaker_count) send_chunk(call, event->agent, STR(SEAM_TEXT));
    send_chunk(call, event->agent, event->approval.question);
    struct crawbl_turn turn = {event->agent, event->approval.question};
    send_done(call, safe_model(str_from(shown->model)), &turn, 1);
}

void converse_refuse(struct rpc_call *call, const struct err *why,
                     const struct converse_view *view) {
    send_failure(call, STR("manager"), why->code, err_text(why), view);
}

void converse_project(struct rpc_call *call, const struct event *event,
                      const struct converse_view *view, struct converse_shown *shown) {
    if (seam_before(&shown->seam, event, SEAM_OF_SPEAKER))
        send_chunk(call, event->agent, STR(SEAM_TEXT));
    switch (event->kind) {
    case EVENT_TEXT: send_chunk(call, event->agent, event->text.text); break;
    case EVENT_THINKING:
        if (!view->shows_thinking) break;
        send_text(call, CRAWBL_CONVERSE_EVENT_THINKING, event->agent, event->thinking.text);
        break;
    case EVENT_TOOL_CALL:
        send_tool_call(call, event->agent, event->tool_call.tool, event->tool_call.args,
                       event->tool_call.call_id);
        break;
    case EVENT_TOOL_RESULT: {
        struct crawbl_tool_result_event result = {
            event->tool_result.call_id, event->tool_result.result, event->tool_result.error,
            event->tool_result.message};
        send_event(call, CRAWBL_CONVERSE_EVENT_TOOL_RESULT, &crawbl_tool_result_event_table,
                   &result);
        break;
    }
    case EVENT_USAGE: send_usage(call, event, shown); break;
    case EVENT_APPROVAL: send_question(call, event, shown); break;
    case EVENT_DONE: send_success(call, event); break;
    case EVENT_FAILED:
        send_failure(call, event->agent, event->failed.code, event->failed.message, view);
        break;
    case EVENT_CANCELLED:
        send_failure(call, event->agent, ERR_CANCELLED, event->cancelled.message, view);
        break;
    case EVENT_STARTED:
    case EVENT_STEP:
    case EVENT_AUDIO:
    case EVENT_ITEM:
    case EVENT_KIND_COUNT: break; /* not on this wire */
    }
}
