#include "validate/sse_body.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "wire/sse.h"

#include <stdlib.h>

#define MARK STR("\xef\xbb\xbf") /* a byte order mark, which may begin a stream */

struct reading {
    struct sse_body *body;
    size_t room;
    bool full;
};

static void sse_body_on_event(const struct sse_event *event, void *ctx) {
    struct reading *reading = ctx;
    struct sse_body *body = reading->body;
    struct sse_body_event kept = {.json = {.kind = JSON_NONE}};
    struct err none;
    if (body->count == SSE_BODY_EVENTS_MAX ||
        !arena_str(body->arena, event->type, &kept.type) ||
        !arena_str(body->arena, event->data, &kept.data)) {
        reading->full = true;
        return;
    }
    if (!json_read(kept.data, &kept.json, &none)) kept.json = (struct json){.kind = JSON_NONE};
    if (body->count == reading->room) {
        reading->room = reading->room ? reading->room * 2 : 64;
        body->events = mem_resize(body->events, reading->room * sizeof(*body->events));
    }
    body->events[body->count++] = kept;
}

static bool is_field(struct str line) {
    static const struct str names[] = {STR_INIT("event"), STR_INIT("data"), STR_INIT("id"),
                                       STR_INIT("retry")};
    struct str name = str_head(line, str_find_byte(line, ':'));
    if (name.len == 0) return true; /* an empty line, or a comment */
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_equal(name, names[i])) return true;
    }
    return false;
}

/* A line ends in LF, CR LF or CR. */
static struct str take_line(struct str *rest) {
    struct str line = str_head(*rest, str_find_byte(*rest, '\n'));
    line = str_head(line, str_find_byte(line, '\r'));
    *rest = str_skip(*rest, line.len);
    *rest = str_skip(*rest, str_starts(*rest, STR("\r\n")) ? 2 : 1);
    return line;
}

static struct str find_odd_line(struct str text) {
    while (text.len) {
        struct str line = take_line(&text);
        if (!is_field(line)) return line;
    }
    return (struct str){0};
}

static bool ends_blank(struct str text) {
    return text.len == 0 || str_ends(text, STR("\n\n")) || str_ends(text, STR("\r\n\r\n")) ||
           str_ends(text, STR("\r\r"));
}

/* A character that is cut off at the end is not wrong yet. */
static size_t find_odd_byte(struct str text) {
    size_t valid = utf8_valid_prefix(text);
    return valid + utf8_pending(str_skip(text, valid)) == text.len ? text.len : valid;
}

bool sse_body_read(struct str text, struct sse_body *ret, struct err *e) {
    struct reading reading = {.body = ret};
    struct sse *sse = sse_new(text.len + 1, sse_body_on_event, &reading);
    *ret = (struct sse_body){.arena = arena_new(4 * text.len + 64 * KIB)};
    bool good = sse_feed(sse, text, e);
    if (good && reading.full)
        good = err_set(e, ERR_TOO_LARGE, "the stream has more than %d events",
                       SSE_BODY_EVENTS_MAX);
    ret->odd_line = find_odd_line(str_starts(text, MARK) ? str_skip(text, MARK.len) : text);
    ret->valid = find_odd_byte(text);
    ret->cut = sse_midway(sse) || !ends_blank(text);
    sse_free(sse);
    if (!good) sse_body_done(ret);
    return good;
}

void sse_body_done(struct sse_body *body) {
    arena_free(body->arena);
    free(body->events);
    *body = (struct sse_body){.arena = NULL};
}
