#include "contract/openai/response_item.h"

#include "base/mem.h"
#include "contract/openai/openai.h"

#include <stdlib.h>

static const char *const prefixes[ITEM_KIND_COUNT] = {
    [ITEM_MESSAGE] = "msg_",      [ITEM_REFUSAL] = "msg_",  [ITEM_REASONING] = "rs_",
    [ITEM_FUNCTION_CALL] = "fc_", [ITEM_MCP_CALL] = "mcp_", [ITEM_APPROVAL] = "mcpr_"};

struct response_item *response_item_add(struct response *response,
                                        enum response_item_kind kind) {
    if (response->item_count == response->item_room) {
        response->item_room = response->item_room ? 2 * response->item_room : 4;
        response->items =
            mem_resize(response->items, response->item_room * sizeof(struct response_item));
    }
    struct response_item *item = &response->items[response->item_count++];
    *item = (struct response_item){.kind = kind, .open = true};
    buf_init(&item->text, COMPLETION_TEXT_MAX_BYTES);
    buf_init(&item->result, COMPLETION_TEXT_MAX_BYTES);
    return item;
}

void response_item_done(struct response_item *item) {
    buf_done(&item->text);
    buf_done(&item->result);
    text_done(&item->call_id);
    text_done(&item->name);
    text_done(&item->who);
}

/* The id of a question is the one that decides it; other items are numbered. */
static void response_item_append_id(const struct response *response, size_t index,
                                    struct buf *out) {
    const struct response_item *item = &response->items[index];
    bool asks = item->kind == ITEM_APPROVAL;
    buf_append(out, str_from(prefixes[item->kind]));
    buf_append_u64(out, response->completion->run);
    buf_append_byte(out, '_');
    if (!asks) buf_append_u64(out, response->after_seq);
    if (!asks) buf_append_byte(out, '_');
    buf_append_u64(out, asks ? item->seq : index);
}

static void response_item_write_id(const struct response *response, size_t index,
                                   const char *key, struct json_writer *json) {
    char room[80];
    struct buf id = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    response_item_append_id(response, index, &id);
    json_member_str(json, key, buf_str(&id));
}

void response_item_write_place(const struct response *response, size_t index,
                               struct json_writer *json) {
    response_item_write_id(response, index, "item_id", json);
    json_member_u64(json, "output_index", index);
}

void response_item_write_part(const struct response_item *item, bool empty,
                              struct json_writer *json) {
    static const char *const types[] = {[ITEM_MESSAGE] = "output_text",
                                        [ITEM_REFUSAL] = "refusal",
                                        [ITEM_REASONING] = "summary_text"};
    json_open_object(json);
    json_member_str(json, "type", str_from(types[item->kind]));
    json_member_str(json, item->kind == ITEM_REFUSAL ? "refusal" : "text",
                    empty ? STR_EMPTY : buf_str(&item->text));
    if (item->kind == ITEM_MESSAGE) {
        json_member_array(json, "annotations");
        json_close(json);
        json_member_array(json, "logprobs");
        json_close(json);
    }
    json_close(json);
}

static void write_parts(const struct response_item *item, const char *key, bool empty,
                        struct json_writer *json) {
    json_member_array(json, key);
    if (!empty) response_item_write_part(item, false, json);
    json_close(json);
}

static void write_message(const struct response_item *item, bool empty,
                          struct json_writer *json) {
    json_member_str(json, "type", STR("message"));
    json_member_str(json, "role", STR("assistant"));
    write_parts(item, "content", empty, json);
}

static void write_call(const struct response_item *item, bool empty, struct json_writer *json) {
    json_member_str(json, "name", text_str(item->name));
    json_member_str(json, "arguments", empty ? STR_EMPTY : buf_str(&item->text));
}

static void write_mcp_call(const struct response_item *item, bool empty,
                           struct json_writer *json) {
    bool answered = !item->open && !item->failed;
    json_member_str(json, "type", STR("mcp_call"));
    json_member_str(json, "server_label", text_str(item->who));
    write_call(item, empty, json);
    json_member_null(json, "approval_request_id");
    openai_member(json, "output", answered, buf_str(&item->result));
    openai_member(json, "error", item->failed, buf_str(&item->result));
}

static void write_approval(const struct response_item *item, struct json_writer *json) {
    json_member_str(json, "type", STR("mcp_approval_request"));
    json_member_str(json, "server_label", text_str(item->who));
    write_call(item, false, json);
}

void response_item_write(const struct response *response, size_t index, bool empty,
                         struct json_writer *json) {
    const struct response_item *item = &response->items[index];
    json_open_object(json);
    response_item_write_id(response, index, "id", json);
    switch (item->kind) {
    case ITEM_MESSAGE:
    case ITEM_REFUSAL: write_message(item, empty, json); break;
    case ITEM_REASONING:
        json_member_str(json, "type", STR("reasoning"));
        write_parts(item, "summary", empty, json);
        break;
    case ITEM_FUNCTION_CALL:
        json_member_str(json, "type", STR("function_call"));
        json_member_str(json, "call_id", text_str(item->call_id));
        write_call(item, empty, json);
        break;
    case ITEM_MCP_CALL: write_mcp_call(item, empty, json); break;
    case ITEM_APPROVAL: write_approval(item, json); break;
    case ITEM_KIND_COUNT: break;
    }
    if (item->kind != ITEM_APPROVAL)
        json_member_str(json, "status",
                        item->open     ? STR("in_progress")
                        : item->failed ? STR("failed")
                                       : STR("completed"));
    json_close(json);
}
