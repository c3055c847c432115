/* responses: the dialect of OpenAI's Responses API, streamed.
 *
 * responses.c writes the request, responses_reply.c reads the answer. Nothing is stored at the
 * vendor, so reasoning must be sent back with the conversation: the opaque message is the array
 * of the reply's output items, unchanged, if one of them is encrypted reasoning.
 *
 * Source   docs/internals/providers.md "openai-responses". */
#include "provider/dialect.h"

#include "provider/body.h"
#include "provider/parts.h"
#include "provider/prompt.h"
#include "provider/reply_schema.h"

/* --- input -------------------------------------------------------------------------------- */

static void put_message(struct json_writer *w, const char *role, struct str text) {
    json_open_object(w);
    json_member_str(w, "type", STR("message"));
    json_member_str(w, "role", str_from(role));
    json_member_str(w, "content", text);
    json_close(w);
}

static void responses_put_part(struct json_writer *w, const struct part *part) {
    json_open_object(w);
    if (part->kind == PART_TEXT) {
        json_member_str(w, "type", STR("input_text"));
        json_member_raw(w, "text", part->text.raw);
    } else {
        json_member_str(w, "type", STR("input_image"));
        parts_put_url(w, "image_url", part);
        json_member_raw(w, "detail",
                        part->detail.kind == JSON_NONE ? STR("\"auto\"") : part->detail.raw);
    }
    json_close(w);
}

static void put_user(struct json_writer *w, const struct prompt_turn *turn) {
    struct json_reader reader = parts_enter(turn->parts);
    struct part part;
    if (turn->parts.len == 0) {
        put_message(w, "user", turn->text);
        return;
    }
    json_open_object(w);
    json_member_str(w, "type", STR("message"));
    json_member_str(w, "role", STR("user"));
    json_member_array(w, "content");
    while (parts_next(&reader, &part)) responses_put_part(w, &part);
    json_close(w);
    json_close(w);
}

static void responses_put_call(struct json_writer *w, const struct message *call) {
    json_open_object(w);
    json_member_str(w, "type", STR("function_call"));
    body_call_id(w, "call_id", call->call_id, CALL_ID_LONG_MAX_BYTES);
    json_member_str(w, "name", call->tool);
    json_member_str(w, "arguments", call->text.len ? call->text : STR("{}"));
    json_close(w);
}

static void put_reply(struct json_writer *w, const struct prompt_turn *turn) {
    struct json items;
    if (body_read_opaque(turn->opaque, &items)) {
        body_write_items(w, items);
    } else {
        if (turn->text.len) put_message(w, "assistant", turn->text);
        for (size_t i = 0; i < turn->call_count; i++)
            responses_put_call(w, turn->calls[i].call);
    }
    for (size_t i = 0; i < turn->call_count; i++) {
        const struct message *result = turn->calls[i].result;
        json_open_object(w);
        json_member_str(w, "type", STR("function_call_output"));
        body_call_id(w, "call_id", result->call_id, CALL_ID_LONG_MAX_BYTES);
        json_member_str(w, "output", result->text);
        json_close(w);
    }
}

/* The API looks for the word JSON in the input, not in the instructions. */
static void put_reply_words(struct json_writer *w, struct str schema, enum reply_form form) {
    struct buf words;
    if (form != REPLY_ANY_OBJECT && form != REPLY_NO_OBJECT) return;
    buf_init(&words, w->out->max_bytes);
    reply_schema_words(form, schema, &words);
    if (!buf_ok(&words)) w->out->full = true;
    put_message(w, "system", buf_str(&words));
    buf_done(&words);
}

static bool put_input(struct json_writer *w, const struct provider_request *request,
                      enum reply_form form, struct err *e) {
    struct prompt prompt;
    if (!prompt_init(&prompt, request, STR("openai-responses"), e)) return false;
    if (request->system.len) json_member_str(w, "instructions", request->system);
    json_member_array(w, "input");
    put_reply_words(w, request->schema, form);
    bool fine = true;
    for (size_t i = 0; i < prompt.turn_count; i++) {
        const struct prompt_turn *turn = &prompt.turns[i];
        switch (turn->role) {
        case PROMPT_USER: put_user(w, turn); break;
        case PROMPT_AGENT: put_reply(w, turn); break;
        case PROMPT_SYSTEM: put_message(w, "system", turn->text); break;
        }
        fine = !turn->prefill ||
               prompt_refuse(request, turn, NO_PART, e,
                             "this API does not go on with an assistant's message; let the "
                             "last one be a user's");
    }
    json_close(w);
    prompt_done(&prompt);
    return fine;
}

