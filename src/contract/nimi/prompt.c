#include "contract/nimi/prompt.h"

#define PROMPT_MAX_BYTES (16 * MIB)

static bool too_large(struct fault *fault) {
    return fault_set(fault, NIMI_AI_INPUT_INVALID,
                     "the request is longer than a call may hold");
}

/* Content, then the parts, a line each. */
static bool text_of(const struct nimi_chat_message *from, struct arena *arena, struct str *ret,
                    struct fault *fault) {
    struct buf text;
    bool only_text = true;
    if (from->parts_count == 0) return arena_str(arena, from->content, ret) || too_large(fault);
    buf_init(&text, PROMPT_MAX_BYTES);
    buf_append(&text, from->content);
    for (size_t i = 0; i < from->parts_count; i++) {
        const struct nimi_chat_content_part *part = &from->parts[i];
        only_text = only_text && part->which_content == NIMI_CHAT_CONTENT_PART_TEXT;
        if (!only_text) break;
        if (text.len && part->text.len) buf_append(&text, STR("\n"));
        buf_append(&text, part->text);
    }
    bool kept = buf_ok(&text) && arena_str(arena, buf_str(&text), ret);
    buf_done(&text);
    if (!only_text)
        return fault_set(fault, NIMI_AI_MODALITY_NOT_SUPPORTED,
                         "parts other than text are not read by this version");
    return kept || too_large(fault);
}

/* The system prompt, and behind it what the conversation says as system. */
static bool add_system(struct arena *arena, struct str text, struct str *system) {
    struct buf both;
    if (text.len == 0) return true;
    buf_init(&both, PROMPT_MAX_BYTES);
    buf_append(&both, *system);
    if (system->len) buf_append(&both, STR("\n\n"));
    buf_append(&both, text);
    bool kept = buf_ok(&both) && arena_str(arena, buf_str(&both), system);
    buf_done(&both);
    return kept;
}

/* Whose words these are. False: the model's own instructions, or nobody's. */
static bool role_of(struct str role, enum message_role *ret) {
    static const struct {
        struct str name;
        enum message_role role;
    } roles[] = {{STR_INIT("user"), MESSAGE_USER}, {STR_INIT("assistant"), MESSAGE_AGENT}};
    for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
        if (!str_equal(role, roles[i].name)) continue;
        *ret = roles[i].role;
        return true;
    }
    return false;
}

static bool is_system(struct str role) {
    return str_equal(role, STR("system")) || str_equal(role, STR("developer"));
}

static bool add_message(const struct nimi_chat_message *from, struct arena *arena,
                        struct message *messages, struct prompt *ret, struct fault *fault) {
    struct provider_request *request = &ret->request;
    struct message message = {.role = MESSAGE_USER};
    if (!text_of(from, arena, &message.text, fault)) return false;
    if (is_system(from->role))
        return add_system(arena, message.text, &request->system) || too_large(fault);
    if (!role_of(from->role, &message.role))
        return fault_set(fault, NIMI_AI_INPUT_INVALID,
                         "no role '" STR_FMT "'; messages are of user, assistant or system",
                         STR_ARG(str_head(from->role, 40)));
    if (message.text.len == 0) return true;
    if (message.role == MESSAGE_USER) {
        request->turn_start = request->message_count;
        ret->asked = message.text;
    }
    messages[request->message_count++] = message;
    return true;
}

static void set_options(const struct nimi_text_generate_scenario_spec *spec,
                        struct model_options *ret) {
    *ret = MODEL_OPTIONS_NONE;
    if (spec->temperature > 0) ret->temperature = (double)spec->temperature;
    if (spec->top_p > 0) ret->top_p = (double)spec->top_p;
    if (spec->max_tokens > 0) ret->output_tokens_max = spec->max_tokens;
    if (spec->reasoning && spec->reasoning->mode == NIMI_REASONING_MODE_ON)
        ret->thinking_tokens =
            spec->reasoning->budget_tokens > 0 ? spec->reasoning->budget_tokens : 0;
}

bool prompt_build(const struct nimi_text_generate_scenario_spec *spec, struct str model,
                  struct arena *arena, struct prompt *ret, struct fault *fault) {
    *ret = (struct prompt){.asked = STR_EMPTY};
    struct provider_request *request = &ret->request;
    struct message *messages =
        arena_alloc(arena, (spec->input_count + 1) * sizeof(struct message));
    if (spec->tools_count)
        return fault_set(fault, NIMI_AI_INPUT_INVALID,
                         "tools cannot be offered: this protocol has no event for their calls");
    if (!messages || !arena_str(arena, spec->system_prompt, &request->system) ||
        !arena_str(arena, model, &request->model))
        return too_large(fault);
    request->messages = messages;
    for (size_t i = 0; i < spec->input_count; i++) {
        if (!add_message(&spec->input[i], arena, messages, ret, fault)) return false;
    }
    if (ret->asked.len == 0)
        return fault_set(fault, NIMI_AI_INPUT_INVALID, "no message of a user has any text");
    set_options(spec, &ret->options);
    request->agent = STR_EMPTY;
    request->schema = STR_EMPTY;
    request->options = &ret->options;
    return true;
}
