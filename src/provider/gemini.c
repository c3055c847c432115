/* Google's generateContent, for Gemini: writes requests. */
#include "provider/dialect.h"

#include "provider/body.h"
#include "provider/parts.h"
#include "provider/prompt.h"
#include "provider/reply_schema.h"
#include "wire/json.h"

/* The API refuses empty turns and a conversation that begins with the model. The texts of prompt.h
 * fill in. */

/* Newer models refuse a call of the current turn without its signature. The documentation gives
 * this value for calls made by other models; the API accepts it for any call. */
#define ANY_SIGNATURE STR("skip_thought_signature_validator")

/* --- models ------------------------------------------------------------------------------- */

/* Models that take a thinking budget in tokens, do not require signatures, and cannot combine a
 * schema with tools. Later models take a thinking level and can. */
static const struct str older_models[] = {
    STR_INIT("gemini-1"),   STR_INIT("gemini-2"), STR_INIT("gemini-robotics"),
    STR_INIT("gemini-exp"), STR_INIT("gemma"),    STR_INIT("learnlm"),
};

/* Thinking budgets of older models for each effort. */
static const struct {
    struct str effort;
    int64_t tokens;
} budgets[] = {
    {STR_INIT("low"), 1024},
    {STR_INIT("medium"), 8192},
    {STR_INIT("high"), 24576},
};

/* Without "models/" or "publishers/google/models/". */
static struct str name_of(struct str model) {
    for (;;) {
        size_t slash = str_find_byte(model, '/');
        if (slash == model.len) return model;
        model = str_skip(model, slash + 1);
    }
}

static bool is_older(struct str model) {
    struct str name = name_of(model);
    for (size_t i = 0; i < ARRAY_LEN(older_models); i++) {
        if (str_starts(name, older_models[i])) return true;
    }
    return false;
}

/* --- parts -------------------------------------------------------------------------------- */

static bool gemini_is_blank(struct str text) {
    return str_trim(text).len == 0;
}

static void gemini_write_text(struct json_writer *w, struct str text) {
    json_open_object(w);
    json_member_str(w, "text", text);
    json_close(w);
}

static void gemini_write_call(struct json_writer *w, const struct message *call, bool sign) {
    struct json args;
    bool object = json_read_object(call->text, &args);
    json_open_object(w);
    json_member_object(w, "functionCall");
    json_member_str(w, "name", call->tool);
    json_member_raw(w, "args", object ? args.raw : STR("{}"));
    json_close(w);
    if (sign) json_member_str(w, "thoughtSignature", ANY_SIGNATURE);
    json_close(w);
}

/* Whether the model itself gave the call this id. It must then be sent back with the result. */
static bool has_call_id(struct json parts, struct str call_id) {
    struct json part;
    for (struct json_reader at = json_enter(parts); json_next_item(&at, &part);) {
        if (json_is(json_find(json_find(part, STR("functionCall")), STR("id")), call_id))
            return true;
    }
    return false;
}

/* Write the result as an object: a failure gets a member "error", any other value a member
 * "output". */
static void write_response(struct json_writer *w, const struct message *result) {
    struct json object;
    bool is_object = json_read_object(result->text, &object);
    bool says_error = json_find(object, STR("error")).kind != JSON_NONE;
    json_key(w, STR("response"));
    if (is_object && (says_error || !result->error)) {
        json_write_raw(w, object.raw);
        return;
    }
    json_open_object(w);
    const char *key = result->error ? "error" : "output";
    if (is_object) {
        json_member_raw(w, key, object.raw);
    } else {
        json_member_str(w, key, result->text);
    }
    json_close(w);
}

static void gemini_write_result(struct json_writer *w, const struct prompt_call *call,
                                struct json parts) {
    json_open_object(w);
    json_member_object(w, "functionResponse");
    if (has_call_id(parts, call->call->call_id)) json_member_str(w, "id", call->call->call_id);
    json_member_str(w, "name", call->call->tool);
    write_response(w, call->result);
    json_close(w);
    json_close(w);
}

/* --- contents ----------------------------------------------------------------------------- */

/* Consecutive turns of the same kind form one content. Results have a content of their own,
 * with as many parts as there were calls. */
enum content { CONTENT_NONE, CONTENT_USER, CONTENT_RESULTS, CONTENT_MODEL };

struct contents {
    struct json_writer *w;
    bool sign; /* add a signature to calls that we write ourselves */
    enum content open;
};

static void close_content(struct contents *contents) {
    if (contents->open == CONTENT_NONE) return;
    json_close(contents->w);
    json_close(contents->w);
    contents->open = CONTENT_NONE;
}

