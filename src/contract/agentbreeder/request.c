#include "contract/agentbreeder/request.h"

#include "base/mem.h"

#include <assert.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <sys/random.h>

#define UUID_LEN 36

static bool too_large(struct err *e) {
    return err_set(e, ERR_RESOURCE_EXHAUSTED, "the request is larger than a turn may hold");
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

/* Where a session id may stand in the body, the strongest first. */
static const struct {
    const char *path[3];
    bool is_thread;
} session_places[] = {
    {{"session_id"}, false},
    {{"thread_id"}, true},
    {{"config", "thread_id"}, true},
    {{"config", "session_id"}, false},
    {{"config", "configurable", "thread_id"}, true},
};

static struct json find_path(struct json object, const char *const path[3]) {
    for (size_t i = 0; i < 3 && path[i]; i++) object = json_find(object, str_from(path[i]));
    return object;
}

static bool is_absent(struct json value) {
    return value.kind == JSON_NONE || value.kind == JSON_NULL;
}

static bool take_session(struct json body, struct str header, struct arena *arena,
                         struct runtime_request *ret, struct err *e) {
    for (size_t i = 0; i < ARRAY_LEN(session_places); i++) {
        struct json value = find_path(body, session_places[i].path);
        if (is_absent(value)) continue;
        if (value.kind != JSON_STRING) {
            return err_set(e, ERR_INVALID_ARGUMENT, "%s must be a string, not %s",
                           session_places[i].is_thread ? "thread_id" : "session_id",
                           json_kind_name(value.kind));
        }
        struct str session;
        if (!json_str(value, arena, &session)) return too_large(e);
        if (session.len == 0) continue;
        ret->session = session;
        ret->names_session = true;
        ret->used_thread_id = session_places[i].is_thread;
        return true;
    }
    if (header.len) {
        ret->session = header;
        ret->names_session = true;
        return true;
    }
    return new_uuid(arena, &ret->session) || too_large(e);
}

/* --- input -------------------------------------------------------------------------------- */

/* The text of one message: a string, or the first text part of an array of parts. */
static struct json content_of(struct json message) {
    struct json content = json_find(message, STR("content"));
    if (content.kind != JSON_ARRAY) return content;
    struct json_reader reader = json_enter(content);
    struct json part;
    while (json_next_item(&reader, &part)) {
        struct json text = json_find(part, STR("text"));
        if (text.kind == JSON_STRING) return text;
    }
    return content;
}

static struct json last_message(struct json messages) {
    size_t count = json_count(messages);
    return count ? content_of(json_at(messages, count - 1)) : (struct json){0};
}

/* The words in an input that is no string: a text handler's customary keys, or the last
 * message of a conversation; JSON_NONE when it holds neither. */
static struct json words_of(struct json input) {
    static const char *const keys[] = {"message",  "input",  "query",
                                       "question", "prompt", "text"};
    if (input.kind == JSON_ARRAY) return last_message(input);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        struct json value = json_find(input, str_from(keys[i]));
        if (value.kind == JSON_STRING && !json_is(value, STR(""))) return value;
    }
    struct json messages = json_find(input, STR("messages"));
    return messages.kind == JSON_ARRAY ? last_message(messages) : (struct json){0};
}

static bool compact(struct json value, struct arena *arena, struct str *ret) {
    struct buf text;
    buf_init(&text, value.raw.len + 1);
    bool fits = json_compact(value.raw, &text) && arena_str(arena, buf_str(&text), ret);
    buf_done(&text);
    return fits;
}

static bool take_text(struct json input, struct arena *arena, struct str *ret) {
    struct json words = input.kind == JSON_STRING ? input : words_of(input);
    bool empty = input.kind != JSON_STRING && json_is(words, STR(""));
    if (words.kind == JSON_STRING && !empty) return json_str(words, arena, ret);
    return compact(input, arena, ret);
}

/* `input`, or one of the names that callers outside the contract give it. */
static struct json input_of(struct json body) {
    struct json input = json_find(body, STR("input"));
    if (input.kind == JSON_NONE) input = json_find(body, STR("input_message"));
    if (input.kind == JSON_NONE && json_find(body, STR("messages")).kind == JSON_ARRAY) {
        input = body; /* {"messages":[...]} is the input itself */
    }
    return input;
}

