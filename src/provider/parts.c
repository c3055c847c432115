#include "provider/parts.h"

static bool is_string(struct json value) {
    return value.kind == JSON_STRING;
}

static bool read_part(struct json item, struct part *ret) {
    static const struct str keys[] = {STR_INIT("type"),       STR_INIT("text"),
                                      STR_INIT("media_type"), STR_INIT("data"),
                                      STR_INIT("url"),        STR_INIT("detail")};
    struct json found[ARRAY_LEN(keys)];
    json_find_each(item, keys, ARRAY_LEN(keys), found);
    *ret = (struct part){.text = found[1],
                         .media_type = found[2],
                         .data = found[3],
                         .url = found[4],
                         .detail = found[5]};
    if (json_is(found[0], STR("text"))) return is_string(ret->text);
    ret->kind = PART_IMAGE;
    if (!json_is(found[0], STR("image"))) return false;
    if (ret->detail.kind != JSON_NONE && !is_string(ret->detail)) return false;
    bool has_bytes = is_string(ret->media_type) && is_string(ret->data);
    return has_bytes != is_string(ret->url);
}

bool parts_check(struct json parts, struct err *e) {
    struct json_reader reader = json_enter(parts);
    struct json item;
    struct part part;
    if (parts.kind != JSON_ARRAY || json_count(parts) == 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "parts must be an array that is not empty");
    for (size_t i = 0; json_next_item(&reader, &item); i++) {
        if (!read_part(item, &part))
            return err_set(e, ERR_INVALID_ARGUMENT, "part %zu is neither text nor an image", i);
    }
    return true;
}

struct json_reader parts_enter(struct str parts) {
    return json_enter(parts.len ? json_of(parts) : (struct json){0});
}

bool parts_next(struct json_reader *reader, struct part *ret) {
    struct json item;
    return json_next_item(reader, &item) && read_part(item, ret);
}

void parts_put_url(struct json_writer *writer, const char *key, const struct part *part) {
    struct buf url;
    if (part->url.kind == JSON_STRING) {
        json_member_raw(writer, key, part->url.raw);
        return;
    }
    buf_init(&url, part->data.raw.len + part->media_type.raw.len + 32);
    buf_append(&url, STR("data:"));
    json_text(part->media_type, &url);
    buf_append(&url, STR(";base64,"));
    json_text(part->data, &url);
    json_member_str(writer, key, buf_str(&url));
    buf_done(&url);
}