static void open_content(struct contents *contents, enum content kind) {
    if (contents->open == kind) return;
    close_content(contents);
    json_open_object(contents->w);
    json_member_str(contents->w, "role", kind == CONTENT_MODEL ? STR("model") : STR("user"));
    json_member_array(contents->w, "parts");
    contents->open = kind;
}

static void gemini_write_said(struct contents *contents, struct str text) {
    open_content(contents, CONTENT_USER);
    gemini_write_text(contents->w, gemini_is_blank(text) ? PROMPT_BLANK : text);
}

/* The likely type of a file at a URL; some of Google's endpoints require it. */
static struct str gemini_type_of(struct str url) {
    static const struct {
        struct str ending, type;
    } types[] = {
        {STR_INIT(".png"), STR_INIT("image/png")},
        {STR_INIT(".jpg"), STR_INIT("image/jpeg")},
        {STR_INIT(".jpeg"), STR_INIT("image/jpeg")},
        {STR_INIT(".webp"), STR_INIT("image/webp")},
        {STR_INIT(".heic"), STR_INIT("image/heic")},
        {STR_INIT(".heif"), STR_INIT("image/heif")},
    };
    struct str path = str_head(url, str_find_byte(url, '?'));
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        struct str ending = types[i].ending;
        if (path.len < ending.len) continue;
        if (str_equal_nocase(str_skip(path, path.len - ending.len), ending))
            return types[i].type;
    }
    return STR_EMPTY;
}

static void gemini_write_picture(struct json_writer *w, const struct part *part) {
    json_open_object(w);
    if (part->url.kind != JSON_NONE) {
        struct str url = str_head(str_skip(part->url.raw, 1), part->url.raw.len - 2);
        struct str type = gemini_type_of(url);
        json_member_object(w, "fileData");
        if (type.len) json_member_str(w, "mimeType", type);
        json_member_raw(w, "fileUri", part->url.raw);
    } else {
        json_member_object(w, "inlineData");
        json_member_raw(w, "mimeType", part->media_type.raw);
        json_member_raw(w, "data", part->data.raw);
    }
    json_close(w);
    json_close(w);
}

static void write_user(struct contents *contents, const struct prompt_turn *turn) {
    struct json_reader reader = parts_enter(turn->parts);
    struct part part;
    if (turn->parts.len == 0) {
        gemini_write_said(contents, turn->text);
        return;
    }
    open_content(contents, CONTENT_USER);
    while (parts_next(&reader, &part)) {
        if (part.kind == PART_IMAGE) {
            gemini_write_picture(contents->w, &part);
            continue;
        }
        json_open_object(contents->w);
        if (json_is(part.text, STR("")))
            json_member_str(contents->w, "text", PROMPT_BLANK);
        else
            json_member_raw(contents->w, "text", part.text.raw);
        json_close(contents->w);
    }
}

static void open_model(struct contents *contents) {
    if (contents->open == CONTENT_NONE) gemini_write_said(contents, PROMPT_OPENING);
    open_content(contents, CONTENT_MODEL);
}

static void write_reply(struct contents *contents, const struct prompt_turn *turn) {
    bool blank = gemini_is_blank(turn->text);
    if (blank && turn->call_count == 0) return;
    open_model(contents);
    if (!blank) gemini_write_text(contents->w, turn->text);
    for (size_t i = 0; i < turn->call_count; i++)
        gemini_write_call(contents->w, turn->calls[i].call, contents->sign && i == 0);
}

static void write_model(struct contents *contents, const struct prompt_turn *turn) {
    struct json parts;
    if (body_read_opaque(turn->opaque, &parts)) {
        open_model(contents);
        body_write_items(contents->w, parts);
    } else {
        write_reply(contents, turn);
    }
    for (size_t i = 0; i < turn->call_count; i++) {
        open_content(contents, CONTENT_RESULTS);
        gemini_write_result(contents->w, &turn->calls[i], parts);
    }
}

static void write_contents(struct json_writer *w, const struct prompt *prompt, bool sign) {
    struct contents contents = {.w = w, .sign = sign, .open = CONTENT_NONE};
    json_member_array(w, "contents");
    for (size_t i = 0; i < prompt->turn_count; i++) {
        const struct prompt_turn *turn = &prompt->turns[i];
        switch (turn->role) {
        case PROMPT_USER: write_user(&contents, turn); break;
        case PROMPT_AGENT: write_model(&contents, turn); break;
        case PROMPT_SYSTEM: break; /* write_system() has sent it; see can_carry() */
        }
    }
    bool ends = contents.open == CONTENT_USER || contents.open == CONTENT_RESULTS;
    if (!ends) gemini_write_said(&contents, PROMPT_GO_ON);
    close_content(&contents);
    json_close(w);
}

/* --- unsupported content ------------------------------------------------------------------ */

