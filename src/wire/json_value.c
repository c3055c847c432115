/* The values of an accepted text: strings unescaped, numbers as C numbers. */
#include "wire/json.h"

#include "base/utf8.h"

#include <assert.h>
#include <stdlib.h>

/* ---- Strings ---- */

/* The text between the quotes of a string. */
static struct str inner_of(struct json string) {
    assert(string.raw.len >= 2);
    return str_of(string.raw.at + 1, string.raw.len - 2);
}

static uint32_t hex_unit(const char *digits) {
    uint32_t unit = 0;
    for (int i = 0; i < 4; i++) {
        char c = digits[i];
        int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
        unit = unit << 4 | (uint32_t)digit;
    }
    return unit;
}

/* The code unit of the escape at the front of *text (a backslash); *text moves past it. */
static uint32_t take_escape(struct str *text) {
    char letter = text->at[1];
    if (letter != 'u') {
        static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
        *text = str_skip(*text, 2);
        return (uint32_t)meanings[strchr(letters, letter) - letters];
    }
    uint32_t unit = hex_unit(text->at + 2);
    *text = str_skip(*text, 6);
    if (unit < 0xD800 || unit > 0xDFFF) return unit;
    uint32_t low = hex_unit(text->at + 2);
    *text = str_skip(*text, 6);
    return 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
}

bool json_text(struct json string, struct buf *out) {
    if (string.kind != JSON_STRING) return false;
    struct str rest = inner_of(string);
    while (rest.len && buf_ok(out)) {
        struct str run = str_head(rest, str_find_byte(rest, '\\'));
        buf_append(out, run);
        rest = str_skip(rest, run.len);
        if (rest.len) utf8_append(out, take_escape(&rest));
    }
    return buf_ok(out);
}

bool json_str(struct json string, struct arena *arena, struct str *ret) {
    if (string.kind != JSON_STRING) return false;
    struct str inner = inner_of(string);
    if (str_find_byte(inner, '\\') == inner.len) {
        *ret = inner;
        return true;
    }
    /* Unescaped text is never longer than escaped text, so this buffer never grows. */
    struct buf text = {.room = inner.len, .max_bytes = inner.len};
    text.at = arena_alloc(arena, inner.len);
    if (!text.at || !json_text(string, &text)) return false;
    *ret = buf_str(&text);
    return true;
}

bool json_is(struct json string, struct str text) {
    if (string.kind != JSON_STRING) return false;
    struct str rest = inner_of(string);
    if (rest.len < text.len) return false; /* unescaping never makes it longer */
    for (;;) {
        struct str run = str_head(rest, str_find_byte(rest, '\\'));
        if (run.len == rest.len) return str_equal(rest, text);
        if (!str_starts(text, run)) return false;
        text = str_skip(text, run.len);
        rest = str_skip(rest, run.len);

        char room[4];
        struct buf character = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
        utf8_append(&character, take_escape(&rest));
        if (!str_starts(text, buf_str(&character))) return false;
        text = str_skip(text, character.len);
    }
}

/* ---- Numbers ---- */

int64_t json_exponent(struct str text) {
    int64_t exponent = 0;
    bool negative = text.len && text.at[0] == '-';
    for (size_t i = 0; i < text.len && exponent < JSON_EXPONENT_MAX; i++) {
        if (text.at[i] >= '0' && text.at[i] <= '9')
            exponent = exponent * 10 + (text.at[i] - '0');
    }
    if (exponent > JSON_EXPONENT_MAX) exponent = JSON_EXPONENT_MAX;
    return negative ? -exponent : exponent;
}

/* The number is *ret_digits times ten to the power *ret_scale. Trailing zeros go into the
 * scale. False when the significant digits do not fit. */
static bool digits_of(struct str mantissa, uint64_t *ret_digits, int64_t *ret_scale) {
    uint64_t digits = 0;
    int64_t zeros = 0, after_point = 0;
    bool point = false;
    for (size_t i = 0; i < mantissa.len; i++) {
        char c = mantissa.at[i];
        if (c == '.') {
            point = true;
            continue;
        }
        after_point += point;
        if (c == '0') {
            zeros++;
            continue;
        }
        for (; zeros > 0 && digits > 0; zeros--) {
            if (__builtin_mul_overflow(digits, 10u, &digits)) return false;
        }
        zeros = 0;
        if (__builtin_mul_overflow(digits, 10u, &digits)) return false;
        if (__builtin_add_overflow(digits, (uint64_t)(c - '0'), &digits)) return false;
    }
    *ret_digits = digits;
    *ret_scale = zeros - after_point;
    return true;
}

bool json_i64(struct json number, int64_t *ret) {
    if (number.kind != JSON_NUMBER) return false;
    if (str_to_i64(number.raw, ret)) return true;

    struct str rest = number.raw;
    bool negative = rest.at[0] == '-';
    if (negative) rest = str_skip(rest, 1);
    size_t e = str_find_byte(rest, 'e');
    if (e == rest.len) e = str_find_byte(rest, 'E');
    uint64_t digits;
    int64_t scale;
    if (!digits_of(str_head(rest, e), &digits, &scale)) return false;
    scale += json_exponent(str_skip(rest, e + 1));

    if (digits && scale < 0) return false;
    for (; digits && scale > 0; scale--) {
        if (__builtin_mul_overflow(digits, 10u, &digits)) return false;
    }
    if (digits > (uint64_t)INT64_MAX + (negative ? 1 : 0)) return false;
    *ret = negative ? (int64_t)(0 - digits) : (int64_t)digits;
    return true;
}

bool json_double(struct json number, double *ret) {
    if (number.kind != JSON_NUMBER) return false;
    char room[64];
    if (number.raw.len < sizeof(room)) {
        memcpy(room, number.raw.at, number.raw.len);
        room[number.raw.len] = '\0';
        *ret = strtod(room, NULL);
        return true;
    }
    char *text = str_dup(number.raw);
    *ret = strtod(text, NULL);
    free(text);
    return true;
}

bool json_bool(struct json value, bool *ret) {
    if (value.kind != JSON_TRUE && value.kind != JSON_FALSE) return false;
    *ret = value.kind == JSON_TRUE;
    return true;
}
