#include "contract/crawbl/project.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "proto/runtime.pb.h"
#include "wire/grpc.h"

#include <assert.h>
#include <stdlib.h>

#define ERROR_MARK STR("ERROR:")
#define MODEL_MAX_BYTES 1024
#define NOTED_MODEL_BYTES 255 /* of the one that a question names */
#define TURNS_MAX 1024

void converse_shown_init(struct converse_shown *shown) {
    *shown = (struct converse_shown){.usages = 0};
    buf_init(&shown->model, NOTED_MODEL_BYTES);
}

void converse_shown_done(struct converse_shown *shown) {
    buf_done(&shown->model);
}

/* One ConverseEvent whose only member, number `member`, is `message` of type `table`. */
static void project_send_event(struct rpc_call *call, uint32_t member,
                               const struct pb_message *table, const void *message) {
    pb_encode_member(member, table, message, rpc_message_begin(call));
    rpc_message_end(call);
}

/* Most messages are of these two kinds: chunk and thinking have the same fields. */
#define TEXT_HEAD_BYTES (GRPC_PREFIX_BYTES + 3 * (1 + 5)) /* tags and lengths, at most */
#define TEXT_SLACK_BYTES 48                               /* written after a message, at most */
#define AGENT_BYTES 32

/* The agent's field, as each message of this agent has it. Most are so short that copying all of
 * `bytes` costs less than asking. */
struct agent_field {
    struct str agent; /* whose it is, borrowed */
    size_t len;
    char bytes[AGENT_BYTES]; /* unless it is longer */
};

static_assert(CRAWBL_CONVERSE_EVENT_CHUNK <= 15 && CRAWBL_CONVERSE_EVENT_THINKING <= 15,
              "a tag of one byte");

static void agent_field_set(struct agent_field *field, struct str agent) {
    field->agent = agent;
    field->len = pb_str_len(1, agent);
    if (field->len <= sizeof(field->bytes)) pb_put_str(field->bytes, 1, agent);
}

/* Returns where the message ends; it takes at most TEXT_HEAD_BYTES more than both texts, and
 * TEXT_SLACK_BYTES after it are overwritten. */
static inline __attribute__((always_inline)) char *
put_text(char *at, uint32_t member, const struct agent_field *field, struct str text) {
    size_t inner = field->len + 2 + text.len;
    if (text.len && inner <= 0x7F && field->len <= sizeof(field->bytes)) {
        at = grpc_put_prefix(at, 2 + inner); /* each length is one byte, as nearly always */
        at[0] = (char)(member << 3 | PB_WIRE_BYTES);
        at[1] = (char)inner;
        memcpy(at + 2, field->bytes, sizeof(field->bytes));
        at += 2 + field->len;
        at[0] = 2 << 3 | PB_WIRE_BYTES;
        at[1] = (char)text.len;
        memcpy(at + 2, text.at, text.len);
        return at + 2 + text.len;
    }
    inner = field->len + pb_str_len(2, text);
    at = grpc_put_prefix(at, pb_bytes_len(member, inner));
    at = pb_put_head(at, member, inner);
    if (field->len <= sizeof(field->bytes)) {
        memcpy(at, field->bytes, sizeof(field->bytes));
        at += field->len;
    } else {
        at = pb_put_str(at, 1, field->agent);
    }
    return pb_put_str(at, 2, text);
}

static void send_text(struct rpc_call *call, uint32_t member, struct str agent,
                      struct str text) {
    struct agent_field field;
    char *room =
        rpc_messages_room(call, TEXT_HEAD_BYTES + agent.len + text.len + TEXT_SLACK_BYTES);
    agent_field_set(&field, agent);
    if (room) rpc_messages_put(call, (size_t)(put_text(room, member, &field, text) - room));
}

static void send_chunk(struct rpc_call *call, struct str agent, struct str text) {
    send_text(call, CRAWBL_CONVERSE_EVENT_CHUNK, agent, text);
}

static void send_tool_call(struct rpc_call *call, struct str agent, struct str tool,
                           struct str args, struct str call_id) {
    struct crawbl_tool_call_event event = {agent, tool, args, call_id};
    project_send_event(call, CRAWBL_CONVERSE_EVENT_TOOL_CALL, &crawbl_tool_call_event_table,
                       &event);
}

/* Counts are 0 in this protocol when they are unknown (K21). */
static int32_t tokens(int64_t count) {
    if (count < 0) return 0;
    return count > INT32_MAX ? INT32_MAX : (int32_t)count;
}

static void note_model(struct converse_shown *shown, struct str model) {
    shown->answered = true;
    buf_clear(&shown->model);
    buf_append(&shown->model, str_head(model, utf8_cut(model, NOTED_MODEL_BYTES)));
}

static void send_usage(struct rpc_call *call, const struct event *event,
                       struct converse_shown *shown) {
    const struct event_usage *usage = &event->usage;
    note_model(shown, usage->model);
    const struct crawbl_usage_event out = {
        .agent_id = event->agent,
        .model = usage->model,
        .prompt_tokens = tokens(usage->prompt),
        .completion_tokens = tokens(usage->completion),
        .total_tokens = tokens(usage->total),
        .tool_use_prompt_tokens = tokens(usage->tool_use),
        .thoughts_tokens = tokens(usage->thoughts),
        .cached_tokens = tokens(usage->cached),
        .call_sequence = shown->usages++,
    };
    project_send_event(call, CRAWBL_CONVERSE_EVENT_USAGE, &crawbl_usage_event_table, &out);
}

