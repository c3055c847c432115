/* The text of gRPC's headers: timeouts, status messages, content types, binary metadata. */
#include "wire/grpc.h"

#include "base/utf8.h"
#include "wire/base64.h"

/* ---- grpc-timeout ---- */

#define TIMEOUT_DIGITS_MAX 8

static const struct {
    char letter;
    uint64_t ns;
} units[] = {
    /* clang-format off */
    {'n', 1},
    {'u', 1000},
    {'m', 1000000},
    {'S', 1000000000},
    {'M', 60000000000},
    {'H', 3600000000000},
    /* clang-format on */
};

static uint64_t unit_ns(char letter) {
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (units[i].letter == letter) return units[i].ns;
    }
    return 0;
}

bool grpc_timeout_parse(struct str value, uint64_t *ret_ns, struct err *e) {
    size_t digits = value.len ? value.len - 1 : 0;
    uint64_t unit = digits ? unit_ns(value.at[digits]) : 0;
    uint64_t number;
    if (digits > TIMEOUT_DIGITS_MAX || unit == 0 ||
        !str_to_u64(str_head(value, digits), &number))
        return err_set(e, ERR_INTERNAL,
                       "bad grpc-timeout; it is one to eight digits and one of H M S m u n");
    uint64_t ns;
    if (__builtin_mul_overflow(number, unit, &ns) || ns > INT64_MAX) ns = INT64_MAX;
    *ret_ns = ns;
    return true;
}

bool grpc_timeout_append(struct buf *out, uint64_t timeout_ns) {
    size_t i = 0;
    uint64_t number = timeout_ns;
    while (number > 99999999) {
        uint64_t ns = units[++i].ns; /* hours can hold any timeout */
        number = timeout_ns / ns + (timeout_ns % ns != 0);
    }
    return buf_append_u64(out, number) && buf_append_byte(out, units[i].letter);
}

/* ---- grpc-message ---- */

static void append_percent(struct buf *out, unsigned char byte) {
    static const char hex[] = "0123456789ABCDEF";
    char text[] = {'%', hex[byte >> 4], hex[byte & 15]};
    buf_append(out, str_of(text, sizeof(text)));
}

/* Length of the first character of valid text. */
static size_t character_len(struct str text) {
    unsigned char first = (unsigned char)text.at[0];
    return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

static bool grpc_header_is_printable(char c) {
    return c >= ' ' && c <= '~' && c != '%';
}

/* Encode into `out` until it is full; a character is written whole or not at all. Spaces at
 * both ends are encoded: the specification does not require it, but HTTP/2 would strip them. */
static void encode_characters(struct buf *out, struct str text) {
    for (bool first = true; text.len; first = false) {
        size_t len = character_len(text);
        bool at_an_end = first || text.len == 1;
        bool as_it_is =
            grpc_header_is_printable(text.at[0]) && !(text.at[0] == ' ' && at_an_end);
        if (out->len + (as_it_is ? 1 : 3 * len) > out->max_bytes) break;
        for (size_t i = 0; i < len; i++) {
            if (as_it_is) buf_append_byte(out, text.at[i]);
            if (!as_it_is) append_percent(out, (unsigned char)text.at[i]);
        }
        text = str_skip(text, len);
    }
    while (out->len && out->at[out->len - 1] == ' ') out->len--; /* no spaces before the cut */
}

bool grpc_message_encode(struct buf *out, struct str text) {
    /* Encoding never shortens a character, so the rest cannot fit. */
    if (text.len > GRPC_STATUS_MESSAGE_MAX_BYTES)
        text.len = utf8_cut(text, GRPC_STATUS_MESSAGE_MAX_BYTES);
    struct buf valid, encoded;
    buf_init(&valid, 3 * GRPC_STATUS_MESSAGE_MAX_BYTES);
    buf_init(&encoded, GRPC_STATUS_MESSAGE_MAX_BYTES);
    utf8_append_repaired(&valid, text);
    encode_characters(&encoded, buf_str(&valid));
    bool fits = buf_append(out, buf_str(&encoded));
    buf_done(&valid);
    buf_done(&encoded);
    return fits;
}

bool grpc_message_decode(struct buf *out, struct str value) {
    struct buf bytes;
    buf_init(&bytes, value.len);
    for (size_t i = 0; i < value.len; i++) {
        bool escape = value.at[i] == '%' && value.len - i > 2;
        int high = escape ? str_hex_digit(value.at[i + 1]) : -1;
        int low = escape ? str_hex_digit(value.at[i + 2]) : -1;
        char byte = value.at[i];
        if (high >= 0 && low >= 0) {
            byte = (char)(high << 4 | low);
            i += 2;
        }
        buf_append_byte(&bytes, byte);
    }
    bool fits = utf8_append_repaired(out, buf_str(&bytes));
    buf_done(&bytes);
    return fits;
}

/* ---- content-type ---- */

bool grpc_content_type_ok(struct str value) {
    struct str parameters;
    struct str type = str_trim(str_split(value, ';', &parameters));
    return str_equal_nocase(type, STR("application/grpc")) ||
           str_equal_nocase(type, STR("application/grpc+proto"));
}

/* ---- -bin metadata ---- */

bool grpc_bin_decode(struct buf *out, struct str value, struct err *e) {
    size_t len = base64_decoded_len(value.len);
    char *room = buf_room(out, len);
    if (!room)
        return err_set(e, ERR_TOO_LARGE, "binary metadata is larger than %zu bytes",
                       out->max_bytes);
    if (!base64_decode(value, BASE64_STANDARD, BASE64_EITHER, room, &len))
        return err_set(e, ERR_INTERNAL, "binary metadata is not base64");
    buf_grew(out, len);
    return true;
}

bool grpc_bin_encode(struct buf *out, struct str bytes) {
    return base64_encode(out, bytes, BASE64_STANDARD, BASE64_UNPADDED);
}
