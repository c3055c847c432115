/* The Messages API of Anthropic and of servers that imitate it: writes requests. */
#include "provider/dialect.h"

#include "provider/body.h"
#include "provider/parts.h"
#include "provider/prompt.h"
#include "provider/reply_schema.h"
#include "wire/json.h"

/* Default for max_tokens, which this API requires. */
#define OUTPUT_TOKENS 8192

#define BUDGET_TOKENS_MIN 1024 /* minimum that the API accepts */
#define THINKING_TOP_P_MIN 0.95

/* The API refuses blank text, a conversation that begins with the assistant and, for newer
 * models, one that ends with it. The texts of prompt.h fill in. */

/* --- thinking ----------------------------------------------------------------------------- */

/* Models that take a thinking budget in tokens. Later models refuse a budget; they take an
 * effort. */
static const struct str budget_models[] = {
    STR_INIT("claude-2"),          STR_INIT("claude-instant"),    STR_INIT("claude-3"),
    STR_INIT("claude-opus-4-0"),   STR_INIT("claude-opus-4-1"),   STR_INIT("claude-opus-4-2"),
    STR_INIT("claude-opus-4-5"),   STR_INIT("claude-sonnet-4-0"), STR_INIT("claude-sonnet-4-2"),
    STR_INIT("claude-sonnet-4-5"), STR_INIT("claude-haiku-4"),
};

/* An effort in tokens: the budget for models that take one, and for all models the room that
 * thinking adds to the answer's limit. */
static const struct {
    struct str effort;
    int64_t tokens;
} budgets[] = {
    {STR_INIT("low"), 2048},
    {STR_INIT("medium"), 8192},
    {STR_INIT("high"), 16384},
};

struct thinking {
    enum { THINKING_OFF, THINKING_BUDGET, THINKING_ADAPTIVE } kind;
    int64_t budget;
    struct str effort;
    int64_t output_tokens; /* max_tokens: the answer and the thinking */
};

/* Gateways also write "claude-sonnet-4.5" and "claude-sonnet-4@20250514". */
static bool anthropic_is_of(struct str model, struct str family) {
    for (size_t i = 0; i < family.len; i++) {
        if (i == model.len) return false;
        bool divides = model.at[i] == '.' || model.at[i] == '@';
        if ((divides ? '-' : model.at[i]) != family.at[i]) return false;
    }
    return true;
}

static bool adapts(struct str model) {
    model = str_skip(model, str_find(model, STR("claude-"))); /* after "anthropic/" etc. */
    if (model.len == 0) return false; /* another vendor's model: assume the older API */
    if (str_equal(model, STR("claude-opus-4")) || str_equal(model, STR("claude-sonnet-4")))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(budget_models); i++) {
        if (anthropic_is_of(model, budget_models[i])) return false;
    }
    return true;
}

static bool budget_of(struct str effort, int64_t *ret, struct err *e) {
    for (size_t i = 0; i < ARRAY_LEN(budgets); i++) {
        if (!str_equal(effort, budgets[i].effort)) continue;
        *ret = budgets[i].tokens;
        return true;
    }
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "effort '" STR_FMT "' is not known to Anthropic's models; say low, medium "
                   "or high",
                   STR_ARG(effort));
}

/* The turn that the reply must continue, or NULL. */
static const struct prompt_turn *prefill_of(const struct prompt *prompt) {
    const struct prompt_turn *last = prompt->turns + prompt->turn_count - 1;
    return prompt->turn_count && last->prefill ? last : NULL;
}

/* With a budget, an unfinished round of tool calls must have begun with thinking. If it began
 * without (with another model, perhaps), it is finished without. Messages of other agents, and
 * of a person in answer to it, do not end the round. */
static bool may_think(const struct prompt *prompt) {
    const struct prompt_turn *turns = prompt->turns, *first = NULL;
    size_t i = prompt->turn_count;
    if (prefill_of(prompt)) return false;
    while (i > 0 && turns[i - 1].role == PROMPT_USER) i--;
    for (; i > 0 && (turns[i - 1].role == PROMPT_AGENT || turns[i - 1].foreign); i--) {
        if (turns[i - 1].role != PROMPT_AGENT) continue;
        if (turns[i - 1].call_count == 0) break;
        first = &turns[i - 1];
    }
    return !first || first->opaque.len > 0;
}

/* A configured budget is sent as it is, and refused here if the answer's limit cannot hold it.
 * A budget derived from an effort is lowered to fit. */