/* --- done --------------------------------------------------------------------------------- */

static void send_done(struct rpc_call *call, struct str model, const struct crawbl_turn *turns,
                      size_t count) {
    struct crawbl_done_event done = {model, turns, count};
    project_send_event(call, CRAWBL_CONVERSE_EVENT_DONE, &crawbl_done_event_table, &done);
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

/* A question ends the turn in this protocol: the session's next message answers it. */
static void send_question(struct rpc_call *call, const struct event *event,
                          const struct converse_shown *shown) {
    send_tool_call(call, event->agent, STR("request_approval"), event->approval.args,
                   event->approval.call_id);
    if (shown->seam.speaker_count) send_chunk(call, event->agent, STR(SEAM_TEXT));
    send_chunk(call, event->agent, event->approval.question);
    struct crawbl_turn turn = {event->agent, event->approval.question};
    send_done(call, safe_model(shown->answered ? buf_str(&shown->model) : STR_EMPTY), &turn, 1);
}

void converse_refuse(struct rpc_call *call, const struct err *why,
                     const struct converse_view *view) {
    send_failure(call, STR("manager"), why->code, err_text(why), view);
}

/* Events other than text. */
static __attribute__((noinline)) void project_other(struct rpc_call *call,
                                                    const struct event *event,
                                                    const struct converse_view *view,
                                                    struct converse_shown *shown) {
    switch (event->kind) {
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
        project_send_event(call, CRAWBL_CONVERSE_EVENT_TOOL_RESULT,
                           &crawbl_tool_result_event_table, &result);
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
    case EVENT_TEXT:
    case EVENT_STARTED:
    case EVENT_STEP:
    case EVENT_AUDIO:
    case EVENT_ITEM:
    case EVENT_KIND_COUNT: break; /* not in this protocol */
    }
}

void converse_project(struct rpc_call *call, const struct event *event,
                      const struct converse_view *view, struct converse_shown *shown) {
    if (seam_before(&shown->seam, event, SEAM_OF_SPEAKER))
        send_chunk(call, event->agent, STR(SEAM_TEXT));
    if (event->kind == EVENT_TEXT)
        send_chunk(call, event->agent, event->text.text);
    else
        project_other(call, event, view, shown);
}

/* The text event at the front of some bytes, the message made of it, and how many bytes of each
 * stand before the text. */
struct chunk_pair {
    const char *event, *message;
    size_t event_head, message_head, text_len;
};

/* The events of one reply mostly differ only in their texts. After one of them, take those that
 * follow with the same bytes before a text of the same length: the same stands before it in their
 * messages. Returns where the last one ends. */
static char *put_same_chunks(char *at, const struct chunk_pair *first, struct str *texts) {
    char head[TEXT_SLACK_BYTES];
    const struct chunk_pair same = *first;
    size_t step = same.event_head + same.text_len;
    if (same.message_head > sizeof(head)) return at;
    memcpy(head, same.message, same.message_head);
    const char *from = texts->at, *end = from + texts->len;
    const char *stop = from + texts->len / step * step;
    for (; from != stop && str_same(from, same.event, same.event_head); from += step) {
        memcpy(at, head, sizeof(head));
        at += same.message_head;
        memcpy(at, from + same.event_head, same.text_len);
        at += same.text_len;
    }
    *texts = str_of(from, (size_t)(end - from));
    return at;
}

/* The chunks of all texts, at `at`; returns where they end. */
static char *put_chunks(char *at, struct str texts) {
    struct agent_field field = {.agent = STR_EMPTY};
    struct str agent, text;
    for (;;) {
        struct chunk_pair pair = {.event = texts.at, .message = at};
        if (!event_next_text(&texts, &agent, &text)) break;
        if (!str_equal(agent, field.agent)) agent_field_set(&field, agent);
        at = put_text(at, CRAWBL_CONVERSE_EVENT_CHUNK, &field, text);
        pair.text_len = text.len;
        pair.event_head = (size_t)(text.at - pair.event);
        pair.message_head = (size_t)(at - pair.message) - text.len;
        at = put_same_chunks(at, &pair, &texts);
    }
    assert(texts.len == 0);
    return at;
}

/* A stretch of texts contains no seam, because other events come between two replies. */
void converse_project_texts(struct rpc_call *call, struct str texts, size_t count,
                            struct converse_shown *shown) {
    struct event event = {.kind = EVENT_TEXT};
    struct str rest = texts, text;
    bool begun = event_take_text(&rest, &event.agent, &text);
    assert(begun);
    if (begun && seam_before(&shown->seam, &event, SEAM_OF_SPEAKER))
        send_chunk(call, event.agent, STR(SEAM_TEXT));

    size_t most = texts.len + count * TEXT_HEAD_BYTES + TEXT_SLACK_BYTES;
    char *room = rpc_messages_room(call, most);
    if (room) rpc_messages_put(call, (size_t)(put_chunks(room, texts) - room));
}
