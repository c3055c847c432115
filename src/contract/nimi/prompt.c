#include "contract/nimi/prompt.h"

#include "conversation/image.h"
#include "wire/base64.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define PROMPT_MAX_BYTES (16 * MIB)

static bool prompt_too_large(struct fault *fault) {
    return fault_set(fault, NIMI_AI_INPUT_INVALID,
                     "the request is longer than a call may hold");
}

/* --- parts -------------------------------------------------------------------------------- */

/* The message being read. */
struct reading {
    const struct nimi_chat_message *from;
    size_t index; /* in the request's input */
    struct arena *arena;
    struct prompt *prompt;
    struct buf text, parts;
    struct json_writer writer;
    bool pictures;
    struct fault *fault;
};

PRINTF_LIKE(4, 5)
static bool refuse_part(struct reading *reading, size_t part, int reason, const char *format,
                        ...) {
    struct err why;
    char text[ERR_TEXT_BYTES];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    err_set(&why, ERR_NONE, "input[%zu].parts[%zu]: %s", reading->index, part, text);
    return fault_set(reading->fault, reason, "%s", why.text);
}

static void prompt_put_text(struct reading *reading, struct str text) {
    if (reading->text.len && text.len) buf_append(&reading->text, STR("\n"));
    buf_append(&reading->text, text);
    json_open_object(&reading->writer);
    json_member_str(&reading->writer, "type", STR("text"));
    json_member_str(&reading->writer, "text", text);
    json_close(&reading->writer);
}

/* Write a placeholder for a picture into the parts; its bytes replace it later. */
static void put_reference(struct json_writer *writer, struct str id) {
    json_open_object(writer);
    json_member_str(writer, "type", STR("artifact"));
    json_member_str(writer, "id", id);
    json_close(writer);
}

static bool put_artifact(struct reading *reading, size_t part,
                         const struct nimi_chat_content_artifact_ref *from) {
    struct prompt_artifact *artifact =
        &reading->prompt->artifacts[reading->prompt->artifact_count];
    if (!from || from->artifact_id.len == 0)
        return refuse_part(reading, part, NIMI_AI_INPUT_INVALID,
                           "an artifact is referred to by the artifact_id that UploadArtifact "
                           "answered");
    if (!arena_str(reading->arena, from->artifact_id, &artifact->id))
        return prompt_too_large(reading->fault);
    reading->prompt->artifact_count++;
    put_reference(&reading->writer, artifact->id);
    return true;
}

static bool put_image_url(struct reading *reading, size_t part,
                          const struct nimi_chat_content_image_url *from) {
    struct err e;
    struct str url = from ? from->url : STR_EMPTY, detail = from ? from->detail : STR_EMPTY;
    return image_put_url(&reading->writer, url, detail, &e) ||
           refuse_part(reading, part, NIMI_AI_INPUT_INVALID, "%s", e.text);
}

static bool prompt_put_part(struct reading *reading, size_t index) {
    const struct nimi_chat_content_part *part = &reading->from->parts[index];
    switch (part->which_content) {
    case NIMI_CHAT_CONTENT_PART_TEXT: prompt_put_text(reading, part->text); return true;
    case NIMI_CHAT_CONTENT_PART_IMAGE_URL:
        reading->pictures = true;
        return put_image_url(reading, index, part->image_url);
    case NIMI_CHAT_CONTENT_PART_ARTIFACT_REF:
        reading->pictures = true;
        return put_artifact(reading, index, part->artifact_ref);
    default:
        return refuse_part(reading, index, NIMI_AI_MODALITY_NOT_SUPPORTED,
                           "only text and pictures are read by this version");
    }
}