static bool decide_budget(const struct model_options *options, struct thinking *thinking,
                          struct err *e) {
    int64_t output = options->output_tokens_max;
    bool chosen = options->thinking_tokens > 0;
    if (chosen) {
        thinking->budget = options->thinking_tokens;
    } else if (!budget_of(options->effort, &thinking->budget, e)) {
        return false;
    }
    if (chosen && thinking->budget < BUDGET_TOKENS_MIN)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "Anthropic's models think with %d tokens or more, not %lld",
                       BUDGET_TOKENS_MIN, (long long)thinking->budget);
    if (chosen && output > 0 && output <= thinking->budget)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "an answer of %lld tokens has no room to think with %lld; Anthropic "
                       "counts both together",
                       (long long)output, (long long)thinking->budget);
    if (output > 0 && thinking->budget > output / 2 && !chosen) thinking->budget = output / 2;
    if (thinking->budget < BUDGET_TOKENS_MIN) return true; /* no room: thinking stays off */

    thinking->kind = THINKING_BUDGET;
    if (output == 0) thinking->output_tokens += thinking->budget;
    return true;
}

/* The API refuses to think when the request names the tool to call. The caller's choice
 * counts: it is for one reply, and the next one thinks again. */
static bool decide_thinking(struct str model, const struct prompt *prompt,
                            const struct model_options *options, bool forced,
                            struct thinking *thinking, struct err *e) {
    int64_t output = options->output_tokens_max;
    *thinking = (struct thinking){.kind = THINKING_OFF,
                                  .effort = STR_EMPTY,
                                  .output_tokens = output > 0 ? output : OUTPUT_TOKENS};
    if (options->thinking_tokens == 0 && options->effort.len == 0) return true;
    if (forced) return true;
    if (options->thinking_tokens > 0 || !adapts(model))
        return !may_think(prompt) || decide_budget(options, thinking, e);

    thinking->kind = THINKING_ADAPTIVE;
    thinking->effort = options->effort;
    if (!budget_of(options->effort, &thinking->budget, e)) return false;
    if (output == 0) thinking->output_tokens += thinking->budget;
    return true;
}

static void write_thinking(struct json_writer *w, const struct thinking *thinking) {
    if (thinking->kind == THINKING_OFF) return;
    json_member_object(w, "thinking");
    if (thinking->kind == THINKING_BUDGET) {
        json_member_str(w, "type", STR("enabled"));
        json_member_i64(w, "budget_tokens", thinking->budget);
    } else {
        json_member_str(w, "type", STR("adaptive"));
        json_member_str(w, "display", STR("summarized")); /* else thinking is not sent */
    }
    json_close(w);
}

/* --- blocks ------------------------------------------------------------------------------- */

/* Mark the end of a prefix that the vendor should cache. At most four marks are allowed; we set
 * three: after the tools, the instructions and the conversation. */
static void write_mark(struct json_writer *w, bool mark) {
    if (!mark) return;
    json_member_object(w, "cache_control");
    json_member_str(w, "type", STR("ephemeral"));
    json_close(w);
}

static bool anthropic_is_blank(struct str text) {
    return str_trim(text).len == 0;
}

static void anthropic_write_text(struct json_writer *w, struct str text, bool mark) {
    json_open_object(w);
    json_member_str(w, "type", STR("text"));
    json_member_str(w, "text", text);
    write_mark(w, mark);
    json_close(w);
}

/* Arguments must be a JSON object. Others are sent as {}; the call's result says what was
 * wrong. */
static struct str input_of(const struct message *call) {
    struct json args;
    return json_read_object(call->text, &args) ? args.raw : STR("{}");
}

/* With ids of the prompt's own: this API refuses a conversation in which one recurs. */
static void anthropic_write_call(struct json_writer *w, const struct prompt_call *call) {
    json_open_object(w);
    json_member_str(w, "type", STR("tool_use"));
    body_call_id(w, "id", call->id, CALL_ID_LONG_MAX_BYTES);
    json_member_str(w, "name", call->call->tool);
    json_member_raw(w, "input", input_of(call->call));
    json_close(w);
}

static void anthropic_write_result(struct json_writer *w, const struct prompt_call *call,
                                   bool own_id, bool mark) {
    json_open_object(w);
    json_member_str(w, "type", STR("tool_result"));
    if (own_id) {
        json_member_str(w, "tool_use_id", call->id);
    } else {
        body_call_id(w, "tool_use_id", call->id, CALL_ID_LONG_MAX_BYTES);
    }
    json_member_str(w, "content", call->result->text);
    if (call->result->error) json_member_bool(w, "is_error", true);
    write_mark(w, mark);
    json_close(w);
}

