/* responses_request: the body of POST /v1/responses.
 *
 * Its items are rewritten as messages of Chat Completions, which conversation/import.h
 * reads: one reader decides what a message, a picture, a call and a result are. The calls that the
 * agent made itself come back with a list that a client keeps, and are its next prompt's, too; its
 * reasoning is not. */
#include "contract/openai/responses_request.h"

#define LIST_MAX_BYTES (64 * MIB)

enum responses_key {
    MODEL,
    INPUT,
    INSTRUCTIONS,
    STREAM,
    TEXT_,
    TOOLS,
    TOOL_CHOICE,
    USER,
    SAFETY_IDENTIFIER,
    METADATA,
    PREVIOUS,
    STORE,
    BACKGROUND,
    CONVERSATION,
    PROMPT,
    RESPONSES_KEYS
};

static const struct str keys[RESPONSES_KEYS] = {
    STR_INIT("model"),
    STR_INIT("input"),
    STR_INIT("instructions"),
    STR_INIT("stream"),
    STR_INIT("text"),
    STR_INIT("tools"),
    STR_INIT("tool_choice"),
    STR_INIT("user"),
    STR_INIT("safety_identifier"),
    STR_INIT("metadata"),
    STR_INIT("previous_response_id"),
    STR_INIT("store"),
    STR_INIT("background"),
    STR_INIT("conversation"),
    STR_INIT("prompt"),
};

static const char *const once[] = {"model", "input", "instructions",         "stream",
                                   "text",  "tools", "previous_response_id", NULL};

#define AT(member) offsetof(struct model_options, member)

static const struct caller_option reply_options[] = {
    {"max_output_tokens", CALLER_LONGEST, 0, 0, 0},
    {"temperature", CALLER_NUMBER, AT(temperature), 0, 2},
    {"top_p", CALLER_NUMBER, AT(top_p), 0, 1},
};

/* --- items as messages -------------------------------------------------------------------- */

static bool refuse_item(struct request_reading *reading, size_t index, const char *why) {
    return request_refuse(reading, "input", "item %zu: %s", index, why);
}

/* The member `name` of `item`, if there is one, under another key. */
static void write_member(struct json_writer *json, const char *key, struct json item,
                         struct str name) {
    struct json value = json_find(item, name);
    if (value.kind != JSON_NONE) json_member_raw(json, key, value.raw);
}

static bool write_said(struct request_reading *reading, size_t index, struct json item,
                       struct json_writer *json) {
    (void)reading;
    (void)index;
    json_open_object(json);
    write_member(json, "role", item, STR("role"));
    write_member(json, "content", item, STR("content"));
    json_close(json);
    return true;
}

/* `id`: the member with the id that its result names. */
static void write_call_as_message(struct json item, struct str id, struct json_writer *json) {
    json_open_object(json);
    json_member_str(json, "role", STR("assistant"));
    json_member_array(json, "tool_calls");
    json_open_object(json);
    write_member(json, "id", item, id);
    json_member_object(json, "function");
    write_member(json, "name", item, STR("name"));
    write_member(json, "arguments", item, STR("arguments"));
    json_close(json);
    json_close(json);
    json_close(json);
    json_close(json);
}

static bool write_function_call(struct request_reading *reading, size_t index, struct json item,
                                struct json_writer *json) {
    (void)reading;
    (void)index;
    write_call_as_message(item, STR("call_id"), json);
    return true;
}

static void write_result_as_message(struct json id, struct json text,
                                    struct json_writer *json) {
    json_open_object(json);
    json_member_str(json, "role", STR("tool"));
    json_member_raw(json, "tool_call_id", id.raw);
    json_member_raw(json, "content", text.raw);
    json_close(json);
}

/* A call that the agent made itself, in a list that a client keeps: the call, and what came of it. One
 * that was not answered is left out, as in every later turn. */
static bool write_mcp_call(struct request_reading *reading, size_t index, struct json item,
                           struct json_writer *json) {
    struct json id = json_find(item, STR("id")), result = json_find(item, STR("output"));
    if (result.kind != JSON_STRING) result = json_find(item, STR("error"));
    if (result.kind != JSON_STRING) return true;
    if (id.kind != JSON_STRING) return refuse_item(reading, index, "an mcp_call has an id");
    write_call_as_message(item, STR("id"), json);
    write_result_as_message(id, result, json);
    return true;
}

