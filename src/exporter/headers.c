#include "exporter/headers.h"

#include "base/buf.h"

/* RFC 9110 5.6.2: a token. */
static bool is_name(struct str text) {
    return text.len > 0 && str_is_plain(text, "!#$%&'*+-.^_`|~");
}

/* RFC 9110 5.5: no control character, which could end the field. */
static bool is_value(struct str text) {
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.at[i];
        if ((byte < 0x20 && byte != '\t') || byte == 0x7F) return false;
    }
    return true;
}

static bool percent_decode(struct str text, struct buf *out) {
    for (size_t i = 0; i < text.len; i++) {
        char byte = text.at[i];
        if (byte == '%') {
            int high = i + 1 < text.len ? str_hex_digit(text.at[i + 1]) : -1;
            int low = i + 2 < text.len ? str_hex_digit(text.at[i + 2]) : -1;
            if (high < 0 || low < 0) return false;
            byte = (char)(high * 16 + low);
            i += 2;
        }
        buf_append_byte(out, byte);
    }
    return buf_ok(out);
}

bool exporter_headers_add(struct exporter_headers *headers, struct str name, struct str value,
                          struct err *e) {
    if (!is_name(name))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "header %zu has no valid name; write name=value", headers->count + 1);
    if (!is_value(value))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "the value of " STR_FMT " holds a control character",
                       STR_ARG(str_head(name, 80)));
    if (headers->count == EXPORTER_HEADERS_MAX)
        return err_set(e, ERR_TOO_LARGE, "there are more than %d headers; remove some",
                       EXPORTER_HEADERS_MAX);
    headers->names[headers->count] = text_copy(name);
    headers->values[headers->count++] = text_copy(value);
    return true;
}

/* The value is not quoted: it is a secret. */
static bool add_entry(struct exporter_headers *headers, struct str entry, struct err *e) {
    struct str value, name = str_trim(str_split(entry, '=', &value));
    struct buf decoded;
    if (!value.at)
        return err_set(e, ERR_INVALID_ARGUMENT, "header %zu has no '='; write name=value",
                       headers->count + 1);
    buf_init(&decoded, EXPORTER_HEADERS_BYTES);
    bool good = percent_decode(str_trim(value), &decoded)
                    ? exporter_headers_add(headers, name, buf_str(&decoded), e)
                    : err_set(e, ERR_INVALID_ARGUMENT,
                              "the value of " STR_FMT
                              " has a %% without two hexadecimal digits; write it as %%25",
                              STR_ARG(str_head(name, 80)));
    buf_done(&decoded);
    return good;
}

bool exporter_headers_read(struct exporter_headers *headers, struct str text, struct err *e) {
    if (text.len > EXPORTER_HEADERS_BYTES)
        return err_set(e, ERR_TOO_LARGE, "the headers have more than %zu bytes",
                       (size_t)EXPORTER_HEADERS_BYTES);
    while (text.len) {
        struct str entry = str_trim(str_split(text, ',', &text));
        if (entry.len && !add_entry(headers, entry, e)) return false;
        if (!text.at) break;
    }
    return true;
}

void exporter_headers_done(struct exporter_headers *headers) {
    for (size_t i = 0; i < headers->count; i++) {
        text_wipe(&headers->names[i]);
        text_wipe(&headers->values[i]);
    }
    headers->count = 0;
}
