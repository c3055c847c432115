/* Writes JSON: escapes strings and places commas. */
#include "wire/json.h"

#include "base/sixteen.h"
#include "base/utf8.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Values into a buffer ---- */

/* Number of bytes at the front of `text` that need no escape. */
static size_t plain_run(struct str text) {
    size_t len = 0;
    for (; len + 16 <= text.len; len += 16) {
        sixteen c = sixteen_at(text.at + len);
        if (sixteen_any((sixteen)((c < 0x20) | (c == '"') | (c == '\\')))) break;
    }
    if (len && len < text.len && text.len - len < 16) { /* the last sixteen, in part again */
        sixteen c = sixteen_at(text.at + text.len - 16);
        if (!sixteen_any((sixteen)((c < 0x20) | (c == '"') | (c == '\\')))) return text.len;
    }
    while (len < text.len) {
        unsigned char c = (unsigned char)text.at[len];
        if (c < 0x20 || c == '"' || c == '\\') break;
        len++;
    }
    return len;
}

static void put_escape(struct buf *out, char c) {
    static const char letters[] = "\"\\bfnrt", meanings[] = "\"\\\b\f\n\r\t";
    static const char hex[] = "0123456789abcdef";
    const char *known = c ? strchr(meanings, c) : NULL;
    if (known) {
        char pair[] = {'\\', letters[known - meanings]};
        buf_append(out, str_of(pair, sizeof(pair)));
    } else {
        char unit[] = {'\\', 'u', '0', '0', hex[(unsigned char)c >> 4], hex[c & 15]};
        buf_append(out, str_of(unit, sizeof(unit)));
    }
}

/* Which bytes must be escaped or are not ASCII; as signed numbers, the latter are below the control
 * characters. */
static inline sixteen special_of(sixteen c) {
    typedef signed char signs __attribute__((vector_size(16)));
    return (sixteen)(((signs)c < 0x20) | (signs)((c == '"') | (c == '\\')));
}

static inline sixteen copy_sixteen(char *to, const char *from) {
    sixteen c = sixteen_at(from);
    memcpy(to, &c, sizeof(c));
    return special_of(c);
}

static inline bool are_plain(uint64_t eight, uint64_t other_eight) {
    typedef uint64_t words __attribute__((vector_size(16)));
    return !sixteen_any(special_of((sixteen)(words){eight, other_eight}));
}

/* Copy `text`, which has 8 to 15 bytes: the first eight, and the last eight. False, here and below:
 * not all of it is plain ASCII. */
static inline bool copy_eights(char *to, struct str text) {
    uint64_t first, last;
    size_t last_at = text.len - sizeof(last);
    memcpy(&first, text.at, sizeof(first));
    memcpy(&last, text.at + last_at, sizeof(last));
    memcpy(to, &first, sizeof(first));
    memcpy(to + last_at, &last, sizeof(last));
    return are_plain(first, last);
}

/* The same for 4 to 7 bytes. */
static inline bool copy_fours(char *to, struct str text) {
    uint32_t first, last;
    size_t last_at = text.len - sizeof(last);
    memcpy(&first, text.at, sizeof(first));
    memcpy(&last, text.at + last_at, sizeof(last));
    memcpy(to, &first, sizeof(first));
    memcpy(to + last_at, &last, sizeof(last));
    uint64_t both = (uint64_t)last << 32 | first;
    return are_plain(both, both);
}

/* Less than sixteen bytes, as most keys and a model's words have. */
static inline bool copy_few(char *to, struct str text) {
    if (text.len >= 8) return copy_eights(to, text);
    if (text.len >= 4) return copy_fours(to, text);
    unsigned special = 0;
    for (size_t i = 0; i < text.len; i++) {
        signed char c = (signed char)text.at[i];
        special |= c < 0x20 || c == '"' || c == '\\';
        to[i] = text.at[i];
    }
    return !special;
}

bool json_copy_plain(char *to, struct str text) {
    if (text.len < 16) return copy_few(to, text);
    sixteen special = copy_sixteen(to + text.len - 16, text.at + text.len - 16); /* twice */
    size_t at = 0;
    for (; at + 64 <= text.len; at += 64) {
        special |= copy_sixteen(to + at, text.at + at);
        special |= copy_sixteen(to + at + 16, text.at + at + 16);
        special |= copy_sixteen(to + at + 32, text.at + at + 32);
        special |= copy_sixteen(to + at + 48, text.at + at + 48);
    }
    for (; at + 16 < text.len; at += 16) special |= copy_sixteen(to + at, text.at + at);
    return !sixteen_any(special);
}

bool json_put_str(struct buf *out, struct str text) {
    char *at = buf_room(out, text.len + 2); /* escapes only make it longer */
    if (!at) return false;
    if (json_copy_plain(at + 1, text)) {
        at[0] = at[text.len + 1] = '"';
        buf_grew(out, text.len + 2);
        return true;
    }
    buf_append_byte(out, '"');
    while (text.len && buf_ok(out)) {
        struct str run = str_head(text, plain_run(text));
        utf8_append_repaired(out, run);
        text = str_skip(text, run.len);
        if (text.len == 0) break;
        put_escape(out, text.at[0]);
        text = str_skip(text, 1);
    }
    return buf_append_byte(out, '"');
}

