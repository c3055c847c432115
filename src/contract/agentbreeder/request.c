#include "contract/agentbreeder/request.h"

#include "base/id.h"
#include "base/mem.h"
#include "conversation/import.h"
#include "schema/schema.h"
#include "wire/digest.h"

#include <assert.h>
#include <stdio.h>
#include <sys/random.h>

#define UUID_LEN 36

static bool agentbreeder_request_too_large(struct err *e) {
    return err_set(e, ERR_RESOURCE_EXHAUSTED, "the request is larger than a turn may hold");
}

/* --- what is read of a body, found in one walk over each of its objects --------------------- */

enum body_key {
    INPUT,
    INPUT_MESSAGE,
    MESSAGES,
    SESSION_ID,
    THREAD_ID,
    CONFIG,
    METADATA,
    CONTEXT,
    AGENT,
    HUMAN_INPUT,
    APPROVAL,
    BODY_KEYS
};
static const struct str body_keys[BODY_KEYS] = {
    STR_INIT("input"),       STR_INIT("input_message"), STR_INIT("messages"),
    STR_INIT("session_id"),  STR_INIT("thread_id"),     STR_INIT("config"),
    STR_INIT("metadata"),    STR_INIT("context"),       STR_INIT("agent"),
    STR_INIT("human_input"), STR_INIT("approval_id")};

enum config_key { CONFIG_THREAD, CONFIG_SESSION, CONFIGURABLE, OUTPUT_SCHEMA, CONFIG_KEYS };
static const struct str config_keys[CONFIG_KEYS] = {
    STR_INIT("thread_id"), STR_INIT("session_id"), STR_INIT("configurable"),
    STR_INIT("output_schema")};

enum inner_key { INNER_THREAD, INNER_USER, INNER_KEYS };
static const struct str inner_keys[INNER_KEYS] = {STR_INIT("thread_id"), STR_INIT("user_id")};

struct fields {
    struct json whole;
    struct json body[BODY_KEYS], config[CONFIG_KEYS], inner[INNER_KEYS]; /* of configurable */
};

/* Each of them may stand once. The contents of `input` are passed on unchecked. */
static bool find_fields(struct json whole, struct fields *ret, struct err *e) {
    ret->whole = whole;
    return json_find_once(whole, body_keys, BODY_KEYS, ret->body, e) &&
           json_find_once(ret->body[CONFIG], config_keys, CONFIG_KEYS, ret->config, e) &&
           json_find_once(ret->config[CONFIGURABLE], inner_keys, INNER_KEYS, ret->inner, e);
}

/* --- session ids -------------------------------------------------------------------------- */

static bool new_uuid(struct arena *arena, struct str *ret) {
    unsigned char b[16];
    ssize_t got = getrandom(b, sizeof(b), 0);
    assert(got == sizeof(b));
    (void)got;
    b[6] = (unsigned char)((b[6] & 0x0F) | 0x40); /* RFC 9562 5.4: version 4 */
    b[8] = (unsigned char)((b[8] & 0x3F) | 0x80);
    char text[UUID_LEN + 1];
    snprintf(text, sizeof(text),
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
    return arena_str(arena, str_of(text, UUID_LEN), ret);
}

static bool request_take_session(const struct fields *fields, struct str header,
                                 struct arena *arena, struct runtime_request *ret,
                                 struct err *e) {
    /* Where the body may have one; the first one found wins. */
    const struct {
        struct json value;
        bool is_thread;
    } places[] = {{fields->body[SESSION_ID], false},
                  {fields->body[THREAD_ID], true},
                  {fields->config[CONFIG_THREAD], true},
                  {fields->config[CONFIG_SESSION], false},
                  {fields->inner[INNER_THREAD], true}};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        struct json value = places[i].value;
        const char *name = places[i].is_thread ? "thread_id" : "session_id";
        if (json_is_absent(value)) continue;
        if (value.kind != JSON_STRING) {
            return err_set(e, ERR_INVALID_ARGUMENT, "%s must be a string, not %s", name,
                           json_kind_name(value.kind));
        }
        struct str session;
        if (!json_str(value, arena, &session)) return agentbreeder_request_too_large(e);
        if (session.len == 0) continue;
        ret->session = session;
        ret->names_session = true;
        ret->used_thread_id = places[i].is_thread;
        return id_check(name, session, e);
    }
    if (header.len) {
        ret->session = header;
        ret->names_session = true;
        return id_check("X-Session-Id", header, e);
    }
    return new_uuid(arena, &ret->session) || agentbreeder_request_too_large(e);
}

/* --- input -------------------------------------------------------------------------------- */

/* Names of the member with the user's text, in order of preference. */
static const struct str words_keys[] = {STR_INIT("message"), STR_INIT("input"),
                                        STR_INIT("query"),   STR_INIT("question"),
                                        STR_INIT("prompt"),  STR_INIT("text")};