/* --- messages ----------------------------------------------------------------------------- */

/* Consecutive turns of the same side form one message. */
struct messages {
    struct json_writer *w;
    struct str side; /* role of the open message; empty: none is open */
};

static void anthropic_open_message(struct messages *messages, struct str side) {
    if (str_equal(messages->side, side)) return;
    if (messages->side.len) {
        json_close(messages->w);
        json_close(messages->w);
    }
    messages->side = side;
    if (side.len == 0) return;
    json_open_object(messages->w);
    json_member_str(messages->w, "role", side);
    json_member_array(messages->w, "content");
}

static void anthropic_write_said(struct messages *messages, struct str text, bool mark) {
    anthropic_open_message(messages, STR("user"));
    anthropic_write_text(messages->w, anthropic_is_blank(text) ? PROMPT_BLANK : text, mark);
}

static void anthropic_write_picture(struct json_writer *w, const struct part *part, bool mark) {
    json_open_object(w);
    json_member_str(w, "type", STR("image"));
    json_member_object(w, "source");
    if (part->url.kind != JSON_NONE) {
        json_member_str(w, "type", STR("url"));
        json_member_raw(w, "url", part->url.raw);
    } else {
        json_member_str(w, "type", STR("base64"));
        json_member_raw(w, "media_type", part->media_type.raw);
        json_member_raw(w, "data", part->data.raw);
    }
    json_close(w);
    write_mark(w, mark);
    json_close(w);
}

/* One block per part. The API refuses blank text, so it is replaced by PROMPT_BLANK. */
static void anthropic_write_parts(struct messages *messages, struct str parts, bool mark) {
    struct json_reader reader = parts_enter(parts);
    struct part part, next;
    anthropic_open_message(messages, STR("user"));
    for (bool any = parts_next(&reader, &part); any; part = next) {
        any = parts_next(&reader, &next);
        bool last = mark && !any;
        struct buf text;
        buf_init(&text, part.text.raw.len + 1);
        if (part.kind == PART_IMAGE) {
            anthropic_write_picture(messages->w, &part, last);
        } else if (json_text(part.text, &text)) {
            anthropic_write_text(
                messages->w, anthropic_is_blank(buf_str(&text)) ? PROMPT_BLANK : buf_str(&text),
                last);
        }
        buf_done(&text);
    }
}

static void write_user(struct messages *messages, const struct prompt_turn *turn, bool mark) {
    if (turn->parts.len) {
        anthropic_write_parts(messages, turn->parts, mark);
    } else {
        anthropic_write_said(messages, turn->text, mark);
    }
}

static void open_agent(struct messages *messages) {
    if (messages->side.len == 0) anthropic_write_said(messages, PROMPT_OPENING, false);
    anthropic_open_message(messages, STR("assistant"));
}

static void write_reply(struct messages *messages, const struct prompt_turn *turn) {
    bool blank = anthropic_is_blank(turn->text);
    if (blank && turn->call_count == 0) return;
    open_agent(messages);
    if (!blank) anthropic_write_text(messages->w, turn->text, false);
    for (size_t i = 0; i < turn->call_count; i++)
        anthropic_write_call(messages->w, &turn->calls[i]);
}

static void write_agent(struct messages *messages, const struct prompt_turn *turn, bool last) {
    struct json blocks;
    bool as_it_came = body_read_opaque(turn->opaque, &blocks);
    if (as_it_came) {
        open_agent(messages);
        body_write_items(messages->w, blocks);
    } else {
        write_reply(messages, turn);
    }
    for (size_t i = 0; i < turn->call_count; i++) {
        bool mark = last && i + 1 == turn->call_count;
        anthropic_open_message(messages, STR("user"));
        anthropic_write_result(messages->w, &turn->calls[i], as_it_came, mark);
    }
}