static bool write_call_output(struct request_reading *reading, size_t index, struct json item,
                              struct json_writer *json) {
    struct json output = json_find(item, STR("output"));
    if (output.kind != JSON_STRING && output.kind != JSON_ARRAY)
        return refuse_item(reading, index, "output must be a string or a list of parts");
    json_open_object(json);
    json_member_str(json, "role", STR("tool"));
    write_member(json, "tool_call_id", item, STR("call_id"));
    json_member_raw(json, "content", output.raw);
    json_close(json);
    return true;
}

/* "mcpr_<run>_<seq>" */
static bool take_question(struct request_reading *reading, struct json item) {
    struct str id, seq;
    if (!json_str(json_find(item, STR("approval_request_id")), reading->arena, &id) ||
        !str_starts(id, STR("mcpr_")))
        return false;
    struct str run = str_split(str_skip(id, STR("mcpr_").len), '_', &seq);
    return seq.at && str_to_u64(run, &reading->approval_run) &&
           str_to_u64(seq, &reading->approval_seq) && reading->approval_run &&
           reading->approval_seq;
}

/* A person's decision is the message that a waiting run reads. */
static bool write_decision(struct request_reading *reading, size_t index, struct json item,
                           struct json_writer *json) {
    bool approves = false;
    struct json reason = json_find(item, STR("reason"));
    struct buf words;
    if (!json_bool(json_find(item, STR("approve")), &approves))
        return refuse_item(reading, index, "approve must be true or false");
    if (!take_question(reading, item))
        return refuse_item(reading, index,
                           "approval_request_id must be the id of an mcp_approval_request");
    buf_init(&words, reason.raw.len + KIB);
    struct json_writer decision = json_writer(&words);
    json_open_object(&decision);
    json_member_str(&decision, "decision", approves ? STR("approve") : STR("refuse"));
    if (reason.kind == JSON_STRING) json_member_raw(&decision, "reason", reason.raw);
    json_close(&decision);
    json_open_object(json);
    json_member_str(json, "role", STR("user"));
    json_member_str(json, "content", buf_str(&words));
    json_close(json);
    buf_done(&words);
    return true;
}

static const struct {
    struct str type;
    /* NULL: it says nothing. */
    bool (*write)(struct request_reading *reading, size_t index, struct json item,
                  struct json_writer *json);
} item_types[] = {
    {STR_INIT("message"), write_said},
    {STR_INIT("function_call"), write_function_call},
    {STR_INIT("function_call_output"), write_call_output},
    {STR_INIT("mcp_approval_response"), write_decision},
    {STR_INIT("mcp_approval_request"), NULL},
    {STR_INIT("mcp_call"), write_mcp_call},
    {STR_INIT("reasoning"), NULL},
};

static bool write_item(struct request_reading *reading, size_t index, struct json item,
                       struct json_writer *json) {
    struct json type = json_find(item, STR("type"));
    if (item.kind != JSON_OBJECT) return refuse_item(reading, index, "must be an object");
    if (json_is_absent(type)) return write_said(reading, index, item, json);
    for (size_t i = 0; i < ARRAY_LEN(item_types); i++) {
        if (json_is(type, item_types[i].type))
            return !item_types[i].write || item_types[i].write(reading, index, item, json);
    }
    return refuse_item(reading, index,
                       "items are messages, function_call, function_call_output and "
                       "mcp_approval_response");
}

static bool write_items(struct request_reading *reading, struct json input,
                        struct json_writer *json) {
    struct json_reader reader = json_enter(input);
    struct json item;
    if (input.kind == JSON_STRING) {
        json_open_object(json);
        json_member_raw(json, "content", input.raw);
        json_close(json);
        return true;
    }
    if (input.kind != JSON_ARRAY)
        return request_refuse(reading, "input", "must be a string or a list of items, not %s",
                              json_kind_name(input.kind));
    for (size_t i = 0; json_next_item(&reader, &item); i++) {
        if (!write_item(reading, i, item, json)) return false;
    }
    return true;
}

