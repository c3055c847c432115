/* response_fold: the events of a run become items, and the frames of a stream.
 *
 *     TEXT ...          message opens ─▶ deltas ─▶ closed by the next event that is no text
 *     THINKING ...      likewise, a reasoning
 *     TOOL_CALL         of the caller's: function_call, complete at once
 *                       of the agent's: mcp_call, open until its TOOL_RESULT
 *     APPROVAL          message with the question; about a call, mcp_approval_request too
 *     FAILED            of a refusal: a message that says so
 *     DONE, FAILED ...  response.completed, response.incomplete or response.failed */
#include "contract/openai/response_item.h"

/* --- frames ------------------------------------------------------------------------------- */

/* Begin a frame. False: none is wanted. */
static bool frame_open(struct response *response, const char *type, struct json_writer *json) {
    uint64_t number = response->sequence++;
    if (!response->out || number < response->first_sequence) return false;
    buf_append(response->out, STR("event: "));
    buf_append(response->out, str_from(type));
    buf_append(response->out, STR("\ndata: "));
    *json = json_writer(response->out);
    json_open_object(json);
    json_member_str(json, "type", str_from(type));
    json_member_u64(json, "sequence_number", number);
    return true;
}

static void frame_close(struct response *response, struct json_writer *json) {
    json_close(json);
    buf_append(response->out, STR("\n\n"));
}

static void frame_response(struct response *response, const char *type,
                           const struct event *last) {
    struct json_writer json;
    if (!frame_open(response, type, &json)) return;
    json_key(&json, STR("response"));
    response_write(response, last, &json);
    frame_close(response, &json);
}

static void frame_item(struct response *response, const char *type, size_t index, bool empty) {
    struct json_writer json;
    if (!frame_open(response, type, &json)) return;
    json_member_u64(&json, "output_index", index);
    json_key(&json, STR("item"));
    response_item_write(response, index, empty, &json);
    frame_close(response, &json);
}

/* A frame about an item with one more member, or none (key NULL). */
static void frame_member(struct response *response, const char *type, size_t index,
                         const char *key, struct str text) {
    struct json_writer json;
    if (!frame_open(response, type, &json)) return;
    response_item_write_place(response, index, &json);
    if (key) json_member_str(&json, key, text);
    frame_close(response, &json);
}

/* The names of the frames of an item whose text grows. */
static const struct texts {
    const char *part_index, *part_added, *delta, *done, *part_done;
} texts_of[] = {
    [ITEM_MESSAGE] = {"content_index", "response.content_part.added",
                      "response.output_text.delta", "response.output_text.done",
                      "response.content_part.done"},
    [ITEM_REFUSAL] = {"content_index", "response.content_part.added", "response.refusal.delta",
                      "response.refusal.done", "response.content_part.done"},
    [ITEM_REASONING] = {"summary_index", "response.reasoning_summary_part.added",
                        "response.reasoning_summary_text.delta",
                        "response.reasoning_summary_text.done",
                        "response.reasoning_summary_part.done"},
};

static void frame_part(struct response *response, const char *type, size_t index, bool empty) {
    struct json_writer json;
    const struct response_item *item = &response->items[index];
    if (!frame_open(response, type, &json)) return;
    response_item_write_place(response, index, &json);
    json_member_u64(&json, texts_of[item->kind].part_index, 0);
    json_key(&json, STR("part"));
    response_item_write_part(item, empty, &json);
    frame_close(response, &json);
}

static void frame_text(struct response *response, const char *type, size_t index,
                       const char *key, struct str text) {
    struct json_writer json;
    const struct response_item *item = &response->items[index];
    if (!frame_open(response, type, &json)) return;
    response_item_write_place(response, index, &json);
    json_member_u64(&json, texts_of[item->kind].part_index, 0);
    json_member_str(&json, key, text);
    if (item->kind == ITEM_MESSAGE) {
        json_member_array(&json, "logprobs");
        json_close(&json);
    }
    frame_close(response, &json);
}

/* --- items that grow ---------------------------------------------------------------------- */

static void close_text(struct response *response) {
    if (!response->item_count) return;
    size_t index = response->item_count - 1;
    struct response_item *item = &response->items[index];
    if (!item->open || item->kind > ITEM_REASONING) return;
    frame_text(response, texts_of[item->kind].done, index,
               item->kind == ITEM_REFUSAL ? "refusal" : "text", buf_str(&item->text));
    frame_part(response, texts_of[item->kind].part_done, index, false);
    item->open = false;
    frame_item(response, "response.output_item.done", index, false);
}

static bool grows(const struct response *response, enum response_item_kind kind) {
    const struct response_item *item =
        response->item_count ? &response->items[response->item_count - 1] : NULL;
    return item && item->open && item->kind == kind;
}

static void add_text(struct response *response, enum response_item_kind kind, struct str text) {
    if (!grows(response, kind)) {
        close_text(response);
        response_item_add(response, kind);
        frame_item(response, "response.output_item.added", response->item_count - 1, true);
        frame_part(response, texts_of[kind].part_added, response->item_count - 1, true);
    }
    size_t index = response->item_count - 1;
    buf_append(&response->items[index].text, text);
    frame_text(response, texts_of[kind].delta, index, "delta", text);
}

void response_fold_text(struct response *response, struct str text) {
    if (!response->completion->shaped) add_text(response, ITEM_MESSAGE, text);
}

/* --- calls -------------------------------------------------------------------------------- */

static size_t add_call(struct response *response, enum response_item_kind kind,
                       const struct event *event) {
    struct response_item *item = response_item_add(response, kind);
    item->call_id = text_copy(event->tool_call.call_id);
    item->name = text_copy(event->tool_call.tool);
    item->who = text_copy(event->agent);
    buf_append(&item->text, event->tool_call.args);
    frame_item(response, "response.output_item.added", response->item_count - 1, true);
    return response->item_count - 1;
}