static bool is_said(struct json value) {
    return value.kind == JSON_STRING && !json_is(value, STR(""));
}

/* The name of the member with the text, or NULL. */
static const struct str *words_key(struct json input) {
    for (size_t i = 0; i < ARRAY_LEN(words_keys); i++) {
        if (is_said(json_find(input, words_keys[i]))) return &words_keys[i];
    }
    return NULL;
}

/* Whether the items of an array are messages, not other JSON. */
static bool is_list(struct json array) {
    struct json first = json_at(array, 0);
    return json_find(first, STR("role")).kind != JSON_NONE ||
           json_find(first, STR("content")).kind != JSON_NONE;
}

/* The list of messages in an input, or JSON_NONE. */
static struct json list_of(struct json input) {
    if (input.kind == JSON_ARRAY && is_list(input)) return input;
    struct json list = json_find(input, STR("messages"));
    return list.kind == JSON_ARRAY ? list : (struct json){0};
}

/* Whether the model should see this member. An empty member with a name for text is left
 * out. */
static bool is_beside(struct json key, struct json value, struct str taken) {
    if (json_is(key, taken)) return false;
    for (size_t i = 0; i < ARRAY_LEN(words_keys); i++) {
        if (json_is(key, words_keys[i]) && json_is(value, STR(""))) return false;
    }
    return true;
}

/* Append the members other than `taken` as one object; nothing if there are none. */
static bool append_beside(struct json input, struct str taken, struct buf *out) {
    struct json_reader reader = json_enter(input);
    struct json key, value;
    bool any = false;
    while (json_next_member(&reader, &key, &value)) {
        if (!is_beside(key, value, taken)) continue;
        buf_append(out, any ? STR(",") : STR("{"));
        buf_append(out, key.raw);
        buf_append(out, STR(":"));
        json_compact(value.raw, out);
        any = true;
    }
    return !any || buf_append(out, STR("}"));
}

/* Give the model the other fields of the input, as a block after the text. */
static bool add_beside(struct json input, struct str taken, struct message *message,
                       struct arena *arena) {
    struct buf block;
    if (input.kind != JSON_OBJECT) return true;
    buf_init(&block, 2 * input.raw.len + 2);
    bool fits = append_beside(input, taken, &block) &&
                (block.len == 0 || import_add_text(message, buf_str(&block), arena));
    buf_done(&block);
    return fits;
}

static struct message *last_of_user(const struct import *import) {
    size_t i = import->count - 1;
    while (i > 0 && import->messages[i].role != MESSAGE_USER) i--;
    return &import->messages[i];
}

static bool take_list(struct json list, struct json input, struct arena *arena,
                      struct runtime_request *ret, struct err *e) {
    struct import import;
    if (!import_read(list, arena, &import, e)) return false;
    struct message *asked = last_of_user(&import);
    if (!add_beside(input, STR("messages"), asked, arena))
        return agentbreeder_request_too_large(e);
    ret->messages = import.messages;
    ret->message_count = import.count;
    ret->text = asked->text;
    return true;
}

static bool take_words(struct json input, struct arena *arena, struct str *ret) {
    const struct str *key = input.kind == JSON_OBJECT ? words_key(input) : NULL;
    struct message message = {.parts = STR_EMPTY};
    if (input.kind == JSON_STRING) return json_str(input, arena, ret);
    if (!key) return json_compact_copy(input, arena, ret);
    if (!json_str(json_find(input, *key), arena, &message.text) ||
        !add_beside(input, *key, &message, arena))
        return false;
    *ret = message.text;
    return true;
}

/* If `body` itself is the input, it is {"messages":[...]} together with other fields of the
 * request. */
static bool take_input(struct json body, struct json input, struct arena *arena,
                       struct runtime_request *ret, struct err *e) {
    struct json list = list_of(input);
    bool is_body = input.raw.at == body.raw.at;
    if (list.kind == JSON_ARRAY) return take_list(list, is_body ? list : input, arena, ret, e);
    return take_words(input, arena, &ret->text) || agentbreeder_request_too_large(e);
}

/* The member `input`, or one of the other names that callers use for it. */
static struct json request_input_of(const struct fields *fields) {
    if (fields->body[INPUT].kind != JSON_NONE) return fields->body[INPUT];
    if (fields->body[INPUT_MESSAGE].kind != JSON_NONE) return fields->body[INPUT_MESSAGE];
    /* {"messages":[...]} is the input itself */
    return fields->body[MESSAGES].kind == JSON_ARRAY ? fields->whole : (struct json){0};
}