/* --- tools and options -------------------------------------------------------------------- */

static void put_tool_choice(struct json_writer *w, struct str choice) {
    if (choice.len == 0) return;
    if (str_equal(choice, STR(TOOL_CHOICE_REQUIRED))) {
        json_member_str(w, "tool_choice", STR("required"));
        return;
    }
    json_member_object(w, "tool_choice");
    json_member_str(w, "type", STR("function"));
    json_member_str(w, "name", choice);
    json_close(w);
}

static bool responses_put_tools(struct json_writer *w, const struct provider_request *request,
                                struct err *e) {
    if (request->tool_count == 0) return true;
    json_member_array(w, "tools");
    for (size_t i = 0; i < request->tool_count; i++) {
        const struct tool_offer *tool = &request->tools[i];
        json_open_object(w);
        json_member_str(w, "type", STR("function"));
        if (!body_tool(w, tool, "parameters", e)) return false;
        json_member_bool(w, "strict", false); /* the API's default rewrites schemas */
        json_close(w);
    }
    json_close(w);
    put_tool_choice(w, request->tool_choice);
    return true;
}

/* Models that do not reason refuse a request that asks for encrypted reasoning. */
static bool reasons(struct str model, const struct model_options *options) {
    return (options && options->effort.len) || body_reasons(model);
}

static void put_reasoning(struct json_writer *w, const struct model_options *options) {
    json_member_array(w, "include");
    json_write_str(w, STR("reasoning.encrypted_content"));
    json_close(w);
    if (!options || !options->effort.len) return;
    json_member_object(w, "reasoning");
    json_member_str(w, "effort", options->effort);
    json_member_str(w, "summary", STR("auto"));
    json_close(w);
}

/* The API refuses less. */
#define OUTPUT_TOKENS_MIN 16

static void put_longest(struct json_writer *w, const struct model_options *options) {
    bool few = options->bends && options->output_tokens_max < OUTPUT_TOKENS_MIN;
    json_member_i64(w, "max_output_tokens",
                    few ? OUTPUT_TOKENS_MIN : options->output_tokens_max);
}

/* There are no stop sequences in this API: the run ends a reply at them. */
static void responses_put_options(struct json_writer *w, struct str model,
                                  const struct model_options *options) {
    if (!options) return;
    if (options->output_tokens_max > 0) put_longest(w, options);
    if (options->bends && body_reasons(model)) return;
    body_double(w, "temperature", options->temperature);
    body_double(w, "top_p", options->top_p);
}

static void put_schema(struct json_writer *w, struct str schema, enum reply_form form) {
    if (form == REPLY_PROSE || form == REPLY_NO_OBJECT) return;
    json_member_object(w, "text");
    json_member_object(w, "format");
    if (form == REPLY_ANY_OBJECT) {
        json_member_str(w, "type", STR("json_object"));
    } else {
        json_member_str(w, "type", STR("json_schema"));
        body_reply_schema(w, schema, form == REPLY_STRICT);
    }
    json_close(w);
    json_close(w);
}

static bool responses_write_body(const struct dialect_settings *settings,
                                 const struct provider_request *request, struct buf *out,
                                 struct err *e) {
    struct json_writer w = json_writer(out);
    struct str model = body_model(settings, request);
    enum reply_form form;
    if (!reply_form_of(request, SCHEMA_OPENAI, &form, e)) return false;
    json_open_object(&w);
    json_member_str(&w, "model", model);
    if (!put_input(&w, request, form, e)) return false;
    if (!responses_put_tools(&w, request, e)) return false;
    if (reasons(model, request->options)) put_reasoning(&w, request->options);
    responses_put_options(&w, model, request->options);
    put_schema(&w, request->schema, form);
    json_member_bool(&w, "store", false);
    json_member_bool(&w, "stream", !settings->whole);
    json_close(&w);
    return body_complete(out, e);
}

static void responses_write_url(const struct dialect_settings *settings,
                                const struct provider_request *request, struct buf *out) {
    (void)request;
    body_url(settings, "/responses", out);
}

const struct dialect responses_dialect = {
    .name = "openai-responses",
    .title = "OpenAI",
    .base_url = "https://api.openai.com/v1",
    .key_env = {"OPENAI_API_KEY"},
    .media_beside = true,
    .live_beside = true,
    .url = responses_write_url,
    .key_header = "authorization",
    .key_prefix = "Bearer ",
    .body = responses_write_body,
    .reader = &responses_reader,
};
