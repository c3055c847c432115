/* Writes the requests to a server of the Runtime Contract. */
#include "agent/runtime.h"

#include "agent/kind.h"
#include "base/log.h"
#include "provider/body.h"

#define HISTORY_MEMBER "conversation_history"

#define NAMELESS_WORKSPACE "default"
#define NAMELESS_USER "anonymous"
#define INPUT_MAX_BYTES (64 * MIB)

/* --- the session -------------------------------------------------------------------------- */

static bool append_part(struct buf *out, struct str part) {
    for (size_t i = 0; i < part.len; i++) {
        char c = part.at[i];
        bool plain = c != '/' && c != '%';
        if (!(plain ? buf_append_byte(out, c)
                    : buf_append(out, c == '/' ? STR("%2F") : STR("%25"))))
            return false;
    }
    return true;
}

bool runtime_session_append(const struct provider_request *request, struct buf *out) {
    bool nameless = str_equal(request->workspace, STR(NAMELESS_WORKSPACE)) &&
                    str_equal(request->user, STR(NAMELESS_USER));
    if (!nameless) {
        append_part(out, request->workspace);
        buf_append_byte(out, '/');
        append_part(out, request->user);
        buf_append_byte(out, '/');
    }
    return append_part(out, request->session);
}

static void put_session(struct json_writer *w, const char *key,
                        const struct provider_request *request) {
    struct buf text;
    buf_init(&text,
             3 * (request->workspace.len + request->user.len + request->session.len) + KIB);
    runtime_session_append(request, &text);
    json_member_str(w, key, buf_str(&text));
    buf_done(&text);
}

/* --- the answer to a question ------------------------------------------------------------- */

/* The agent's question that the result at `index` answers, or NULL. */
static const struct message *question_of(const struct provider_request *request, size_t index) {
    const struct message *result = &request->messages[index];
    for (size_t i = index; i-- > request->turn_start;) {
        const struct message *call = &request->messages[i];
        if (call->role != MESSAGE_TOOL_CALL || !str_equal(call->call_id, result->call_id))
            continue;
        bool asks = json_find(json_of(call->text), STR(RUNTIME_THREAD)).kind == JSON_STRING;
        return asks && str_equal(call->agent, request->agent) ? call : NULL;
    }
    return NULL;
}

struct resumed {
    const struct message *question, *result;
};

/* Find a human's answer after which the agent has said nothing. */
static bool find_resumed(const struct provider_request *request, struct resumed *ret) {
    for (size_t i = request->message_count; i-- > request->turn_start;) {
        const struct message *message = &request->messages[i];
        if (message->role == MESSAGE_AGENT) return false;
        if (message->role != MESSAGE_TOOL_RESULT) continue;
        *ret = (struct resumed){question_of(request, i), message};
        return ret->question != NULL;
    }
    return false;
}

static bool is_whole(const struct provider_request *request) {
    struct resumed resumed;
    return find_resumed(request, &resumed);
}

/* JSON other than a number or a string is sent unchanged, as other callers of /resume do;
 * anything else is sent as a string. */
static void put_human_input(struct json_writer *w, struct json answer) {
    struct buf words;
    struct json value;
    struct err e;
    buf_init(&words, INPUT_MAX_BYTES);
    json_text(answer, &words);
    bool raw = json_read(buf_str(&words), &value, &e) && value.kind != JSON_NUMBER &&
               value.kind != JSON_STRING;
    if (raw) {
        json_member_raw(w, "human_input", value.raw);
    } else {
        json_member_str(w, "human_input", buf_str(&words));
    }
    buf_done(&words);
}

static void put_resume(struct json_writer *w, const struct provider_request *request,
                       const struct resumed *resumed) {
    struct json thread = json_find(json_of(resumed->question->text), STR(RUNTIME_THREAD));
    if (json_is(thread, STR_EMPTY)) {
        put_session(w, "thread_id", request);
    } else {
        json_member_raw(w, "thread_id", thread.raw);
    }
    put_human_input(w, json_find(json_of(resumed->result->text), STR("answer")));
}