static void take_callers_call(struct response *response, const struct event *event) {
    size_t index = add_call(response, ITEM_FUNCTION_CALL, event);
    struct response_item *item = &response->items[index];
    struct json_writer json;
    frame_member(response, "response.function_call_arguments.delta", index, "delta",
                 buf_str(&item->text));
    if (frame_open(response, "response.function_call_arguments.done", &json)) {
        response_item_write_place(response, index, &json);
        json_member_str(&json, "name", text_str(item->name));
        json_member_str(&json, "arguments", buf_str(&item->text));
        frame_close(response, &json);
    }
    item->open = false;
    frame_item(response, "response.output_item.done", index, false);
}

static void take_own_call(struct response *response, const struct event *event) {
    size_t index = add_call(response, ITEM_MCP_CALL, event);
    struct str args = buf_str(&response->items[index].text);
    frame_member(response, "response.mcp_call.in_progress", index, NULL, STR_EMPTY);
    frame_member(response, "response.mcp_call_arguments.delta", index, "delta", args);
    frame_member(response, "response.mcp_call_arguments.done", index, "arguments", args);
}

static void take_result(struct response *response, const struct event *event) {
    for (size_t i = 0; i < response->item_count; i++) {
        struct response_item *item = &response->items[i];
        if (item->kind != ITEM_MCP_CALL || !item->open ||
            !str_equal(text_str(item->call_id), event->tool_result.call_id))
            continue;
        item->failed = event->tool_result.error;
        item->open = false;
        buf_append(&item->result,
                   item->failed ? event->tool_result.message : event->tool_result.result);
        frame_member(response,
                     item->failed ? "response.mcp_call.failed" : "response.mcp_call.completed",
                     i, NULL, STR_EMPTY);
        frame_item(response, "response.output_item.done", i, false);
        return;
    }
}

static void take_approval(struct response *response, const struct event *event) {
    struct buf question;
    buf_init(&question, COMPLETION_TEXT_MAX_BYTES);
    completion_append_question(event, &question);
    add_text(response, ITEM_MESSAGE, buf_str(&question));
    buf_done(&question);
    close_text(response);
    if (!event->approval.tool.len) return;
    struct response_item *item = response_item_add(response, ITEM_APPROVAL);
    item->name = text_copy(event->approval.tool);
    item->who = text_copy(event->agent);
    item->seq = event->seq;
    item->open = false;
    buf_append(&item->text, event->approval.args.len ? event->approval.args : STR("{}"));
    frame_item(response, "response.output_item.added", response->item_count - 1, false);
    frame_item(response, "response.output_item.done", response->item_count - 1, false);
}

/* --- the beginning and the end ------------------------------------------------------------ */

static void begin(struct response *response) {
    if (response->begun) return;
    response->begun = true;
    frame_response(response, "response.created", NULL);
    frame_response(response, "response.in_progress", NULL);
}

/* Of an answer with a shape only the JSON is shown, when it has been checked. */
static void take_shaped(struct response *response, const struct event *event) {
    struct buf text;
    if (!response->completion->shaped || response->completion->call_count) return;
    buf_init(&text, COMPLETION_TEXT_MAX_BYTES);
    completion_append_text(response->completion, event, &text);
    if (text.len) add_text(response, ITEM_MESSAGE, buf_str(&text));
    buf_done(&text);
}

static void end(struct response *response, const struct event *event) {
    bool filtered = completion_is_filtered(event);
    bool cut = event->kind == EVENT_DONE && response->completion->cut &&
               !response->completion->call_count;
    bool failed = event->kind == EVENT_FAILED || event->kind == EVENT_CANCELLED;
    const char *type = filtered || cut ? "response.incomplete"
                       : failed        ? "response.failed"
                                       : "response.completed";
    if (event->kind == EVENT_DONE) take_shaped(response, event);
    if (event->kind == EVENT_APPROVAL) take_approval(response, event);
    if (filtered) add_text(response, ITEM_REFUSAL, completion_refusal(event));
    close_text(response);
    frame_response(response, type, event);
}

void response_fail(struct response *response, struct str code, struct str message) {
    const struct event cut = {
        .kind = EVENT_FAILED,
        .failed = {.code = ERR_UNAVAILABLE, .reason = code, .message = message}};
    begin(response);
    end(response, &cut);
}

static void take_started(struct response *response, const struct event *event) {
    text_done(&response->options);
    response->options = text_copy(event->started.options);
}

void response_fold(struct response *response, const struct event *event, bool shows_thinking) {
    if (event->kind == EVENT_STARTED) take_started(response, event);
    begin(response);
    switch (event->kind) {
    case EVENT_STARTED: break;
    case EVENT_TEXT: response_fold_text(response, event->text.text); break;
    case EVENT_THINKING:
        if (shows_thinking) add_text(response, ITEM_REASONING, event->thinking.text);
        break;
    case EVENT_TOOL_CALL:
        close_text(response);
        if (event->tool_call.callers) {
            take_callers_call(response, event);
        } else {
            take_own_call(response, event);
        }
        break;
    case EVENT_TOOL_RESULT: take_result(response, event); break;
    case EVENT_USAGE: close_text(response); break; /* a reply is over */
    case EVENT_APPROVAL:
    case EVENT_DONE:
    case EVENT_FAILED:
    case EVENT_CANCELLED: end(response, event); break;
    case EVENT_STEP:
    case EVENT_AUDIO:
    case EVENT_ITEM:
    case EVENT_KIND_COUNT: break; /* not shown */
    }
}