/* --- the conversation --------------------------------------------------------------------- */

static bool read_list(struct request_reading *reading, struct str text, bool goes_on,
                      struct guest_request *ret) {
    struct json list;
    return json_read(text, &list, reading->e) &&
           request_take_messages(reading, list, "input", goes_on, ret);
}

static bool take_input(struct request_reading *reading, const struct json *found, bool goes_on,
                       struct guest_request *ret) {
    struct str instructions = STR_EMPTY;
    struct buf list;
    if (found[INPUT].kind == JSON_NONE)
        return request_refuse(reading, "input", "is missing; send what is asked");
    if (!request_take_text(reading, found[INSTRUCTIONS], "instructions", &instructions))
        return false;
    buf_init(&list, LIST_MAX_BYTES);
    struct json_writer json = json_writer(&list);
    json_open_array(&json);
    bool fine = write_items(reading, found[INPUT], &json);
    ret->approval_run = reading->approval_run;
    ret->approval_seq = reading->approval_seq;
    ret->decides = ret->approval_run != 0;
    json_close(&json);
    fine = fine && (buf_ok(&list) || request_too_large(reading)) &&
           read_list(reading, buf_str(&list), goes_on, ret) &&
           request_take_instructions(reading, instructions, ret);
    buf_done(&list);
    return fine;
}

/* --- the whole request -------------------------------------------------------------------- */

static bool check_unsupported(struct request_reading *reading, const struct json *found) {
    if (!json_is_absent(found[CONVERSATION]))
        return request_refuse(reading, "conversation",
                              "is not kept here; send previous_response_id, or name a session "
                              "in X-Session-Id");
    return json_is_absent(found[PROMPT]) ||
           request_refuse(reading, "prompt",
                          "is not kept here; an agent's prompt is its configuration");
}

static bool take_previous(struct request_reading *reading, struct json value,
                          struct responses_request *ret) {
    uint64_t seq;
    if (!request_take_text(reading, value, "previous_response_id", &ret->previous))
        return false;
    return ret->previous.len == 0 ||
           response_read_id(ret->previous, &ret->previous_run, &seq) ||
           request_refuse(reading, "previous_response_id",
                          "is not the id of a response of this server");
}

static bool take_flags(struct request_reading *reading, const struct json *found,
                       struct responses_request *ret) {
    ret->store = true;
    return request_take_bool(reading, found[STREAM], "stream", &ret->common.streams) &&
           request_take_bool(reading, found[STORE], "store", &ret->store) &&
           request_take_bool(reading, found[BACKGROUND], "background", &ret->background) &&
           (!ret->background || ret->store ||
            request_refuse(reading, "background", "needs store, so that it can be read"));
}

bool responses_request_parse(struct request_reading *reading, struct str body,
                             struct str header_session, struct responses_request *ret) {
    struct json whole, found[RESPONSES_KEYS];
    struct guest_request *common = &ret->common;
    *ret = (struct responses_request){
        .common = {.brought = BROUGHT_WHOLE}, .previous = STR_EMPTY, .metadata = STR_EMPTY};
    if (!request_read_body(reading, body, once, &whole)) return false;
    json_find_each(whole, keys, RESPONSES_KEYS, found);
    if (found[METADATA].kind == JSON_OBJECT) ret->metadata = found[METADATA].raw;
    return request_take_text(reading, found[MODEL], "model", &common->agent) &&
           take_flags(reading, found, ret) && check_unsupported(reading, found) &&
           request_take_text(reading, found[SAFETY_IDENTIFIER], "safety_identifier",
                             &common->user) &&
           request_take_text(reading, found[USER], "user", &common->user) &&
           request_take_metadata(reading, found[METADATA], header_session, common) &&
           request_take_format(reading, json_find(found[TEXT_], STR("format")), "text.format",
                               common) &&
           request_take_tools(reading, found[TOOLS], found[TOOL_CHOICE], common) &&
           take_previous(reading, found[PREVIOUS], ret) &&
           request_take_options(reading, whole, reply_options, ARRAY_LEN(reply_options),
                                common) &&
           take_input(reading, found, ret->previous.len || common->session.len, common);
}