static void write_messages(struct json_writer *w, const struct prompt *prompt) {
    struct messages messages = {.w = w, .side = STR_EMPTY};
    json_member_array(w, "messages");
    for (size_t i = 0; i < prompt->turn_count; i++) {
        const struct prompt_turn *turn = &prompt->turns[i];
        bool last = i + 1 == prompt->turn_count;
        switch (turn->role) {
        case PROMPT_USER: write_user(&messages, turn, last); break;
        case PROMPT_AGENT: write_agent(&messages, turn, last); break;
        case PROMPT_SYSTEM: break; /* write_system() has sent it; see prompt_check_system() */
        }
    }
    bool ends = str_equal(messages.side, STR("user")) || prefill_of(prompt);
    if (!ends) anthropic_write_said(&messages, PROMPT_GO_ON, false);
    anthropic_open_message(&messages, STR_EMPTY);
    json_close(w);
}

/* --- unsupported content ------------------------------------------------------------------ */

static bool check_prefill(const struct provider_request *request, const struct prompt *prompt,
                          struct str model, struct err *e) {
    const struct prompt_turn *prefill = prefill_of(prompt);
    if (!prefill || !adapts(model)) return true;
    return prompt_refuse(request, prefill, NO_PART, e,
                         STR_FMT " does not go on with an assistant's message; let the last "
                                 "one be a user's",
                         STR_ARG(str_head(model, 80)));
}

static bool is_picture(const struct part *part) {
    static const struct str types[] = {STR_INIT("image/jpeg"), STR_INIT("image/png"),
                                       STR_INIT("image/gif"), STR_INIT("image/webp")};
    if (part->url.kind != JSON_NONE) return str_starts(part->url.raw, STR("\"https:"));
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (json_is(part->media_type, types[i])) return true;
    }
    return false;
}

static bool check_parts(const struct provider_request *request, const struct prompt *prompt,
                        struct err *e) {
    for (size_t i = 0; i < prompt->turn_count; i++) {
        const struct prompt_turn *turn = &prompt->turns[i];
        struct json_reader reader = parts_enter(turn->parts);
        struct part part;
        for (size_t k = 0; parts_next(&reader, &part); k++) {
            if (part.kind == PART_TEXT || is_picture(&part)) continue;
            return prompt_refuse(request, turn, k, e,
                                 "Anthropic's models take pictures that are JPEG, PNG, GIF or "
                                 "WebP, or at an https: URL");
        }
    }
    return true;
}

static bool can_carry(const struct provider_request *request, const struct prompt *prompt,
                      struct str model, struct err *e) {
    return prompt_check_system(request, prompt, "Anthropic's", e) &&
           check_prefill(request, prompt, model, e) && check_parts(request, prompt, e);
}

/* --- the rest of the request -------------------------------------------------------------- */

static void write_words(struct json_writer *w, struct str schema, enum reply_form form) {
    struct buf words;
    buf_init(&words, schema.len + KIB);
    reply_schema_words(form, schema, &words);
    anthropic_write_text(w, buf_str(&words), true);
    buf_done(&words);
}

/* System turns at the start of the conversation are sent with the instructions, and so are the
 * words that ask for a reply of this form. */
static void write_system(struct json_writer *w, const struct provider_request *request,
                         const struct prompt *prompt, enum reply_form form) {
    size_t leading = prompt_leading_system(prompt);
    bool plain = !anthropic_is_blank(request->system);
    bool words = form != REPLY_PROSE && form != REPLY_STRICT;
    if (!plain && !leading && !words) return;
    json_member_array(w, "system");
    if (plain) anthropic_write_text(w, request->system, !leading && !words);
    for (size_t i = 0; i < leading; i++)
        anthropic_write_text(w, prompt->turns[i].text, !words && i + 1 == leading);
    if (words) write_words(w, request->schema, form);
    json_close(w);
}

static void write_tool_choice(struct json_writer *w, struct str choice) {
    bool any = str_equal(choice, STR(TOOL_CHOICE_REQUIRED));
    if (choice.len == 0) return;
    json_member_object(w, "tool_choice");
    json_member_str(w, "type", any ? STR("any") : STR("tool"));
    if (!any) json_member_str(w, "name", choice);
    json_close(w);
}

static bool anthropic_write_tools(struct json_writer *w, const struct provider_request *request,
                                  struct err *e) {
    if (request->tool_count == 0) return true;
    json_member_array(w, "tools");
    for (size_t i = 0; i < request->tool_count; i++) {
        const struct tool_offer *tool = &request->tools[i];
        json_open_object(w);
        if (!body_tool(w, tool, "input_schema", e)) return false;
        write_mark(w, i + 1 == request->tool_count);
        json_close(w);
    }
    json_close(w);
    write_tool_choice(w, request->tool_choice);
    return true;
}

