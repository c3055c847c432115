#include "conversation/import_content.h"

#include "conversation/image.h"

#include <stdarg.h>
#include <stdio.h>

/* --- places ------------------------------------------------------------------------------- */

bool import_refuse(struct import_reading *reading, const char *format, ...) {
    char text[ERR_TEXT_BYTES];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    return err_set(reading->e, ERR_INVALID_ARGUMENT, "messages[%zu]%s: %s", reading->index,
                   reading->part, text);
}

bool import_too_large(struct import_reading *reading) {
    return err_set(reading->e, ERR_RESOURCE_EXHAUSTED,
                   "the messages are larger than a turn may hold");
}

void import_in_message(struct import_reading *reading) {
    reading->part[0] = '\0';
}

void import_in_item(struct import_reading *reading, const char *member, size_t item) {
    snprintf(reading->part, sizeof(reading->part), ".%s[%zu]", member, item);
}

/* --- content ------------------------------------------------------------------------------ */

/* What is collected from the content of one message. */
struct content {
    struct buf text;  /* of the text parts */
    struct buf parts; /* all parts, in our form */
    struct json_writer writer;
    struct str between; /* separator of two text parts */
    size_t texts, images;
};

static void content_init(struct content *content, struct str between) {
    *content = (struct content){.between = between};
    buf_init(&content->text, IMPORT_MESSAGE_MAX_BYTES);
    buf_init(&content->parts, IMPORT_MESSAGE_MAX_BYTES);
}

static void content_done(struct content *content) {
    buf_done(&content->text);
    buf_done(&content->parts);
}

static bool add_text(struct import_reading *reading, struct content *content,
                     struct json text) {
    if (text.kind != JSON_STRING)
        return import_refuse(reading, "text must be a string, not %s",
                             json_kind_name(text.kind));
    if (content->texts++) buf_append(&content->text, content->between);
    json_text(text, &content->text);
    json_open_object(&content->writer);
    json_member_str(&content->writer, "type", STR("text"));
    json_member_raw(&content->writer, "text", text.raw);
    json_close(&content->writer);
    return true;
}

/* Count an image, or refuse it with its position. */
static bool added_image(struct import_reading *reading, struct content *content, bool written,
                        const struct err *why) {
    if (!written) return import_refuse(reading, "%s", why->text);
    content->images++;
    return true;
}

static bool add_url(struct import_reading *reading, struct content *content, struct json value,
                    struct json detail) {
    struct str url, closely = STR_EMPTY;
    struct err why;
    if (value.kind != JSON_STRING)
        return import_refuse(reading, "the image has neither bytes nor a URL; give a string");
    if (!json_str(value, reading->arena, &url)) return import_too_large(reading);
    if (detail.kind == JSON_STRING && !json_str(detail, reading->arena, &closely))
        return import_too_large(reading);
    bool written = image_put_url(&content->writer, url, closely, &why);
    return added_image(reading, content, written, &why);
}

static bool add_base64(struct import_reading *reading, struct content *content,
                       struct json type, struct json data) {
    struct str media_type, bytes;
    struct err why;
    if (type.kind != JSON_STRING || data.kind != JSON_STRING)
        return import_refuse(reading,
                             "the image needs its media type and its bytes, as strings");
    if (!json_str(type, reading->arena, &media_type) || !json_str(data, reading->arena, &bytes))
        return import_too_large(reading);
    bool written = image_put_base64(&content->writer, media_type, bytes, STR_EMPTY, &why);
    return added_image(reading, content, written, &why);
}

/* --- parts -------------------------------------------------------------------------------- */

typedef bool part_fn(struct import_reading *reading, struct content *content, struct json part);

static bool text_part(struct import_reading *reading, struct content *content,
                      struct json part) {
    return add_text(reading, content, json_find(part, STR("text")));
}

/* {"type":"image_url","image_url":{"url":...,"detail":...}}, or with the URL itself as
 * image_url; {"type":"input_image","image_url":"...","detail":...} */
static bool image_url_part(struct import_reading *reading, struct content *content,
                           struct json part) {
    struct json image = json_find(part, STR("image_url"));
    struct json holder = image.kind == JSON_OBJECT ? image : part;
    struct json url = image.kind == JSON_OBJECT ? json_find(image, STR("url")) : image;
    return add_url(reading, content, url, json_find(holder, STR("detail")));
}

/* AG-UI's {"source":{"type":"data","value","mimeType"}} or {"type":"url","value"}. */
static bool agui_image_part(struct import_reading *reading, struct content *content,
                            struct json part) {
    struct json source = json_find(part, STR("source")),
                value = json_find(source, STR("value"));
    if (json_is(json_find(source, STR("type")), STR("url")))
        return add_url(reading, content, value, (struct json){0});
    return add_base64(reading, content, json_find(source, STR("mimeType")), value);
}