static bool check_types(const struct fields *fields, struct err *e) {
    static const enum body_key objects[] = {CONFIG, METADATA};
    for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
        struct json value = fields->body[objects[i]];
        if (!json_is_absent(value) && value.kind != JSON_OBJECT) {
            return err_set(e, ERR_INVALID_ARGUMENT, STR_FMT " must be an object, not %s",
                           STR_ARG(body_keys[objects[i]]), json_kind_name(value.kind));
        }
    }
    return true;
}

static bool take_user(const struct fields *fields, struct arena *arena,
                      struct runtime_request *ret, struct err *e) {
    struct json user = fields->inner[INNER_USER];
    ret->user = STR("anonymous");
    if (user.kind != JSON_STRING || json_is(user, STR(""))) return true;
    if (!json_str(user, arena, &ret->user)) return agentbreeder_request_too_large(e);
    return id_check("config.configurable.user_id", ret->user, e);
}

static bool take_agent(const struct fields *fields, struct arena *arena,
                       struct runtime_request *ret, struct err *e) {
    struct json agent = fields->body[AGENT];
    ret->agent = STR_EMPTY;
    if (json_is_absent(agent)) return true;
    if (agent.kind != JSON_STRING)
        return err_set(e, ERR_INVALID_ARGUMENT, "agent must be a string, not %s",
                       json_kind_name(agent.kind));
    return json_str(agent, arena, &ret->agent) || agentbreeder_request_too_large(e);
}

/* --- the fingerprint of a request --------------------------------------------------------- */

/* Fingerprint the request, without insignificant white space. A session id that was generated
 * here is not part of it. */
static bool request_take_print(struct json config, struct json input, struct json context,
                               struct arena *arena, struct runtime_request *ret) {
    struct buf inputs, configs, contexts;
    uint8_t digest[DIGEST_BYTES];
    struct str parts[7];
    size_t count = 0;
    buf_init(&inputs, input.raw.len + 1);
    buf_init(&configs, config.raw.len + 1);
    buf_init(&contexts, context.raw.len + 1);
    bool fits = json_compact(input.raw, &inputs) &&
                (json_is_absent(config) || json_compact(config.raw, &configs)) &&
                (json_is_absent(context) || json_compact(context.raw, &contexts));
    parts[count++] = buf_str(&inputs);
    if (!json_is_absent(config)) parts[count++] = buf_str(&configs);
    parts[count++] = ret->names_session ? ret->session : STR_EMPTY;
    if (ret->agent.len) { /* two parts, so that it is not taken for a session */
        parts[count++] = STR("agent");
        parts[count++] = ret->agent;
    }
    if (!json_is_absent(context)) {
        parts[count++] = STR("context");
        parts[count++] = buf_str(&contexts);
    }
    digest_parts(parts, count, digest);
    buf_done(&inputs);
    buf_done(&configs);
    buf_done(&contexts);
    return fits && arena_str(arena, str_of(digest, sizeof(digest)), &ret->print);
}

/* Every body is one object; `example` says what it should contain. */
static bool agentbreeder_request_read_body(struct str text, const char *example,
                                           struct fields *ret, struct err *e) {
    struct json body = {0};
    if (text.len == 0) {
        return err_set(e, ERR_MALFORMED, "the body is empty; send a JSON object with %s",
                       example);
    }
    if (!json_read(text, &body, e)) return false;
    if (body.kind == JSON_OBJECT) return find_fields(body, ret, e);
    return err_set(e, ERR_INVALID_ARGUMENT, "the body must be a JSON object, not %s",
                   json_kind_name(body.kind));
}

static bool check_input(struct json input, struct err *e) {
    if (input.kind == JSON_NONE) {
        return err_set(e, ERR_MALFORMED, "the required field \"input\" is missing");
    }
    if (input.kind != JSON_STRING && input.kind != JSON_OBJECT && input.kind != JSON_ARRAY) {
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "input must be a string, an object or an array, not %s",
                       json_kind_name(input.kind));
    }
    return true;
}

static bool take_schema(struct json value, struct runtime_request *ret, struct err *e) {
    struct schema *schema;
    ret->schema = STR_EMPTY;
    if (json_is_absent(value)) return true;
    if (value.kind != JSON_OBJECT)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "config.output_schema must be an object, not %s",
                       json_kind_name(value.kind));
    if (!schema_read(value.raw, &schema, e)) {
        e->code = ERR_INVALID_ARGUMENT;
        return err_add(e, "config.output_schema");
    }
    schema_free(schema);
    ret->schema = value.raw;
    return true;
}

