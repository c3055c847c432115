#include "agent/converse_event.h"

#define ERROR_MARK STR("ERROR:")

/* Counts are 0 in this protocol when they are unknown. */
static int64_t converse_event_count_of(int32_t tokens) {
    return tokens > 0 ? tokens : TOKENS_UNKNOWN;
}

static void converse_event_read_usage(const struct crawbl_usage_event *from,
                                      struct converse_event *ret) {
    ret->agent = from->agent_id;
    ret->usage = USAGE_UNKNOWN;
    ret->usage.model = from->model;
    ret->usage.prompt = converse_event_count_of(from->prompt_tokens);
    ret->usage.completion = converse_event_count_of(from->completion_tokens);
    ret->usage.total = converse_event_count_of(from->total_tokens);
    ret->usage.tool_use = converse_event_count_of(from->tool_use_prompt_tokens);
    ret->usage.thoughts = converse_event_count_of(from->thoughts_tokens);
    ret->usage.cached = converse_event_count_of(from->cached_tokens);
    ret->usage.call_sequence = from->call_sequence > 0 ? from->call_sequence : 0;
}

/* "CODE: text", or text alone. */
static void converse_event_read_error(struct str said, struct converse_event *ret) {
    struct str text, name = str_trim(str_split(said, ':', &text));
    enum err_code code = err_code_named(name);
    bool known = text.at && code != ERR_NONE &&
                 (code != ERR_UNKNOWN || str_equal_nocase(name, STR("unknown")));
    ret->kind = CONVERSE_ERROR;
    ret->code = known ? code : ERR_UNKNOWN;
    ret->text = str_trim(known ? text : said);
}

static void read_done(const struct crawbl_done_event *from, struct converse_event *ret) {
    struct str model = str_trim(from->model);
    ret->model = model;
    ret->turns = from->turns;
    ret->turn_count = from->turns_count;
    if (str_starts(model, ERROR_MARK))
        converse_event_read_error(str_trim(str_skip(model, ERROR_MARK.len)), ret);
}

static void read_result(const struct crawbl_tool_result_event *from,
                        struct converse_event *ret) {
    ret->call_id = from->call_id;
    ret->text = from->result_json;
    ret->error = from->error;
    ret->why = from->error_message.len ? from->error_message : STR("the call failed");
}

bool converse_event_read(struct lent message, struct arena *arena, struct converse_event *ret,
                         struct err *e) {
    struct crawbl_converse_event event;
    if (!pb_decode(&crawbl_converse_event_table, message, arena, &event, e)) return false;
    *ret = (struct converse_event){.kind = CONVERSE_OTHER};
    switch (event.which_event) {
    case CRAWBL_CONVERSE_EVENT_CHUNK:
        ret->kind = CONVERSE_TEXT;
        ret->agent = event.chunk->agent_id;
        ret->text = event.chunk->text;
        break;
    case CRAWBL_CONVERSE_EVENT_THINKING:
        ret->kind = CONVERSE_THINKING;
        ret->agent = event.thinking->agent_id;
        ret->text = event.thinking->text;
        break;
    case CRAWBL_CONVERSE_EVENT_TOOL_CALL:
        ret->kind = CONVERSE_CALL;
        ret->agent = event.tool_call->agent_id;
        ret->call_id = event.tool_call->call_id;
        ret->tool = event.tool_call->tool;
        ret->args = event.tool_call->args_json;
        break;
    case CRAWBL_CONVERSE_EVENT_TOOL_RESULT:
        ret->kind = CONVERSE_RESULT;
        read_result(event.tool_result, ret);
        break;
    case CRAWBL_CONVERSE_EVENT_USAGE:
        ret->kind = CONVERSE_USAGE;
        converse_event_read_usage(event.usage, ret);
        break;
    case CRAWBL_CONVERSE_EVENT_DONE:
        ret->kind = CONVERSE_DONE;
        read_done(event.done, ret);
        break;
    default: break;
    }
    return true;
}