/* --- a turn ------------------------------------------------------------------------------- */

static bool is_said(const struct message *message) {
    return (message->role == MESSAGE_USER || message->role == MESSAGE_AGENT) &&
           !message->error && message->text.len;
}

/* Write the earlier turns before the input, as AgentBreeder's playground does. */
static void append_transcript(const struct provider_request *request, size_t asked,
                              struct buf *out) {
    for (size_t i = 0; i < asked; i++) {
        const struct message *message = &request->messages[i];
        if (!is_said(message)) continue;
        buf_append(out, message->role == MESSAGE_USER ? STR("User: ") : STR("Assistant: "));
        buf_append(out, message->text);
        buf_append(out, STR("\n\n"));
    }
    if (out->len) buf_append(out, STR("User: "));
}

static bool history_is(struct json own, const char *where) {
    return json_is(json_find(own, STR("history")), str_from(where));
}

/* `sent`: the input as the caller wrote it; none: it was a text. */
static void put_input(struct json_writer *w, const struct provider_request *request,
                      struct json own, struct json sent) {
    size_t asked = agent_asked_at(request);
    struct message none = {.text = STR_EMPTY, .parts = STR_EMPTY};
    const struct message *message =
        asked < request->message_count ? &request->messages[asked] : &none;
    struct buf text;
    bool as_sent = sent.kind != JSON_NONE && asked == request->turn_start;
    if (as_sent && !history_is(own, "input")) {
        json_member_raw(w, "input", sent.raw);
        return;
    }
    buf_init(&text, INPUT_MAX_BYTES);
    if (history_is(own, "input")) append_transcript(request, asked, &text);
    buf_append(&text, message->text);
    if (message->parts.len) { /* text handlers read `message` */
        json_member_object(w, "input");
        json_member_str(w, "message", buf_str(&text));
        json_member_raw(w, "content", message->parts);
        json_close(w);
    } else {
        json_member_str(w, "input", buf_str(&text));
    }
    buf_done(&text);
}

static void put_history(struct json_writer *w, const struct provider_request *request) {
    json_member_array(w, HISTORY_MEMBER);
    for (size_t i = 0, asked = agent_asked_at(request); i < asked; i++) {
        const struct message *message = &request->messages[i];
        if (!is_said(message)) continue;
        json_open_object(w);
        json_member_str(w, "role",
                        message->role == MESSAGE_USER ? STR("user") : STR("assistant"));
        json_member_str(w, "content", message->text);
        json_close(w);
    }
    json_close(w);
}

static void put_member(struct json_writer *w, struct json key, struct json value) {
    struct buf name;
    buf_init(&name, key.raw.len + 1);
    json_text(key, &name);
    json_key(w, buf_str(&name));
    json_write_raw(w, value.raw);
    buf_done(&name);
}

/* Whether to leave out the member with this name. */
typedef bool is_left_out_fn(struct json key);

static bool is_no_identity(struct json key) {
    (void)key;
    return false;
}

/* A caller who could set these members could act as another user, or in another thread, on that
 * server. */
static bool is_identity(struct json key) {
    return json_is(key, STR("thread_id")) || json_is(key, STR("session_id")) ||
           json_is(key, STR("user_id"));
}

static bool has_member(struct json object, struct json key) {
    struct buf name;
    buf_init(&name, key.raw.len + 1);
    json_text(key, &name);
    bool found = json_find(object, buf_str(&name)).kind != JSON_NONE;
    buf_done(&name);
    return found;
}

static void put_members(struct json_writer *w, struct json object, struct json but,
                        is_left_out_fn *is_left_out) {
    struct json_reader reader = json_enter(object);
    struct json key, value;
    while (object.kind == JSON_OBJECT && json_next_member(&reader, &key, &value)) {
        if (is_left_out(key) || has_member(but, key)) continue;
        if (is_left_out == is_identity && json_is(key, STR("configurable"))) {
            json_member_object(w, "configurable");
            put_members(w, value, (struct json){.kind = JSON_NONE}, is_identity);
            json_close(w);
        } else {
            put_member(w, key, value);
        }
    }
}