/* Anthropic's {"source":{"type":"base64","media_type","data"}} or {"type":"url","url"};
 * LangChain's own {"base64"|"data","mime_type"} or {"url"}. */
static bool image_part(struct import_reading *reading, struct content *content,
                       struct json part) {
    if (reading->form == IMPORT_AGUI) return agui_image_part(reading, content, part);
    struct json source = json_find(part, STR("source"));
    struct json holder = source.kind == JSON_OBJECT ? source : part;
    struct json url = json_find(holder, STR("url"));
    if (!json_is_absent(url)) return add_url(reading, content, url, (struct json){0});
    struct json type = json_find(holder, STR("media_type"));
    if (json_is_absent(type)) type = json_find(holder, STR("mime_type"));
    struct json data = json_find(holder, STR("data"));
    if (json_is_absent(data)) data = json_find(holder, STR("base64"));
    return add_base64(reading, content, type, data);
}

static const struct {
    struct str type;
    part_fn *read;
    bool picture;
} part_types[] = {
    {STR_INIT("text"), text_part, false},
    {STR_INIT("input_text"), text_part, false},
    {STR_INIT("output_text"), text_part, false},
    {STR_INIT("image_url"), image_url_part, true},
    {STR_INIT("input_image"), image_url_part, true},
    {STR_INIT("image"), image_part, true},
};

static bool refuse_type(struct import_reading *reading, struct json type) {
    struct str name = STR("(none)");
    if (type.kind == JSON_STRING && !json_str(type, reading->arena, &name))
        return import_too_large(reading);
    return import_refuse(reading, "a part of type '" STR_FMT "' cannot be taken here",
                         STR_ARG(str_head(name, IMPORT_SHOWN_BYTES)));
}

static bool add_part(struct import_reading *reading, struct content *content, struct json part,
                     enum pictures pictures) {
    if (part.kind == JSON_STRING) return add_text(reading, content, part);
    if (part.kind != JSON_OBJECT)
        return import_refuse(reading, "a part must be an object, not %s",
                             json_kind_name(part.kind));
    struct json type = json_find(part, STR("type"));
    if (json_is_absent(type) && !json_is_absent(json_find(part, STR("text"))))
        return text_part(reading, content, part);
    for (size_t i = 0; i < ARRAY_LEN(part_types); i++) {
        if (!json_is(type, part_types[i].type)) continue;
        if (part_types[i].picture && pictures == PICTURES_REFUSED) break;
        return part_types[i].read(reading, content, part);
    }
    return refuse_type(reading, type);
}

/* Anthropic's calls, results and reasoning. The last is for its own server, which may refuse what
 * is incomplete, and nothing asks for it. */
static bool is_elsewhere(const struct import_reading *reading, struct json type) {
    return json_is(type, STR("tool_use")) ||
           (reading->form == IMPORT_BLOCKS &&
            (json_is(type, STR("tool_result")) || json_is(type, STR("thinking")) ||
             json_is(type, STR("redacted_thinking"))));
}

/* Read a string, or an array of parts. */
static bool add_content(struct import_reading *reading, struct content *content,
                        struct json value, enum pictures pictures) {
    struct json_reader reader = json_enter(value);
    struct json part;
    if (value.kind == JSON_STRING) return add_text(reading, content, value);
    if (value.kind != JSON_ARRAY)
        return import_refuse(reading, "content must be a string or an array of parts, not %s",
                             json_kind_name(value.kind));
    for (size_t i = 0; json_next_item(&reader, &part); i++) {
        if (is_elsewhere(reading, json_find(part, STR("type")))) continue;
        import_in_item(reading, "content", i);
        if (!add_part(reading, content, part, pictures)) return false;
    }
    import_in_message(reading);
    return true;
}

bool import_take_content(struct import_reading *reading, struct json value, struct str between,
                         enum pictures pictures, struct message *ret) {
    struct content content;
    content_init(&content, between);
    content.writer = json_writer(&content.parts);
    json_open_array(&content.writer);
    bool fine = add_content(reading, &content, value, pictures);
    json_close(&content.writer);
    if (fine) {
        fine = buf_ok(&content.text) && buf_ok(&content.parts) &&
               arena_str(reading->arena, buf_str(&content.text), &ret->text) &&
               (content.images == 0 ||
                arena_str(reading->arena, buf_str(&content.parts), &ret->parts));
        if (!fine) import_too_large(reading);
    }
    content_done(&content);
    return fine;
}