static bool check_types(struct json body, struct err *e) {
    static const char *const objects[] = {"config", "metadata"};
    for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
        struct json value = json_find(body, str_from(objects[i]));
        if (!is_absent(value) && value.kind != JSON_OBJECT) {
            return err_set(e, ERR_INVALID_ARGUMENT, "%s must be an object, not %s", objects[i],
                           json_kind_name(value.kind));
        }
    }
    return true;
}

static bool take_user(struct json body, struct arena *arena, struct runtime_request *ret) {
    static const char *const path[] = {"config", "configurable", "user_id"};
    struct json user = find_path(body, path);
    if (user.kind == JSON_STRING && !json_is(user, STR(""))) {
        return json_str(user, arena, &ret->user);
    }
    ret->user = STR("anonymous");
    return true;
}

/* --- what is asked, in a few bytes -------------------------------------------------------- */

static void add_piece(struct sha256_ctx *sum, struct str piece) {
    uint64_t len = piece.len;
    sha256_update(sum, sizeof(len), (const uint8_t *)&len);
    if (len) sha256_update(sum, piece.len, (const uint8_t *)piece.at);
}

/* Without the spaces that mean nothing. */
static bool add_json(struct sha256_ctx *sum, struct json value) {
    struct buf text;
    buf_init(&text, value.raw.len + 1);
    bool fits = json_compact(value.raw, &text);
    if (fits) add_piece(sum, buf_str(&text));
    buf_done(&text);
    return fits;
}

/* A session that was made up for the caller is no part of it. */
static bool take_print(struct json body, struct json input, struct arena *arena,
                       struct runtime_request *ret) {
    struct json config = json_find(body, STR("config"));
    struct sha256_ctx sum;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_init(&sum);
    if (!add_json(&sum, input)) return false;
    if (!is_absent(config) && !add_json(&sum, config)) return false;
    add_piece(&sum, ret->names_session ? ret->session : STR_EMPTY);
    sha256_digest(&sum, sizeof(digest), digest);
    return arena_str(arena, str_of(digest, sizeof(digest)), &ret->print);
}

/* Every body here is one object; `example` is what it should hold. */
static bool read_body(struct str text, const char *example, struct json *ret, struct err *e) {
    if (text.len == 0) {
        return err_set(e, ERR_MALFORMED, "the body is empty; send a JSON object with %s",
                       example);
    }
    if (!json_read(text, ret, e)) return false;
    if (ret->kind == JSON_OBJECT) return true;
    return err_set(e, ERR_INVALID_ARGUMENT, "the body must be a JSON object, not %s",
                   json_kind_name(ret->kind));
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
    if (!json_is(input, STR(""))) return true;
    return err_set(e, ERR_INVALID_ARGUMENT, "input must not be empty");
}

bool runtime_request_parse(struct str text, struct str header_session, struct arena *arena,
                           struct runtime_request *ret, struct err *e) {
    struct json body = {0};
    *ret = (struct runtime_request){0};
    if (!read_body(text, "\"input\"", &body, e)) return false;
    struct json input = input_of(body);
    if (!check_input(input, e) || !check_types(body, e)) return false;
    if (!take_session(body, header_session, arena, ret, e)) return false;
    ret->wants_text = input.kind == JSON_STRING;
    if (take_text(input, arena, &ret->text) && take_user(body, arena, ret) &&
        take_print(body, input, arena, ret)) {
        return true;
    }
    return too_large(e);
}

/* --- /resume ------------------------------------------------------------------------------ */

bool resume_request_parse(struct str text, struct arena *arena, struct resume_request *ret,
                          struct err *e) {
    struct json body = {0};
    *ret = (struct resume_request){0};
    if (!read_body(text, "\"thread_id\" and \"human_input\"", &body, e)) return false;
    struct json thread = json_find(body, STR("thread_id"));
    struct json words = json_find(body, STR("human_input"));
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
                                : compact(words, arena, &ret->text);
    return fits && json_str(thread, arena, &ret->thread) ? true : too_large(e);
}