/* Settings take precedence over what the caller sent. Some frameworks look for the thread
 * here. */
static void put_config(struct json_writer *w, const struct provider_request *request,
                       struct json settings, struct json caller) {
    json_member_object(w, "config");
    if (json_find(settings, STR("thread_id")).kind == JSON_NONE)
        put_session(w, "thread_id", request);
    if (json_find(settings, STR("user_id")).kind == JSON_NONE)
        json_member_str(w, "user_id", request->user);
    put_members(w, settings, (struct json){.kind = JSON_NONE}, is_no_identity);
    put_members(w, caller, settings, is_identity);
    json_close(w);
}

/* The history goes there under a name of its own: a caller's member of that name would be a second
 * one. */
static bool is_identity_or_history(struct json key) {
    return is_no_identity(key) || json_is(key, STR(HISTORY_MEMBER));
}

static void put_metadata(struct json_writer *w, const struct provider_request *request,
                         struct json own, struct json caller) {
    struct json settings = json_find(own, STR("metadata"));
    json_member_object(w, "metadata");
    bool adds = history_is(own, "metadata");
    is_left_out_fn *left_out = adds ? is_identity_or_history : is_no_identity;
    put_members(w, settings, (struct json){.kind = JSON_NONE}, left_out);
    put_members(w, caller, settings, left_out);
    if (adds) put_history(w, request);
    json_close(w);
}

static void put_turn(struct json_writer *w, const struct provider_request *request,
                     struct json own) {
    struct json extras =
        request->extras.len ? json_of(request->extras) : (struct json){.kind = JSON_NONE};
    put_input(w, request, own, json_find(extras, STR("input")));
    put_session(w, "session_id", request);
    put_session(w, "thread_id", request); /* as LangGraph's template calls it */
    put_config(w, request, json_find(own, STR("config")), json_find(extras, STR("config")));
    put_metadata(w, request, own, json_find(extras, STR("metadata")));
}

static bool runtime_write_body(const struct dialect_settings *settings,
                               const struct provider_request *request, struct buf *out,
                               struct err *e) {
    struct json_writer w = json_writer(out);
    struct json own = settings->own.len ? json_of(settings->own) : (struct json){0};
    struct resumed resumed;
    json_open_object(&w);
    if (find_resumed(request, &resumed)) {
        put_resume(&w, request, &resumed);
    } else {
        put_turn(&w, request, own);
    }
    json_close(&w);
    return body_complete(out, e);
}

static void runtime_write_url(const struct dialect_settings *settings,
                              const struct provider_request *request, struct buf *out) {
    if (is_whole(request)) {
        body_url(settings, "/resume", out);
    } else {
        body_url(settings, settings->whole ? "/invoke" : "/stream", out);
    }
}

/* --- version check ------------------------------------------------------------------------ */

static bool check_head(const struct http_head *head, struct str name) {
    uint64_t version = 0;
    if (!head->version.len) {
        log_warning("agent '" STR_FMT "': its server does not send X-Runtime-Contract-Version; "
                    "it is taken for version %d",
                    STR_ARG(name), RUNTIME_VERSION);
        return false;
    }
    if (str_to_u64(head->version, &version) && version <= RUNTIME_VERSION) return true;
    log_warning("agent '" STR_FMT "': its server speaks version " STR_FMT
                " of the Runtime Contract, and weir version %d; what is new there is not "
                "understood",
                STR_ARG(name), STR_ARG(head->version), RUNTIME_VERSION);
    return false;
}

const struct dialect runtime_dialect = {
    .name = "runtime",
    .title = "its server",
    .url = runtime_write_url,
    .key_header = "authorization",
    .key_prefix = "Bearer ",
    .body = runtime_write_body,
    .reader = &runtime_reader,
    .streamless = {404, 405, 501},
    .is_whole = is_whole,
    .check_head = check_head,
};
