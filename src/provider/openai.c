/* openai: the dialect of Chat Completions, streamed, and of all servers that imitate it.
 *
 * OpenAI, Azure, OpenRouter, DeepSeek, Mistral, Groq, Ollama, vLLM, llama.cpp and LM Studio
 * agree on the whole and differ in details. Known differences are noted where they matter.
 * openai.c writes the request, openai_reply.c reads the answer. They share only the opaque
 * message: one object with the members, besides text and calls, that the assistant's message
 * must have when it is sent back,
 *
 *     {"reasoning_details":[...]}      OpenRouter: signed or encrypted reasoning
 *     {"reasoning_content":"..."}      DeepSeek and others: required beside tool calls
 *
 * Source   docs/internals/providers.md "openai". */
#include "provider/dialect.h"

#include "provider/body.h"
#include "provider/parts.h"
#include "provider/prompt.h"
#include "provider/reply_schema.h"

/* --- messages ----------------------------------------------------------------------------- */

static void openai_open_message(struct json_writer *w, const char *role) {
    json_open_object(w);
    json_member_str(w, "role", str_from(role));
}

static void openai_put_part(struct json_writer *w, const struct part *part) {
    json_open_object(w);
    if (part->kind == PART_TEXT) {
        json_member_str(w, "type", STR("text"));
        json_member_raw(w, "text", part->text.raw);
    } else {
        json_member_str(w, "type", STR("image_url"));
        json_member_object(w, "image_url");
        parts_put_url(w, "url", part);
        if (part->detail.kind != JSON_NONE) json_member_raw(w, "detail", part->detail.raw);
        json_close(w);
    }
    json_close(w);
}

static void openai_put_parts(struct json_writer *w, const struct prompt_turn *turn) {
    struct json_reader reader = parts_enter(turn->parts);
    struct part part;
    while (parts_next(&reader, &part)) openai_put_part(w, &part);
    if (turn->parts.len) return;
    json_open_object(w);
    json_member_str(w, "type", STR("text"));
    json_member_str(w, "text", turn->text);
    json_close(w);
}

/* Write several texts as one, or as an array of parts if there is an image among them. */
static void put_joined(struct json_writer *w, const struct prompt_turn *turns, size_t count) {
    struct buf text;
    buf_init(&text, w->out->max_bytes);
    for (size_t i = 0; i < count; i++) {
        if (i) buf_append(&text, STR("\n\n"));
        buf_append(&text, turns[i].text);
    }
    if (!buf_ok(&text)) w->out->full = true;
    json_member_str(w, "content", buf_str(&text));
    buf_done(&text);
}

static size_t users_in_a_row(const struct prompt_turn *turns, size_t count) {
    size_t users = 0;
    while (users < count && turns[users].role == PROMPT_USER) users++;
    return users;
}

/* Write `count` user turns as one message. */
static void put_user(struct json_writer *w, const struct prompt_turn *turns, size_t count) {
    bool pictures = false;
    for (size_t i = 0; i < count; i++) pictures = pictures || turns[i].parts.len;
    openai_open_message(w, "user");
    if (pictures) {
        json_member_array(w, "content");
        for (size_t i = 0; i < count; i++) openai_put_parts(w, &turns[i]);
        json_close(w);
    } else {
        put_joined(w, turns, count);
    }
    json_close(w);
}

static void openai_put_call(struct json_writer *w, const struct message *call) {
    json_open_object(w);
    body_call_id(w, "id", call->call_id, CALL_ID_MAX_BYTES);
    json_member_str(w, "type", STR("function"));
    json_member_object(w, "function");
    json_member_str(w, "name", call->tool);
    json_member_str(w, "arguments", call->text.len ? call->text : STR("{}"));
    json_close(w);
    json_close(w);
}

/* Write the members that openai_reply.c kept, and no others. */
static void put_opaque(struct json_writer *w, struct str opaque) {
    static const struct {
        const char *key;
        enum json_kind kind;
    } members[] = {{"reasoning_details", JSON_ARRAY}, {"reasoning_content", JSON_STRING}};
    struct json object;
    struct err e;
    if (opaque.len == 0 || !json_read(opaque, &object, &e)) return;
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        struct json value = json_find(object, str_from(members[i].key));
        if (value.kind == members[i].kind) json_member_raw(w, members[i].key, value.raw);
    }
}

