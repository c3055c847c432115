#include "provider/openai.h"

#include "provider/body.h"
#include "provider/prompt.h"

/* --- messages -------------------------------------------------------------------------------
 */

static void open_message(struct json_writer *w, const char *role) {
    json_open_object(w);
    json_member_str(w, "role", str_from(role));
}

/* Chat templates of small models (Mistral, Gemma) refuse two user messages in a row. Returns
 * how many turns went into this one. */
static size_t put_user(struct json_writer *w, const struct prompt_turn *turns, size_t count) {
    size_t joined = 0;
    struct buf text;
    buf_init(&text, w->out->max_bytes);
    for (; joined < count && turns[joined].role == PROMPT_USER; joined++) {
        if (joined) buf_append(&text, STR("\n\n"));
        buf_append(&text, turns[joined].text);
    }
    if (!buf_ok(&text)) w->out->full = true;
    open_message(w, "user");
    json_member_str(w, "content", buf_str(&text));
    json_close(w);
    buf_done(&text);
    return joined;
}

static void put_call(struct json_writer *w, const struct message *call) {
    json_open_object(w);
    body_call_id(w, "id", call->call_id, CALL_ID_MAX_BYTES);
    json_member_str(w, "type", STR("function"));
    json_member_object(w, "function");
    json_member_str(w, "name", call->tool);
    json_member_str(w, "arguments", call->text.len ? call->text : STR("{}"));
    json_close(w);
    json_close(w);
}

/* The members that openai_reply.c kept, and no others. */
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
    open_message(w, "assistant");
    if (turn->text.len) {
        json_member_str(w, "content", turn->text);
    } else {
        json_member_null(w, "content");
    }
    put_opaque(w, turn->opaque);
    if (turn->call_count) {
        json_member_array(w, "tool_calls");
        for (size_t i = 0; i < turn->call_count; i++) put_call(w, turn->calls[i].call);
        json_close(w);
    }
    json_close(w);

    for (size_t i = 0; i < turn->call_count; i++) {
        const struct message *result = turn->calls[i].result;
        open_message(w, "tool");
        body_call_id(w, "tool_call_id", result->call_id, CALL_ID_MAX_BYTES);
        json_member_str(w, "content", result->text);
        json_close(w);
    }
}

static bool put_messages(struct json_writer *w, const struct provider_request *request,
                         struct err *e) {
    struct prompt prompt;
    if (!prompt_init(&prompt, request, STR("openai"), e)) return false;
    json_member_array(w, "messages");
    if (request->system.len) {
        open_message(w, "system");
        json_member_str(w, "content", request->system);
        json_close(w);
    }
    for (size_t i = 0; i < prompt.turn_count;) {
        const struct prompt_turn *turn = &prompt.turns[i];
        if (turn->role == PROMPT_USER) {
            i += put_user(w, turn, prompt.turn_count - i);
        } else {
            put_reply(w, turn);
            i++;
        }
    }
    json_close(w);
    prompt_done(&prompt);
    return true;
}

/* --- tools and options
 * ------------------------------------------------------------------------ */

static bool put_tools(struct json_writer *w, const struct provider_request *request,
                      struct err *e) {
    if (request->tool_count == 0) return true;
    json_member_array(w, "tools");
    for (size_t i = 0; i < request->tool_count; i++) {
        const struct tool_offer *tool = &request->tools[i];
        json_open_object(w);
        json_member_str(w, "type", STR("function"));
        json_member_object(w, "function");
        json_member_str(w, "name", tool->name);
        if (tool->description.len) json_member_str(w, "description", tool->description);
        if (!body_schema(w, "parameters", tool->parameters, tool->name, e)) return false;
        json_close(w);
        json_close(w);
    }
    json_close(w);
    return true;
}

/* OpenAI's reasoning models refuse max_tokens, many others know nothing else. */
static const char *tokens_max_key(const struct dialect_settings *settings) {
    bool newer =
        body_host_is(settings, "api.openai.com") || body_host_is(settings, ".openai.azure.com");
    return newer ? "max_completion_tokens" : "max_tokens";
}

static void put_options(struct json_writer *w, const struct dialect_settings *settings,
                        const struct model_options *options) {
    if (!options) return;
    if (options->output_tokens_max > 0)
        json_member_i64(w, tokens_max_key(settings), options->output_tokens_max);
    body_double(w, "temperature", options->temperature);
    body_double(w, "top_p", options->top_p);
    if (options->thinking_tokens > 0 && body_host_is(settings, "openrouter.ai")) {
        json_member_object(w, "reasoning");
        json_member_i64(w, "max_tokens", options->thinking_tokens);
        json_close(w);
    } else if (options->effort.len) {
        json_member_str(w, "reasoning_effort", options->effort);
    }
}

static bool put_schema(struct json_writer *w, struct str schema, struct err *e) {
    if (schema.len == 0) return true;
    json_member_object(w, "response_format");
    json_member_str(w, "type", STR("json_schema"));
    json_member_object(w, "json_schema");
    json_member_str(w, "name", STR("reply"));
    json_member_bool(w, "strict", true);
    if (!body_schema(w, "schema", schema, STR("reply"), e)) return false;
    json_close(w);
    json_close(w);
    return true;
}

static void put_stream(struct json_writer *w, const struct dialect_settings *settings) {
    json_member_bool(w, "stream", !settings->whole);
    if (settings->whole) return; /* usage stands in a whole answer by itself */
    json_member_object(w, "stream_options");
    json_member_bool(w, "include_usage", true);
    json_close(w);
}

static bool write_body(const struct dialect_settings *settings,
                       const struct provider_request *request, struct buf *out, struct err *e) {
    struct json_writer w = json_writer(out);
    json_open_object(&w);
    json_member_str(&w, "model", body_model(settings, request));
    if (!put_messages(&w, request, e)) return false;
    if (!put_tools(&w, request, e)) return false;
    put_options(&w, settings, request->options);
    if (!put_schema(&w, request->schema, e)) return false;
    put_stream(&w, settings);
    json_close(&w);
    return body_complete(out, e);
}

static void write_url(const struct dialect_settings *settings,
                      const struct provider_request *request, struct buf *out) {
    (void)request;
    body_url(settings, "/chat/completions", out);
}

const struct dialect openai_dialect = {
    .name = "openai",
    .title = "OpenAI",
    .base_url = "https://api.openai.com/v1",
    .key_env = {"OPENAI_API_KEY"},
    .url = write_url,
    .key_header = "authorization",
    .key_prefix = "Bearer ",
    .body = write_body,
    .reply_new = openai_reply_new,
    .feed = openai_reply_feed,
    .read = openai_reply_read,
    .end = openai_reply_end,
    .reply_free = openai_reply_free,
};
