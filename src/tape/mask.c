#include "tape/mask.h"

#include "base/secret.h"

/* --- text --------------------------------------------------------------------------------- */

/* Upper bound of a text's length after masking. */
#define GROWN(len) (3 * (len) + KIB)

bool mask_text(const struct mask *mask, struct str text, struct buf *out, size_t *cuts,
               size_t cut_count) {
    size_t began = out->len, at = 0, cut = 0;
    struct secret_span span;
    while (secret_next(text, at, mask->known, mask->known_count, &span)) {
        for (; cuts && cut < cut_count && cuts[cut] <= span.from; cut++)
            cuts[cut] = out->len - began + (cuts[cut] - at);
        buf_append(out, str_head(str_skip(text, at), span.from - at));
        buf_append(out, SECRET_HIDDEN);
        for (; cuts && cut < cut_count && cuts[cut] <= span.to; cut++)
            cuts[cut] = out->len - began;
        at = span.to;
    }
    for (; cuts && cut < cut_count; cut++) cuts[cut] = out->len - began + (cuts[cut] - at);
    return buf_append(out, str_skip(text, at));
}

/* --- JSON --------------------------------------------------------------------------------- */

static void mask_value(const struct mask *mask, struct json value, struct buf *out);

static void mask_string(const struct mask *mask, struct json string, struct buf *out) {
    struct buf text, hidden;
    struct secret_span span;
    buf_init(&text, string.raw.len);
    json_text(string, &text);
    if (secret_next(buf_str(&text), 0, mask->known, mask->known_count, &span)) {
        buf_init(&hidden, GROWN(text.len));
        mask_text(mask, buf_str(&text), &hidden, NULL, 0);
        json_put_str(out, buf_str(&hidden));
        buf_done(&hidden);
    } else {
        buf_append(out, string.raw);
    }
    buf_done(&text);
}

static bool names_secret(struct json key) {
    struct buf text;
    buf_init(&text, key.raw.len);
    json_text(key, &text);
    bool secret = secret_name(buf_str(&text));
    buf_done(&text);
    return secret;
}

static void mask_member(const struct mask *mask, struct json key, struct json value,
                        struct buf *out) {
    mask_string(mask, key, out);
    buf_append_byte(out, ':');
    if (value.kind == JSON_STRING && names_secret(key)) {
        json_put_str(out, SECRET_HIDDEN);
    } else {
        mask_value(mask, value, out);
    }
}

/* Recursive; the depth is limited by json_read(). */
static void mask_value(const struct mask *mask, struct json value, struct buf *out) {
    struct json_reader reader = json_enter(value);
    struct json key, item;
    bool first = true;
    switch (value.kind) {
    case JSON_OBJECT:
        buf_append_byte(out, '{');
        for (; json_next_member(&reader, &key, &item); first = false) {
            if (!first) buf_append_byte(out, ',');
            mask_member(mask, key, item, out);
        }
        buf_append_byte(out, '}');
        break;
    case JSON_ARRAY:
        buf_append_byte(out, '[');
        for (; json_next_item(&reader, &item); first = false) {
            if (!first) buf_append_byte(out, ',');
            mask_value(mask, item, out);
        }
        buf_append_byte(out, ']');
        break;
    case JSON_STRING: mask_string(mask, value, out); break;
    default: buf_append(out, value.raw);
    }
}

bool mask_json(const struct mask *mask, struct json value, struct buf *out) {
    mask_value(mask, value, out);
    return buf_ok(out);
}