/* `context` beside an `input_message` is metadata under that name. */
static void append_metadata(struct json metadata, struct json context, struct buf *out) {
    bool adds =
        !json_is_absent(context) && json_find(metadata, STR("context")).kind == JSON_NONE;
    if (metadata.kind != JSON_OBJECT) metadata.raw = STR("{}");
    buf_append(out, STR("\"metadata\":"));
    buf_append(out, adds ? str_head(metadata.raw, metadata.raw.len - 1) : metadata.raw);
    if (!adds) return;
    buf_append(out, json_count(metadata) ? STR(",\"context\":") : STR("\"context\":"));
    buf_append(out, context.raw);
    buf_append_byte(out, '}');
}

static void put_extra(struct buf *text, const char *key, struct str raw) {
    if (text->len > 1) buf_append_byte(text, ',');
    buf_printf(text, "\"%s\":", key);
    buf_append(text, raw);
}

/* An input that is more than a text goes along as it came: agents that are programs or servers
 * read it themselves. Where the body is the input, that is its list alone. */
static void put_input(const struct fields *fields, struct json input, struct buf *text) {
    bool is_body = input.raw.at == fields->whole.raw.at;
    if (input.kind == JSON_STRING) return;
    put_extra(text, "input", is_body ? STR("{\"messages\":") : input.raw);
    if (!is_body) return;
    buf_append(text, fields->body[MESSAGES].raw);
    buf_append_byte(text, '}');
}

static bool request_take_extras(const struct fields *fields, struct json input,
                                struct arena *arena, struct runtime_request *ret) {
    struct json config = fields->body[CONFIG];
    struct json metadata = fields->body[METADATA];
    struct json context = fields->body[CONTEXT];
    bool aside = fields->body[INPUT].kind != JSON_NONE;
    if (aside) context = (struct json){.kind = JSON_NONE};
    struct buf text;
    ret->extras = STR_EMPTY;
    if (input.kind == JSON_STRING && json_is_absent(config) && json_is_absent(metadata) &&
        json_is_absent(context))
        return true;
    buf_init(&text, fields->whole.raw.len + 96);
    buf_append_byte(&text, '{');
    put_input(fields, input, &text);
    if (!json_is_absent(config)) put_extra(&text, "config", config.raw);
    if (!json_is_absent(metadata) || !json_is_absent(context)) {
        if (text.len > 1) buf_append_byte(&text, ',');
        append_metadata(metadata, context, &text);
    }
    buf_append_byte(&text, '}');
    bool kept = buf_ok(&text) && json_compact_copy((struct json){JSON_OBJECT, buf_str(&text)},
                                                   arena, &ret->extras);
    buf_done(&text);
    return kept;
}

bool runtime_request_parse(struct str text, struct str header_session, bool keyed,
                           struct arena *arena, struct runtime_request *ret, struct err *e) {
    struct fields fields;
    *ret = (struct runtime_request){.print = STR_EMPTY};
    if (!agentbreeder_request_read_body(text, "\"input\"", &fields, e)) return false;
    struct json input = request_input_of(&fields);
    if (!check_input(input, e) || !check_types(&fields, e)) return false;
    if (!request_take_session(&fields, header_session, arena, ret, e)) return false;
    if (!take_input(fields.whole, input, arena, ret, e)) return false;
    if (!take_schema(fields.config[OUTPUT_SCHEMA], ret, e)) return false;
    ret->wants_text = input.kind == JSON_STRING;
    if (!take_user(&fields, arena, ret, e) || !take_agent(&fields, arena, ret, e)) return false;
    if (!request_take_extras(&fields, input, arena, ret))
        return agentbreeder_request_too_large(e);
    struct json context = {.kind = JSON_NONE, .raw = STR_EMPTY};
    if (fields.body[INPUT].kind == JSON_NONE) context = fields.body[CONTEXT];
    return !keyed || request_take_print(fields.body[CONFIG], input, context, arena, ret) ||
           agentbreeder_request_too_large(e);
}

/* --- /resume ------------------------------------------------------------------------------ */

bool resume_request_parse(struct str text, struct arena *arena, struct resume_request *ret,
                          struct err *e) {
    struct fields fields;
    *ret = (struct resume_request){0};
    if (!agentbreeder_request_read_body(text, "\"thread_id\" and \"human_input\"", &fields, e))
        return false;
    struct json thread = fields.body[THREAD_ID], words = fields.body[HUMAN_INPUT];
    if (thread.kind != JSON_STRING) {
        return err_set(e, ERR_INVALID_ARGUMENT, "thread_id must be a string, not %s",
                       json_kind_name(thread.kind));
    }
    if (words.kind == JSON_NONE) {
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "human_input is missing; any JSON value will do, null too");
    }
    ret->wants_text = words.kind == JSON_STRING;
    bool fits = ret->wants_text ? json_str(words, arena, &ret->text)
                                : json_compact_copy(words, arena, &ret->text);
    /* An invalid thread id cannot exist, so it is answered like an unknown one (404). */
    return (fits && json_str(thread, arena, &ret->thread)) || agentbreeder_request_too_large(e);
}