static bool put_parts(struct reading *reading, bool takes_pictures) {
    json_open_array(&reading->writer);
    for (size_t i = 0; i < reading->from->parts_count; i++) {
        if (!prompt_put_part(reading, i)) return false;
        if (reading->pictures && !takes_pictures)
            return refuse_part(reading, i, NIMI_AI_MODALITY_NOT_SUPPORTED,
                               "only a user's message may hold a picture");
    }
    json_close(&reading->writer);
    return true;
}

/* Read the parts if there are any, otherwise the content. */
static bool read_content(struct reading *reading, struct message *message) {
    const struct nimi_chat_message *from = reading->from;
    size_t artifacts = reading->prompt->artifact_count;
    struct arena *arena = reading->arena;
    message->parts = STR_EMPTY;
    if (from->parts_count == 0)
        return arena_str(arena, from->content, &message->text) ||
               prompt_too_large(reading->fault);
    buf_init(&reading->text, PROMPT_MAX_BYTES);
    buf_init(&reading->parts, PROMPT_MAX_BYTES);
    reading->writer = json_writer(&reading->parts);
    bool fine = put_parts(reading, message->role == MESSAGE_USER);
    if (fine) {
        fine =
            buf_ok(&reading->text) && buf_ok(&reading->parts) &&
            arena_str(arena, buf_str(&reading->text), &message->text) &&
            (!reading->pictures || arena_str(arena, buf_str(&reading->parts), &message->parts));
        if (!fine) prompt_too_large(reading->fault);
    }
    buf_done(&reading->text);
    buf_done(&reading->parts);
    for (size_t i = artifacts; i < reading->prompt->artifact_count; i++)
        reading->prompt->artifacts[i].message = message;
    return fine;
}

/* --- messages ----------------------------------------------------------------------------- */

/* The system prompt, followed by the system messages of the conversation. */
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

/* The role of a message. No role means user, as upstream reads it. */
static bool role_of(struct str role, enum message_role *ret) {
    static const struct {
        struct str name;
        enum message_role role;
    } roles[] = {
        {STR_INIT(""), MESSAGE_USER},
        {STR_INIT("user"), MESSAGE_USER},
        {STR_INIT("assistant"), MESSAGE_AGENT},
        {STR_INIT("system"), MESSAGE_SYSTEM},
        {STR_INIT("developer"), MESSAGE_SYSTEM},
    };
    for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
        if (!str_equal(role, roles[i].name)) continue;
        *ret = roles[i].role;
        return true;
    }
    return false;
}

/* System messages at the start of the conversation are added to the system prompt. Later ones
 * stay in place. */
static bool add_message(struct reading *reading, struct message *messages) {
    struct provider_request *request = &reading->prompt->request;
    struct message *message = &messages[request->message_count];
    struct fault *fault = reading->fault;
    *message = (struct message){.role = MESSAGE_USER};
    if (!role_of(reading->from->role, &message->role))
        return fault_set(fault, NIMI_AI_INPUT_INVALID,
                         "input[%zu]: no role '" STR_FMT
                         "'; messages are of user, assistant or "
                         "system",
                         reading->index, STR_ARG(str_head(reading->from->role, 40)));
    if (!read_content(reading, message)) return false;
    if (message->role == MESSAGE_SYSTEM && request->message_count == 0)
        return add_system(reading->arena, message->text, &request->system) ||
               prompt_too_large(fault);
    if (message->text.len == 0 && message->parts.len == 0) return true;
    if (message->role == MESSAGE_USER) {
        request->turn_start = request->message_count;
        reading->prompt->asked = message->text.len ? message->text : STR("(picture)");
    }
    request->message_count++;
    return true;
}

