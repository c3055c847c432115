#include "mcp/tool_result.h"

#include "base/utf8.h"
#include "wire/base64.h"

/* Room for the largest answer with every byte escaped. */
#define RESULT_MAX_BYTES (32 * MIB)
#define NAMED_BYTES 200 /* of a type, an address or a name in our own line */

/* Of an error's details. Together with the words around them they fit struct err. */
#define DETAILS_MAX_BYTES 420
#define DETAILS_HEAD_BYTES 240
#define DETAILS_TAIL_BYTES 140

/* --- parts -------------------------------------------------------------------------------- */

static void part_begins(struct buf *out) {
    if (out->len && out->at[out->len - 1] != '\n') buf_append_byte(out, '\n');
}

/* `before` and the member's text, if it has any. */
static void append_named(struct json member, const char *before, struct buf *out) {
    struct buf text;
    buf_init(&text, RESULT_MAX_BYTES);
    json_text(member, &text);
    struct str shown = str_head(buf_str(&text), utf8_cut(buf_str(&text), NAMED_BYTES));
    if (shown.len) buf_printf(out, "%s" STR_FMT, before, STR_ARG(shown));
    buf_done(&text);
}

/* The size of what `data` holds in base64; some writers escape its slashes. */
static void append_size(struct json data, struct buf *out) {
    size_t digits = 0;
    if (data.kind != JSON_STRING) return;
    for (size_t i = 1; i + 1 < data.raw.len; i++)
        digits += data.raw.at[i] != '\\' && data.raw.at[i] != '=';
    buf_printf(out, ", %zu bytes", base64_decoded_len(digits));
}

static void append_left_out(const char *what, struct json data, struct json type,
                            struct buf *out) {
    part_begins(out);
    buf_printf(out, "[%s is not shown", what);
    append_named(type, ": ", out);
    append_size(data, out);
    buf_append_byte(out, ']');
}

static void append_text(struct json part, struct buf *out) {
    struct json text = json_find(part, STR("text"));
    if (text.kind != JSON_STRING || text.raw.len == strlen("\"\"")) return;
    part_begins(out);
    json_text(text, out);
}

static void append_image(struct json part, struct buf *out) {
    struct json data = json_find(part, STR("data"));
    struct json type = json_find(part, STR("mimeType"));
    append_left_out("an image", data, type, out);
}

static void append_audio(struct json part, struct buf *out) {
    struct json data = json_find(part, STR("data"));
    struct json type = json_find(part, STR("mimeType"));
    append_left_out("a sound", data, type, out);
}

static void append_resource(struct json part, struct buf *out) {
    struct json resource = json_find(part, STR("resource"));
    struct json uri = json_find(resource, STR("uri"));
    struct json text = json_find(resource, STR("text"));
    struct json blob = json_find(resource, STR("blob"));
    struct json type = json_find(resource, STR("mimeType"));
    part_begins(out);
    buf_append(out, STR("[resource"));
    append_named(uri, " ", out);
    buf_append_byte(out, ']');
    if (text.kind == JSON_STRING) {
        append_text(resource, out);
    } else {
        append_left_out("its content", blob, type, out);
    }
}

static void append_link(struct json part, struct buf *out) {
    struct json uri = json_find(part, STR("uri"));
    struct json name = json_find(part, STR("name"));
    struct json type = json_find(part, STR("mimeType"));
    part_begins(out);
    buf_append(out, STR("[link"));
    append_named(uri, " to ", out);
    append_named(name, ", ", out);
    append_named(type, ", ", out);
    buf_append_byte(out, ']');
}

static const struct {
    const char *type;
    void (*append)(struct json part, struct buf *out);
} parts[] = {
    {"text", append_text},         {"image", append_image},        {"audio", append_audio},
    {"resource", append_resource}, {"resource_link", append_link},
};

static void append_part(struct json part, struct buf *out) {
    struct json type = json_find(part, STR("type"));
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (!json_is(type, str_from(parts[i].type))) continue;
        parts[i].append(part, out);
        return;
    }
    append_left_out("a part", (struct json){.kind = JSON_NONE}, type, out);
}

enum which { ALL_PARTS, OTHER_THAN_TEXT };

static void append_parts(struct json content, enum which which, struct buf *out) {
    struct json part = {.kind = JSON_NONE};
    struct json_reader reader = json_enter(content);
    while (json_next_item(&reader, &part)) {
        struct json type = json_find(part, STR("type"));
        if (which == OTHER_THAN_TEXT && json_is(type, STR("text"))) continue;
        append_part(part, out);
    }
}

/* --- results ------------------------------------------------------------------------------ */

static bool is_failure(struct json result) {
    struct json flag = json_find(result, STR("isError"));
    bool failed = false;
    return json_bool(flag, &failed) && failed;
}

/* The last bytes, from the start of a character on. */
static struct str tail(struct str text, size_t bytes) {
    size_t from = text.len - bytes;
    while (from < text.len && ((unsigned char)text.at[from] & 0xC0) == 0x80) from++;
    return str_skip(text, from);
}

static bool fail(struct str details, struct err *e) {
    if (!details.len) return err_set(e, ERR_UNKNOWN, "Tool execution failed.");
    if (details.len <= DETAILS_MAX_BYTES)
        return err_set(e, ERR_UNKNOWN, "Tool execution failed. Details: " STR_FMT,
                       STR_ARG(details));
    struct str first = str_head(details, utf8_cut(details, DETAILS_HEAD_BYTES));
    struct str last = tail(details, DETAILS_TAIL_BYTES);
    return err_set(e, ERR_UNKNOWN,
                   "Tool execution failed. Details: " STR_FMT
                   " [%zu bytes are left out here] " STR_FMT,
                   STR_ARG(first), details.len - first.len - last.len, STR_ARG(last));
}

static void append_details(struct json content, struct json structured, struct buf *out) {
    append_parts(content, ALL_PARTS, out);
    if (structured.kind == JSON_NONE || json_count(structured) == 0) return;
    part_begins(out);
    json_compact(structured.raw, out);
}

static void append_output(struct json content, struct json structured, struct buf *text,
                          struct buf *out) {
    struct json_writer w = json_writer(out);
    append_parts(content, structured.kind == JSON_NONE ? ALL_PARTS : OTHER_THAN_TEXT, text);
    json_open_object(&w);
    if (structured.kind == JSON_NONE) {
        json_member_str(&w, "output", buf_str(text));
    } else {
        json_member_raw(&w, "output", structured.raw);
        if (text->len) json_member_str(&w, "left_out", buf_str(text));
    }
    json_close(&w);
}

bool mcp_tool_result(struct json result, struct buf *out, struct err *e) {
    struct json structured = json_find(result, STR("structuredContent"));
    struct json content = json_find(result, STR("content"));
    struct buf text;
    bool good = false;
    if (result.kind != JSON_OBJECT)
        return err_set(e, ERR_EFFECT_UNKNOWN, "the tool's result is %s, not an object",
                       json_kind_name(result.kind));
    if (structured.kind == JSON_NULL) structured = (struct json){.kind = JSON_NONE};
    buf_init(&text, RESULT_MAX_BYTES);
    if (is_failure(result)) {
        append_details(content, structured, &text);
        fail(buf_str(&text), e);
    } else {
        append_output(content, structured, &text, out);
        good = (buf_ok(&text) && buf_ok(out)) ||
               err_set(e, ERR_TOO_LARGE, "the tool's answer is too long");
    }
    buf_done(&text);
    return good;
}