/* The API refuses a sequence of blanks alone, which the run looks for itself. */
static void write_stops(struct json_writer *w, const struct model_options *options) {
    size_t written = 0;
    for (size_t i = 0; i < options->stop_count; i++) {
        if (anthropic_is_blank(options->stops[i])) continue;
        if (!written++) json_member_array(w, "stop_sequences");
        json_write_str(w, options->stops[i]);
    }
    if (written) json_close(w);
}

/* With thinking, the API refuses temperature and top_k, and accepts only a high top_p. It never
 * accepts temperature and top_p together. */
static void write_sampling(struct json_writer *w, const struct model_options *options,
                           const struct thinking *thinking) {
    bool thinks = thinking->kind != THINKING_OFF;
    bool warm = options->temperature >= 0 && !thinks;
    bool hot = options->bends && options->temperature > 1; /* others' scales go to 2 */
    if (warm) body_double(w, "temperature", hot ? 1 : options->temperature);
    if (!thinks && options->top_k) json_member_i64(w, "top_k", options->top_k);
    if (!warm && (!thinks || options->top_p >= THINKING_TOP_P_MIN))
        body_double(w, "top_p", options->top_p);
}

/* The API has no JSON mode, and refuses a schema that it cannot enforce: see write_system(). */
static void anthropic_write_output(struct json_writer *w, struct str effort, struct str schema,
                                   enum reply_form form) {
    if (effort.len == 0 && form != REPLY_STRICT) return;
    json_member_object(w, "output_config");
    if (effort.len) json_member_str(w, "effort", effort);
    if (form == REPLY_STRICT) {
        json_member_object(w, "format");
        json_member_str(w, "type", STR("json_schema"));
        json_member_raw(w, "schema", str_trim(schema));
        json_close(w);
    }
    json_close(w);
}

static bool anthropic_write_body(const struct dialect_settings *settings,
                                 const struct provider_request *request,
                                 const struct prompt *prompt, struct buf *out, struct err *e) {
    struct str model = body_model(settings, request);
    static const struct model_options none = MODEL_OPTIONS_NONE;
    const struct model_options *options = request->options ? request->options : &none;
    struct thinking thinking;
    enum reply_form form;
    if (!can_carry(request, prompt, model, e)) return false;
    if (!reply_form_of(request, SCHEMA_ANTHROPIC, &form, e)) return false;
    bool forced = request->tool_count && request->tool_choice.len;
    if (!decide_thinking(model, prompt, options, forced, &thinking, e)) return false;

    struct json_writer w = json_writer(out);
    json_open_object(&w);
    json_member_str(&w, "model", model);
    json_member_i64(&w, "max_tokens", thinking.output_tokens);
    json_member_bool(&w, "stream", !settings->whole);
    write_sampling(&w, options, &thinking);
    write_stops(&w, options);
    write_thinking(&w, &thinking);
    anthropic_write_output(&w, thinking.effort, request->schema, form);
    if (!anthropic_write_tools(&w, request, e)) return false;
    write_system(&w, request, prompt, form);
    write_messages(&w, prompt);
    json_close(&w);
    return body_complete(out, e);
}

static bool anthropic_body(const struct dialect_settings *settings,
                           const struct provider_request *request, struct buf *out,
                           struct err *e) {
    struct prompt prompt;
    if (body_model(settings, request).len == 0)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "no model is named; set one, 'claude-sonnet-4-5' for example");
    if (!prompt_init(&prompt, request, STR("anthropic"), e)) return false;
    bool fine = anthropic_write_body(settings, request, &prompt, out, e);
    prompt_done(&prompt);
    return fine;
}

/* Vendors document the base URL with and without the version. */
static void anthropic_url(const struct dialect_settings *settings,
                          const struct provider_request *request, struct buf *out) {
    (void)request;
    bool versioned = str_ends(settings->base_url, STR("/v1"));
    body_url(settings, versioned ? "/messages" : "/v1/messages", out);
}

static const struct http_header headers[] = {
    {STR_INIT("anthropic-version"), STR_INIT("2023-06-01")},
};

const struct dialect anthropic_dialect = {
    .name = "anthropic",
    .title = "Anthropic",
    .base_url = "https://api.anthropic.com",
    .key_env = {"ANTHROPIC_API_KEY"},
    .url = anthropic_url,
    .key_header = "x-api-key",
    .key_prefix = "",
    .headers = headers,
    .header_count = ARRAY_LEN(headers),
    .body = anthropic_body,
    .reader = &anthropic_reader,
};