static bool add_messages(const struct nimi_text_generate_scenario_spec *spec,
                         struct arena *arena, struct message *messages, struct prompt *ret,
                         struct fault *fault) {
    const struct provider_request *request = &ret->request;
    for (size_t i = 0; i < spec->input_count; i++) {
        struct reading reading = {
            .from = &spec->input[i], .index = i, .arena = arena, .prompt = ret, .fault = fault};
        if (!add_message(&reading, messages)) return false;
    }
    if (ret->asked.len == 0)
        return fault_set(fault, NIMI_AI_INPUT_INVALID, "no message of a user has any text");
    if (messages[request->message_count - 1].role == MESSAGE_SYSTEM)
        return fault_set(fault, NIMI_AI_INPUT_INVALID,
                         "input[%zu]: the last message is a system message; the last one is "
                         "what is asked",
                         spec->input_count - 1);
    return true;
}

static size_t count_parts(const struct nimi_text_generate_scenario_spec *spec) {
    size_t count = 0;
    for (size_t i = 0; i < spec->input_count; i++) count += spec->input[i].parts_count;
    return count;
}

static bool options_are_finite(const struct nimi_text_generate_scenario_spec *spec,
                               struct fault *fault) {
    return (isfinite(spec->temperature) && isfinite(spec->top_p)) ||
           fault_set(fault, NIMI_AI_INPUT_INVALID,
                     "temperature and top_p must be numbers, not infinite or NaN");
}

static void prompt_set_options(const struct nimi_text_generate_scenario_spec *spec,
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
    ret->artifacts =
        arena_alloc(arena, (count_parts(spec) + 1) * sizeof(struct prompt_artifact));
    if (spec->tools_count)
        return fault_set(fault, NIMI_AI_INPUT_INVALID,
                         "tools cannot be offered: this protocol has no event for their calls");
    if (!options_are_finite(spec, fault)) return false;
    if (!messages || !ret->artifacts ||
        !arena_str(arena, spec->system_prompt, &request->system) ||
        !arena_str(arena, model, &request->model))
        return prompt_too_large(fault);
    request->messages = messages;
    if (!add_messages(spec, arena, messages, ret, fault)) return false;
    prompt_set_options(spec, &ret->options);
    request->agent = STR_EMPTY;
    request->schema = STR_EMPTY;
    request->options = &ret->options;
    return true;
}

/* --- artifacts ---------------------------------------------------------------------------- */

/* Replace `reference` in the parts by the picture itself. */
static bool replace(struct str parts, struct str reference, struct str media_type,
                    struct str data, struct buf *out, struct err *e) {
    size_t at = str_find(parts, reference);
    struct json_writer writer = json_writer(out);
    buf_append(out, str_head(parts, at));
    if (at < parts.len && !image_put_base64(&writer, media_type, data, STR_EMPTY, e))
        return false;
    buf_append(out, str_skip(parts, at + reference.len));
    return true;
}

bool prompt_attach(const struct prompt_artifact *artifact, struct str media_type,
                   struct str bytes, struct arena *arena, struct fault *fault) {
    struct message *message = artifact->message;
    struct buf reference, data, parts;
    struct err e;
    buf_init(&reference, 8 * artifact->id.len + KIB);
    buf_init(&data, PROMPT_MAX_BYTES);
    buf_init(&parts, PROMPT_MAX_BYTES);
    struct json_writer writer = json_writer(&reference);
    put_reference(&writer, artifact->id);
    base64_encode(&data, bytes, BASE64_STANDARD, BASE64_PADDED);
    struct str type = str_head(media_type, str_find_byte(media_type, ';'));
    bool fine = false;
    if (!buf_ok(&data)) {
        prompt_too_large(fault);
    } else if (!replace(message->parts, buf_str(&reference), type, buf_str(&data), &parts,
                        &e)) {
        fault_set(fault, NIMI_AI_MODALITY_NOT_SUPPORTED, "the artifact '" STR_FMT "': %s",
                  STR_ARG(str_head(artifact->id, 80)), e.text);
    } else {
        fine = buf_ok(&parts) && arena_str(arena, buf_str(&parts), &message->parts);
        if (!fine) prompt_too_large(fault);
    }
    buf_done(&reference);
    buf_done(&data);
    buf_done(&parts);
    return fine;
}