bool json_put_double(struct buf *out, double number) {
    if (!isfinite(number)) return buf_append(out, STR("null"));
    char text[32];
    int len = 0;
    for (int digits = 15; digits <= 17; digits++) {
        len = snprintf(text, sizeof(text), "%.*g", digits, number);
        if (strtod(text, NULL) == number) break;
    }
    return buf_append(out, str_of(text, (size_t)len));
}

bool json_compact(struct str raw, struct buf *out) {
    bool in_string = false;
    size_t run = 0; /* start of the bytes not copied yet */
    for (size_t i = 0; i < raw.len; i++) {
        char c = raw.at[i];
        if (c == '"') in_string = !in_string;
        if (c == '\\') i++; /* occurs only in strings, never as the last byte */
        if (in_string || (c != ' ' && c != '\n' && c != '\r' && c != '\t')) continue;
        buf_append(out, str_of(raw.at + run, i - run));
        run = i + 1;
    }
    return buf_append(out, str_skip(raw, run));
}

bool json_compact_copy(struct json value, struct arena *arena, struct str *ret) {
    struct buf text;
    buf_init(&text, value.raw.len + 1);
    bool fits = json_compact(value.raw, &text) && arena_str(arena, buf_str(&text), ret);
    buf_done(&text);
    return fits;
}

/* ---- The writer ---- */

struct json_writer json_writer(struct buf *out) {
    return (struct json_writer){.out = out};
}

static bool in_object(const struct json_writer *writer) {
    return writer->depth > 0 && (writer->objects >> (writer->depth - 1) & 1);
}

/* Write the comma before a value, if one is needed. */
static void begin_value(struct json_writer *writer) {
    assert(writer->keyed || !in_object(writer));
    assert(writer->depth > 0 || !writer->comma);
    if (writer->comma && !writer->keyed) buf_append_byte(writer->out, ',');
    writer->keyed = false;
    writer->comma = true;
}

static void open_level(struct json_writer *writer, char bracket) {
    begin_value(writer);
    assert(writer->depth < JSON_DEPTH_MAX);
    uint64_t bit = UINT64_C(1) << writer->depth++;
    writer->objects = bracket == '{' ? writer->objects | bit : writer->objects & ~bit;
    writer->comma = false;
    buf_append_byte(writer->out, bracket);
}

void json_open_object(struct json_writer *writer) {
    open_level(writer, '{');
}

void json_open_array(struct json_writer *writer) {
    open_level(writer, '[');
}

void json_close(struct json_writer *writer) {
    assert(writer->depth > 0 && !writer->keyed);
    buf_append_byte(writer->out, in_object(writer) ? '}' : ']');
    writer->depth--;
    writer->comma = true;
}

void json_key(struct json_writer *writer, struct str key) {
    assert(in_object(writer) && !writer->keyed);
    writer->keyed = true;
    size_t comma = writer->comma ? 1 : 0, len = comma + key.len + 3;
    char *at = buf_room(writer->out, len);
    if (at && json_copy_plain(at + comma + 1, key)) {
        at[0] = ',';
        at[comma] = at[len - 2] = '"';
        at[len - 1] = ':';
        buf_grew(writer->out, len);
        return;
    }
    if (comma) buf_append_byte(writer->out, ',');
    json_put_str(writer->out, key);
    buf_append_byte(writer->out, ':');
}

void json_write_str(struct json_writer *writer, struct str text) {
    begin_value(writer);
    json_put_str(writer->out, text);
}

void json_write_i64(struct json_writer *writer, int64_t number) {
    begin_value(writer);
    buf_append_i64(writer->out, number);
}

void json_write_u64(struct json_writer *writer, uint64_t number) {
    begin_value(writer);
    buf_append_u64(writer->out, number);
}

void json_write_double(struct json_writer *writer, double number) {
    begin_value(writer);
    json_put_double(writer->out, number);
}

void json_write_bool(struct json_writer *writer, bool value) {
    json_write_raw(writer, value ? STR("true") : STR("false"));
}

void json_write_null(struct json_writer *writer) {
    json_write_raw(writer, STR("null"));
}

void json_write_raw(struct json_writer *writer, struct str raw) {
    begin_value(writer);
    buf_append(writer->out, raw);
}

void json_member_str(struct json_writer *writer, const char *key, struct str text) {
    json_key(writer, str_from(key));
    json_write_str(writer, text);
}

void json_member_i64(struct json_writer *writer, const char *key, int64_t number) {
    json_key(writer, str_from(key));
    json_write_i64(writer, number);
}

void json_member_u64(struct json_writer *writer, const char *key, uint64_t number) {
    json_key(writer, str_from(key));
    json_write_u64(writer, number);
}

void json_member_bool(struct json_writer *writer, const char *key, bool value) {
    json_key(writer, str_from(key));
    json_write_bool(writer, value);
}

void json_member_null(struct json_writer *writer, const char *key) {
    json_key(writer, str_from(key));
    json_write_null(writer);
}

void json_member_raw(struct json_writer *writer, const char *key, struct str raw) {
    json_key(writer, str_from(key));
    json_write_raw(writer, raw);
}

void json_member_object(struct json_writer *writer, const char *key) {
    json_key(writer, str_from(key));
    json_open_object(writer);
}

void json_member_array(struct json_writer *writer, const char *key) {
    json_key(writer, str_from(key));
    json_open_array(writer);
}