static bool is_picture(const struct part *part) {
    static const struct str types[] = {STR_INIT("image/png"), STR_INIT("image/jpeg"),
                                       STR_INIT("image/webp"), STR_INIT("image/heic"),
                                       STR_INIT("image/heif")};
    if (part->url.kind != JSON_NONE) return true;
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (json_is(part->media_type, types[i])) return true;
    }
    return false;
}

static bool check_turn(const struct provider_request *request, const struct prompt_turn *turn,
                       struct err *e) {
    struct json_reader reader = parts_enter(turn->parts);
    struct part part;
    if (turn->prefill)
        return prompt_refuse(
            request, turn, NO_PART, e,
            "Google's models do not go on with an assistant's message; let the "
            "last one be a user's");
    for (size_t k = 0; parts_next(&reader, &part); k++) {
        if (part.kind == PART_TEXT || is_picture(&part)) continue;
        return prompt_refuse(request, turn, k, e,
                             "Google's models take pictures that are PNG, JPEG, WebP or HEIC");
    }
    return true;
}

static bool can_carry(const struct provider_request *request, const struct prompt *prompt,
                      struct err *e) {
    for (size_t i = 0; i < prompt->turn_count; i++) {
        if (!check_turn(request, &prompt->turns[i], e)) return false;
    }
    return prompt_check_system(request, prompt, "Google's", e);
}

/* --- the rest of the request -------------------------------------------------------------- */

/* System turns at the start are sent with the instructions, and so are the words that ask for
 * a reply of this form. */
static void write_system(struct json_writer *w, struct str system, const struct prompt *prompt,
                         struct str schema, enum reply_form words) {
    size_t leading = prompt_leading_system(prompt);
    if (gemini_is_blank(system) && !leading && words == REPLY_PROSE) return;
    json_member_object(w, "systemInstruction");
    json_member_array(w, "parts");
    if (!gemini_is_blank(system)) gemini_write_text(w, system);
    for (size_t i = 0; i < leading; i++) gemini_write_text(w, prompt->turns[i].text);
    if (words != REPLY_PROSE) {
        struct buf instruction;
        buf_init(&instruction, schema.len + KIB);
        reply_schema_words(words, schema, &instruction);
        gemini_write_text(w, buf_str(&instruction));
        buf_done(&instruction);
    }
    json_close(w);
    json_close(w);
}

/* A tool without parameters is sent without a schema. */
static bool write_parameters(struct json_writer *w, const struct tool_offer *tool,
                             struct err *e) {
    struct json schema;
    bool object = json_read_object(tool->parameters, &schema);
    bool none = object && json_count(json_find(schema, STR("properties"))) == 0;
    return none || tool->parameters.len == 0 ||
           body_schema(w, "parametersJsonSchema", tool->parameters, tool->name, e);
}

static void write_tool_choice(struct json_writer *w, struct str choice) {
    if (choice.len == 0) return;
    json_member_object(w, "toolConfig");
    json_member_object(w, "functionCallingConfig");
    json_member_str(w, "mode", STR("ANY"));
    if (!str_equal(choice, STR(TOOL_CHOICE_REQUIRED))) {
        json_member_array(w, "allowedFunctionNames");
        json_write_str(w, choice);
        json_close(w);
    }
    json_close(w);
    json_close(w);
}

static bool gemini_write_tools(struct json_writer *w, const struct provider_request *request,
                               struct err *e) {
    if (request->tool_count == 0) return true;
    json_member_array(w, "tools");
    json_open_object(w);
    json_member_array(w, "functionDeclarations");
    for (size_t i = 0; i < request->tool_count; i++) {
        const struct tool_offer *tool = &request->tools[i];
        json_open_object(w);
        json_member_str(w, "name", tool->name);
        json_member_str(w, "description", tool->description);
        if (!write_parameters(w, tool, e)) return false;
        json_close(w);
    }
    json_close(w);
    json_close(w);
    json_close(w);
    write_tool_choice(w, request->tool_choice);
    return true;
}

static bool write_thinking(struct json_writer *w, struct str model,
                           const struct model_options *options, struct err *e) {
    if (options->thinking_tokens == 0 && options->effort.len == 0) return true;
    json_member_object(w, "thinkingConfig");
    json_member_bool(w, "includeThoughts", true);
    bool known = options->thinking_tokens > 0;
    if (known) {
        json_member_i64(w, "thinkingBudget", options->thinking_tokens);
    } else if (!is_older(model)) {
        known = true;
        json_member_str(w, "thinkingLevel", options->effort);
    }
    for (size_t i = 0; i < ARRAY_LEN(budgets) && !known; i++) {
        if (!str_equal(options->effort, budgets[i].effort)) continue;
        known = true;
        json_member_i64(w, "thinkingBudget", budgets[i].tokens);
    }
    json_close(w);
    return known || err_set(e, ERR_INVALID_ARGUMENT,
                            "effort '" STR_FMT "' is not known to this Gemini model; "
                            "say low, medium or high",
                            STR_ARG(options->effort));
}

