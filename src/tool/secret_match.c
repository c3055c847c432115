#include "tool/secret_match.h"

#include "base/buf.h"
#include "base/utf8.h"

#define RUN_MAX 32 /* backslashes of one character: 31 where JSON is quoted five times */
#define UNIT_DIGITS 4

static size_t backslashes(struct str text, size_t max) {
    size_t count = 0;
    while (count < text.len && count < max && text.at[count] == '\\') count++;
    return count;
}

static bool read_hex(struct str text, size_t digits, uint32_t *ret) {
    uint32_t value = 0;
    if (text.len < digits) return false;
    for (size_t i = 0; i < digits; i++) {
        int digit = str_hex_digit(text.at[i]);
        if (digit < 0) return false;
        value = value * 16 + (uint32_t)digit;
    }
    *ret = value;
    return true;
}

/* Read "uXXXX". Returns its length, or 0. */
static size_t read_unit(struct str text, uint32_t *ret) {
    if (!text.len || text.at[0] != 'u') return 0;
    return read_hex(str_skip(text, 1), UNIT_DIGITS, ret) ? 1 + UNIT_DIGITS : 0;
}

/* Read "uXXXX", or a surrogate pair of them. Returns its length, or 0. */
static size_t read_code_point(struct str text, uint32_t *ret) {
    uint32_t high, low;
    size_t len = read_unit(text, &high);
    if (!len) return 0;
    *ret = high;
    if (high < 0xD800 || high > 0xDBFF) return len;
    size_t run = backslashes(str_skip(text, len), RUN_MAX);
    size_t more = run ? read_unit(str_skip(text, len + run), &low) : 0;
    if (!more || low < 0xDC00 || low > 0xDFFF) return 0;
    *ret = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    return len + run + more;
}

/* The functions below return how many bytes of `text` spell the start of `secret`, or 0, and set
 * *ret_used to the bytes of the secret that they spell. */

static size_t match_code_point(struct str text, struct str secret, size_t *ret_used) {
    char room[8];
    struct buf character = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    uint32_t code_point;
    size_t len = read_code_point(text, &code_point);
    if (!len || !utf8_append(&character, code_point)) return 0;
    *ret_used = character.len;
    return str_starts(secret, buf_str(&character)) ? len : 0;
}

/* The character that a letter after a backslash stands for, or the one itself. */
static char unescaped(char c) {
    static const char letters[] = "bfnrt", controls[] = "\b\f\n\r\t";
    const char *found = c ? strchr(letters, c) : NULL;
    return found ? controls[found - letters] : c;
}

/* A JSON text in a JSON string has its backslashes twice, and so on. */
static size_t match_escape(struct str text, struct str secret, size_t *ret_used) {
    size_t run = backslashes(text, RUN_MAX), own = backslashes(secret, RUN_MAX);
    struct str after = str_skip(text, run);
    if (!run) return 0;
    size_t len = match_code_point(after, secret, ret_used);
    if (len) return run + len;
    if (own) {
        *ret_used = own;
        return run >= own ? run : 0;
    }
    *ret_used = 1;
    return after.len && unescaped(after.at[0]) == secret.at[0] ? run + 1 : 0;
}

static size_t match_percent(struct str text, struct str secret, size_t *ret_used) {
    uint32_t byte;
    *ret_used = 1;
    if (text.at[0] != '%' || !read_hex(str_skip(text, 1), 2, &byte)) return 0;
    return byte == (unsigned char)secret.at[0] ? 3 : 0;
}

static size_t match_one(struct str text, struct str secret, size_t *ret_used) {
    size_t len = match_escape(text, secret, ret_used);
    if (!len) len = match_percent(text, secret, ret_used);
    if (len) return len;
    *ret_used = 1;
    return text.at[0] == secret.at[0];
}

size_t secret_match(struct str text, struct str secret) {
    size_t at = 0, used;
    while (secret.len) {
        if (at == text.len) return 0;
        size_t len = match_one(str_skip(text, at), secret, &used);
        if (!len) return 0;
        at += len;
        secret = str_skip(secret, used);
    }
    return at;
}
