#include "contract/a2a/parts.h"

#include "base/utf8.h"
#include "conversation/image.h"
#include "wire/base64.h"

/* One part, whatever the dialect; what it does not have is JSON_NONE. */
struct part_of {
    struct json text, data, bytes, url, type, name;
};

struct parts {
    struct arena *arena;
    struct json_writer w;
    size_t index;
    bool pictures;
    struct err *e;
};

PRINTF_LIKE(3, 4)
static bool parts_refuse(struct parts *parts, enum err_code code, const char *format, ...) {
    char text[ERR_TEXT_BYTES];
    struct buf message = {.at = text, .room = sizeof(text), .max_bytes = sizeof(text)};
    va_list values;
    va_start(values, format);
    buf_vprintf(&message, format, values);
    va_end(values);
    return err_set(parts->e, code, "message.parts[%zu]: " STR_FMT, parts->index,
                   STR_ARG(buf_str(&message)));
}

static bool parts_too_large(struct parts *parts) {
    return parts_refuse(parts, ERR_RESOURCE_EXHAUSTED, "it is larger than a call may hold");
}

/* --- one part ----------------------------------------------------------------------------- */

static void write_part_text(struct parts *parts, struct str text) {
    json_open_object(&parts->w);
    json_member_str(&parts->w, "type", STR("text"));
    json_member_str(&parts->w, "text", text);
    json_close(&parts->w);
}

static bool text_part(struct parts *parts, struct json value) {
    struct str text;
    if (value.kind != JSON_STRING)
        return parts_refuse(parts, ERR_INVALID_ARGUMENT, "text must be a string, not %s",
                            json_kind_name(value.kind));
    if (!json_str(value, parts->arena, &text)) return parts_too_large(parts);
    write_part_text(parts, text);
    return true;
}

static bool data_part(struct parts *parts, struct json value) {
    struct str text;
    if (!json_compact_copy(value, parts->arena, &text)) return parts_too_large(parts);
    write_part_text(parts, text);
    return true;
}

static bool picture_part(struct parts *parts, const struct part_of *part, struct str type) {
    json_open_object(&parts->w);
    json_member_str(&parts->w, "type", STR("image"));
    if (part->bytes.kind == JSON_STRING) {
        json_member_str(&parts->w, "media_type", type);
        json_member_raw(&parts->w, "data", part->bytes.raw);
    } else {
        json_member_raw(&parts->w, "url", part->url.raw);
    }
    json_close(&parts->w);
    parts->pictures = true;
    return true;
}

/* A file that an agent can read as text: its name, then what is in it. */
static bool text_file(struct parts *parts, struct str name, struct str encoded) {
    size_t len = 0;
    char *room = arena_alloc(parts->arena, base64_decoded_len(encoded.len) + 1);
    if (!room) return parts_too_large(parts);
    if (!base64_decode(encoded, BASE64_STANDARD, BASE64_EITHER, room, &len))
        return parts_refuse(parts, ERR_INVALID_ARGUMENT,
                            "the bytes of the file are not base64");
    struct str text = str_of(room, len);
    if (!utf8_valid(text))
        return parts_refuse(parts, ERR_INVALID_ARGUMENT, "the file is not text in UTF-8");
    struct buf named;
    buf_init(&named, name.len + text.len + 2);
    buf_append(&named, name);
    if (name.len) buf_append(&named, STR(":\n"));
    buf_append(&named, text);
    write_part_text(parts, buf_str(&named));
    buf_done(&named);
    return true;
}

static bool is_text_type(struct str type) {
    return str_starts(type, STR("text/")) || str_equal(type, STR("application/json")) ||
           str_equal(type, STR("application/xml")) ||
           str_equal(type, STR("application/yaml")) || str_ends(type, STR("+json")) ||
           str_ends(type, STR("+xml"));
}

static bool file_part(struct parts *parts, const struct part_of *part) {
    struct str type = STR_EMPTY, name = STR_EMPTY, bytes = STR_EMPTY, rest;
    bool fits = (part->type.kind != JSON_STRING || json_str(part->type, parts->arena, &type)) &&
                (part->name.kind != JSON_STRING || json_str(part->name, parts->arena, &name));
    if (!fits) return parts_too_large(parts);
    type = str_trim(str_split(type, ';', &rest));
    if (image_is_type(type)) return picture_part(parts, part, type);
    if (part->bytes.kind == JSON_STRING && is_text_type(type)) {
        if (!json_str(part->bytes, parts->arena, &bytes)) return parts_too_large(parts);
        return text_file(parts, name, bytes);
    }
    return parts_refuse(parts, ERR_UNIMPLEMENTED,
                        "a file of the type '" STR_FMT "' %s; send pictures, or text with its "
                        "bytes, and say the media type",
                        STR_ARG(str_head(type, 80)),
                        part->bytes.kind == JSON_STRING ? "is not read here"
                                                        : "is not fetched from its address");
}

/* --- all of them -------------------------------------------------------------------------- */

static struct part_of part_of_0_3(struct json part) {
    struct json file = json_find(part, STR("file"));
    return (struct part_of){.text = json_find(part, STR("text")),
                            .data = json_find(part, STR("data")),
                            .bytes = json_find(file, STR("bytes")),
                            .url = json_find(file, STR("uri")),
                            .type = json_find(file, STR("mimeType")),
                            .name = json_find(file, STR("name"))};
}

static struct part_of part_of_1_0(struct json part) {
    return (struct part_of){.text = json_find(part, STR("text")),
                            .data = json_find(part, STR("data")),
                            .bytes = json_find(part, STR("raw")),
                            .url = json_find(part, STR("url")),
                            .type = json_find(part, STR("mediaType")),
                            .name = json_find(part, STR("filename"))};
}

static bool convert(struct parts *parts, const struct part_of *part) {
    bool file = part->bytes.kind == JSON_STRING || part->url.kind == JSON_STRING;
    if (part->text.kind != JSON_NONE) return text_part(parts, part->text);
    if (part->data.kind != JSON_NONE) return data_part(parts, part->data);
    if (file) return file_part(parts, part);
    return parts_refuse(parts, ERR_INVALID_ARGUMENT, "it has no text, no data and no file");
}

bool a2a_parts_convert(enum a2a_dialect dialect, struct json parts_in, struct arena *arena,
                       struct buf *out, bool *ret_pictures, struct err *e) {
    struct parts parts = {.arena = arena, .w = json_writer(out), .e = e};
    struct json_reader reader = json_enter(parts_in);
    struct json item;
    if (parts_in.kind != JSON_ARRAY || json_count(parts_in) == 0)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "message.parts must be an array with at least one part, not %s",
                       parts_in.kind == JSON_ARRAY ? "an empty one"
                                                   : json_kind_name(parts_in.kind));
    json_open_array(&parts.w);
    for (; json_next_item(&reader, &item); parts.index++) {
        const struct part_of part = dialect == A2A_0_3 ? part_of_0_3(item) : part_of_1_0(item);
        if (!convert(&parts, &part)) return false;
    }
    json_close(&parts.w);
    *ret_pictures = parts.pictures;
    return buf_ok(out) || err_set(e, ERR_RESOURCE_EXHAUSTED, "the message is too large");
}