static void put_reply(struct json_writer *w, const struct prompt_turn *turn) {
    openai_open_message(w, "assistant");
    if (turn->text.len) {
        json_member_str(w, "content", turn->text);
    } else {
        json_member_null(w, "content");
    }
    put_opaque(w, turn->opaque);
    if (turn->call_count) {
        json_member_array(w, "tool_calls");
        for (size_t i = 0; i < turn->call_count; i++) openai_put_call(w, turn->calls[i].call);
        json_close(w);
    }
    json_close(w);

    for (size_t i = 0; i < turn->call_count; i++) {
        const struct message *result = turn->calls[i].result;
        openai_open_message(w, "tool");
        body_call_id(w, "tool_call_id", result->call_id, CALL_ID_MAX_BYTES);
        json_member_str(w, "content", result->text);
        json_close(w);
    }
}

static bool is_openai(const struct dialect_settings *settings) {
    return body_host_is(settings, "api.openai.com") ||
           body_host_is(settings, ".openai.azure.com");
}

/* OpenAI's own models begin a new message instead of going on with an assistant's. */
static bool check_prefill(const struct dialect_settings *settings,
                          const struct provider_request *request, const struct prompt *prompt,
                          struct err *e) {
    const struct prompt_turn *last = prompt->turns + prompt->turn_count - 1;
    if (prompt->turn_count == 0 || !last->prefill || !is_openai(settings)) return true;
    return prompt_refuse(request, last, NO_PART, e,
                         "OpenAI's models do not go on with an assistant's message; let the "
                         "last one be a user's");
}

static void put_turns(struct json_writer *w, const struct dialect_settings *settings,
                      const struct prompt *prompt) {
    for (size_t i = 0, count; i < prompt->turn_count; i += count) {
        const struct prompt_turn *turn = &prompt->turns[i];
        count = 1;
        switch (turn->role) {
        case PROMPT_USER:
            if (settings->joins_users) count = users_in_a_row(turn, prompt->turn_count - i);
            put_user(w, turn, count);
            break;
        case PROMPT_AGENT: put_reply(w, turn); break;
        case PROMPT_SYSTEM:
            openai_open_message(w, "system");
            json_member_str(w, "content", turn->text);
            json_close(w);
            break;
        }
    }
}

/* One message, because the chat templates of some models take only one. */
static void put_instructions(struct json_writer *w, const struct provider_request *request,
                             enum reply_form form) {
    struct buf text;
    buf_init(&text, w->out->max_bytes);
    buf_append(&text, request->system);
    if (form == REPLY_ANY_OBJECT || form == REPLY_NO_OBJECT) {
        if (text.len) buf_append(&text, STR("\n\n"));
        reply_schema_words(form, request->schema, &text);
    }
    if (!buf_ok(&text)) w->out->full = true;
    if (text.len) {
        openai_open_message(w, "system");
        json_member_str(w, "content", buf_str(&text));
        json_close(w);
    }
    buf_done(&text);
}

static bool put_messages(struct json_writer *w, const struct dialect_settings *settings,
                         const struct provider_request *request, enum reply_form form,
                         struct err *e) {
    struct prompt prompt;
    if (!prompt_init(&prompt, request, STR("openai"), e)) return false;
    json_member_array(w, "messages");
    put_instructions(w, request, form);
    put_turns(w, settings, &prompt);
    bool fine = check_prefill(settings, request, &prompt, e);
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
    json_member_object(w, "function");
    json_member_str(w, "name", choice);
    json_close(w);
    json_close(w);
}

static bool openai_put_tools(struct json_writer *w, const struct provider_request *request,
                             struct err *e) {
    if (request->tool_count == 0) return true;
    json_member_array(w, "tools");
    for (size_t i = 0; i < request->tool_count; i++) {
        const struct tool_offer *tool = &request->tools[i];
        json_open_object(w);
        json_member_str(w, "type", STR("function"));
        json_member_object(w, "function");
        if (!body_tool(w, tool, "parameters", e)) return false;
        json_close(w);
        json_close(w);
    }
    json_close(w);
    put_tool_choice(w, request->tool_choice);
    return true;
}