#define GEMINI_STOPS_MAX 5
#define PENALTY_MAX 1.99 /* the API takes less than 2 */

static void write_penalty(struct json_writer *w, const char *key, double penalty) {
    if (penalty == 0) return;
    json_key(w, str_from(key));
    json_write_double(w, penalty < PENALTY_MAX ? penalty : PENALTY_MAX);
}

/* Its seeds have 32 bits. */
static void write_more(struct json_writer *w, const struct model_options *options) {
    bool fits = options->seed >= INT32_MIN && options->seed <= INT32_MAX;
    if (options->top_k) json_member_i64(w, "topK", options->top_k);
    if (options->seeded && fits) json_member_i64(w, "seed", options->seed);
    write_penalty(w, "presencePenalty", options->presence_penalty);
    write_penalty(w, "frequencyPenalty", options->frequency_penalty);
    body_stops(w, "stopSequences", options, GEMINI_STOPS_MAX);
}

/* JSON mode has no schema: the API refuses an object of which nothing is said. */
static void write_form(struct json_writer *w, struct str schema, enum reply_form form) {
    if (form == REPLY_PROSE) return;
    json_member_str(w, "responseMimeType", STR("application/json"));
    if (form != REPLY_ANY_OBJECT) json_member_raw(w, "responseJsonSchema", str_trim(schema));
}

static bool write_config(struct json_writer *w, struct str model,
                         const struct model_options *options, struct str schema,
                         enum reply_form form, struct err *e) {
    json_member_object(w, "generationConfig");
    if (options->output_tokens_max > 0)
        json_member_i64(w, "maxOutputTokens", options->output_tokens_max);
    body_double(w, "temperature", options->temperature);
    body_double(w, "topP", options->top_p);
    write_more(w, options);
    if (!write_thinking(w, model, options, e)) return false;
    write_form(w, schema, form);
    json_close(w);
    return true;
}

static bool gemini_write_body(struct str model, const struct provider_request *request,
                              const struct prompt *prompt, struct buf *out, struct err *e) {
    static const struct model_options none = MODEL_OPTIONS_NONE;
    const struct model_options *options = request->options ? request->options : &none;
    bool in_words = request->tool_count && is_older(model);
    enum reply_form form;
    if (!reply_form_of(request, SCHEMA_OPENAI, &form, e)) return false;

    struct json_writer w = json_writer(out);
    json_open_object(&w);
    write_system(&w, request->system, prompt, request->schema, in_words ? form : REPLY_PROSE);
    if (!gemini_write_tools(&w, request, e)) return false;
    if (!write_config(&w, model, options, request->schema, in_words ? REPLY_PROSE : form, e))
        return false;
    write_contents(&w, prompt, !is_older(model));
    json_close(&w);
    return body_complete(out, e);
}

static bool gemini_body(const struct dialect_settings *settings,
                        const struct provider_request *request, struct buf *out,
                        struct err *e) {
    struct prompt prompt;
    struct str model = body_model(settings, request);
    if (model.len == 0)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "no model is named; set one, 'gemini-2.5-flash' for example");
    if (!prompt_init(&prompt, request, STR("gemini"), e)) return false;
    bool fine =
        can_carry(request, &prompt, e) && gemini_write_body(model, request, &prompt, out, e);
    prompt_done(&prompt);
    return fine;
}

/* --- the URL ------------------------------------------------------------------------------ */

static void gemini_url(const struct dialect_settings *settings,
                       const struct provider_request *request, struct buf *out) {
    struct str model = body_model(settings, request);
    bool pathed = str_find_byte(model, '/') < model.len; /* "models/x", "tunedModels/x" */
    buf_append(out, settings->base_url);
    buf_append(out, pathed ? STR("/") : STR("/models/"));
    buf_append_percent(out, model, "-_./@");
    buf_append(out, settings->whole ? STR(":generateContent")
                                    : STR(":streamGenerateContent?alt=sse"));
    if (settings->query.len)
        buf_printf(out, "%c" STR_FMT, settings->whole ? '?' : '&', STR_ARG(settings->query));
}

const struct dialect gemini_dialect = {
    .name = "gemini",
    .title = "Gemini",
    .base_url = "https://generativelanguage.googleapis.com/v1beta",
    .key_env = {"GEMINI_API_KEY", "GOOGLE_API_KEY"},
    .url = gemini_url,
    .key_header = "x-goog-api-key",
    .key_prefix = "",
    .body = gemini_body,
    .reader = &gemini_reader,
};
