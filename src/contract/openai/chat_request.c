#include "contract/openai/request.h"

enum chat_key {
    MODEL,
    MESSAGES,
    STREAM,
    STREAM_OPTIONS,
    N,
    RESPONSE_FORMAT,
    TOOLS,
    TOOL_CHOICE,
    USER,
    SAFETY_IDENTIFIER,
    METADATA,
    FUNCTIONS,
    FUNCTION_CALL,
    MODALITIES,
    LOGPROBS,
    CHAT_KEYS
};

static const struct str keys[CHAT_KEYS] = {STR_INIT("model"),
                                           STR_INIT("messages"),
                                           STR_INIT("stream"),
                                           STR_INIT("stream_options"),
                                           STR_INIT("n"),
                                           STR_INIT("response_format"),
                                           STR_INIT("tools"),
                                           STR_INIT("tool_choice"),
                                           STR_INIT("user"),
                                           STR_INIT("safety_identifier"),
                                           STR_INIT("metadata"),
                                           STR_INIT("functions"),
                                           STR_INIT("function_call"),
                                           STR_INIT("modalities"),
                                           STR_INIT("logprobs")};

/* Read twice by two readers they would mean two things. */
static const char *const once[] = {"model", "messages", "stream",   "response_format",
                                   "tools", "user",     "metadata", NULL};

#define AT(member) offsetof(struct model_options, member)

static const struct caller_option reply_options[] = {
    {"max_completion_tokens", CALLER_LONGEST, 0, 0, 0},
    {"max_tokens", CALLER_LONGEST, 0, 0, 0},
    {"temperature", CALLER_NUMBER, AT(temperature), 0, 2},
    {"top_p", CALLER_NUMBER, AT(top_p), 0, 1},
    {"presence_penalty", CALLER_NUMBER, AT(presence_penalty), -2, 2},
    {"frequency_penalty", CALLER_NUMBER, AT(frequency_penalty), -2, 2},
    {"seed", CALLER_SEED, 0, 0, 0},
    {"stop", CALLER_STOPS, 0, 0, 0},
};

/* What no answer of an agent has: better refused than left out. */
static bool check_unsupported(struct request_reading *reading, const struct json *found) {
    int64_t n = 1;
    bool logprobs = false;
    struct json_reader reader = json_enter(found[MODALITIES]);
    struct json modality;
    if (!json_is_absent(found[N]) && (!json_i64(found[N], &n) || n != 1))
        return request_refuse(reading, "n",
                              "an agent gives one answer; leave it out or send 1");
    if (!json_is_absent(found[FUNCTIONS]) || !json_is_absent(found[FUNCTION_CALL]))
        return request_refuse(reading,
                              json_is_absent(found[FUNCTIONS]) ? "function_call" : "functions",
                              "is the old form of tools; send tools and tool_choice");
    if (!request_take_bool(reading, found[LOGPROBS], "logprobs", &logprobs)) return false;
    if (logprobs)
        return request_refuse(reading, "logprobs", "agents report none; leave it out");
    while (json_next_item(&reader, &modality)) {
        if (!json_is(modality, STR("text")))
            return request_refuse(reading, "modalities", "an agent answers in text alone");
    }
    return true;
}

static bool take_messages(struct request_reading *reading, struct json list,
                          struct guest_request *ret) {
    if (list.kind == JSON_NONE)
        return request_refuse(reading, "messages", "is missing; send the conversation");
    return request_take_messages(reading, list, "messages", ret->session.len > 0, ret);
}

static bool take_stream(struct request_reading *reading, const struct json *found,
                        struct openai_request *ret) {
    struct json options = found[STREAM_OPTIONS];
    if (!request_take_bool(reading, found[STREAM], "stream", &ret->turn.streams)) return false;
    if (json_is_absent(options)) return true;
    if (options.kind != JSON_OBJECT)
        return request_refuse(reading, "stream_options", "must be an object, not %s",
                              json_kind_name(options.kind));
    return request_take_bool(reading, json_find(options, STR("include_usage")),
                             "stream_options.include_usage", &ret->wants_usage);
}

bool chat_request_parse(struct request_reading *reading, struct str body,
                        struct str header_session, struct openai_request *ret) {
    struct json whole, found[CHAT_KEYS];
    struct guest_request *turn = &ret->turn;
    *ret = (struct openai_request){.turn = {.brought = BROUGHT_WHOLE}};
    if (!request_read_body(reading, body, once, &whole)) return false;
    json_find_each(whole, keys, CHAT_KEYS, found);
    return request_take_text(reading, found[MODEL], "model", &turn->agent) &&
           take_stream(reading, found, ret) && check_unsupported(reading, found) &&
           request_take_text(reading, found[SAFETY_IDENTIFIER], "safety_identifier",
                             &turn->user) &&
           request_take_text(reading, found[USER], "user", &turn->user) &&
           request_take_metadata(reading, found[METADATA], header_session, turn) &&
           request_take_format(reading, found[RESPONSE_FORMAT], "response_format", turn) &&
           request_take_tools(reading, found[TOOLS], found[TOOL_CHOICE], turn) &&
           request_take_options(reading, whole, reply_options, ARRAY_LEN(reply_options),
                                turn) &&
           take_messages(reading, found[MESSAGES], turn);
}