/* OpenAI's reasoning models refuse max_tokens; many other servers know only that. */
static const char *tokens_max_key(const struct dialect_settings *settings) {
    return is_openai(settings) ? "max_completion_tokens" : "max_tokens";
}

static void put_penalty(struct json_writer *w, const char *key, double penalty) {
    if (penalty == 0) return;
    json_key(w, str_from(key));
    json_write_double(w, penalty);
}

#define OPENAI_STOPS_MAX 4

/* OpenAI's reasoning models refuse all of this. */
static void put_sampling(struct json_writer *w, const struct dialect_settings *settings,
                         struct str model, const struct model_options *options) {
    if (options->bends && is_openai(settings) && body_reasons(model)) return;
    body_double(w, "temperature", options->temperature);
    body_double(w, "top_p", options->top_p);
    put_penalty(w, "presence_penalty", options->presence_penalty);
    put_penalty(w, "frequency_penalty", options->frequency_penalty);
    body_stops(w, "stop", options, OPENAI_STOPS_MAX);
}

static void openai_put_options(struct json_writer *w, const struct dialect_settings *settings,
                               struct str model, const struct model_options *options) {
    if (!options) return;
    if (options->output_tokens_max > 0)
        json_member_i64(w, tokens_max_key(settings), options->output_tokens_max);
    put_sampling(w, settings, model, options);
    if (options->seeded) json_member_i64(w, "seed", options->seed);
    if (options->thinking_tokens > 0 && body_host_is(settings, "openrouter.ai")) {
        json_member_object(w, "reasoning");
        json_member_i64(w, "max_tokens", options->thinking_tokens);
        json_close(w);
    } else if (options->effort.len) {
        json_member_str(w, "reasoning_effort", options->effort);
    }
}

static void put_schema(struct json_writer *w, struct str schema, enum reply_form form) {
    if (form == REPLY_PROSE || form == REPLY_NO_OBJECT) return;
    json_member_object(w, "response_format");
    if (form == REPLY_ANY_OBJECT) {
        json_member_str(w, "type", STR("json_object"));
    } else {
        json_member_str(w, "type", STR("json_schema"));
        json_member_object(w, "json_schema");
        body_reply_schema(w, schema, form == REPLY_STRICT);
        json_close(w);
    }
    json_close(w);
}

static void put_stream(struct json_writer *w, const struct dialect_settings *settings) {
    json_member_bool(w, "stream", !settings->whole);
    if (settings->whole) return; /* an answer that is not streamed always has usage */
    json_member_object(w, "stream_options");
    json_member_bool(w, "include_usage", true);
    json_close(w);
}

static bool openai_write_body(const struct dialect_settings *settings,
                              const struct provider_request *request, struct buf *out,
                              struct err *e) {
    struct json_writer w = json_writer(out);
    enum reply_form form;
    if (!reply_form_of(request, SCHEMA_OPENAI, &form, e)) return false;
    json_open_object(&w);
    json_member_str(&w, "model", body_model(settings, request));
    if (!put_messages(&w, settings, request, form, e)) return false;
    if (!openai_put_tools(&w, request, e)) return false;
    openai_put_options(&w, settings, body_model(settings, request), request->options);
    put_schema(&w, request->schema, form);
    put_stream(&w, settings);
    json_close(&w);
    return body_complete(out, e);
}

static void openai_write_url(const struct dialect_settings *settings,
                             const struct provider_request *request, struct buf *out) {
    (void)request;
    body_url(settings, "/chat/completions", out);
}

const struct dialect openai_dialect = {
    .name = "openai",
    .title = "OpenAI",
    .base_url = "https://api.openai.com/v1",
    .key_env = {"OPENAI_API_KEY"},
    .media_beside = true,
    .live_beside = true,
    .url = openai_write_url,
    .key_header = "authorization",
    .key_prefix = "Bearer ",
    .body = openai_write_body,
    .reader = &openai_reader,
};
