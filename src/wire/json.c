#include "wire/json.h"

#include "base/sixteen.h"
#include "base/utf8.h"

#include <assert.h>
#include <endian.h>
#include <stdio.h>

/* ---- Places in the text ---- */

static bool json_is_space(char c) {
    if ((unsigned char)c > ' ') return false; /* nearly always */
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static inline __attribute__((always_inline)) const char *skip_space(const char *at,
                                                                    const char *end) {
    while (at < end && json_is_space(*at)) at++;
    return at;
}

#define EACH_BYTE(value) (UINT64_C(0x0101010101010101) * (value))
#define HIGH_BITS EACH_BYTE(0x80)

/* Sets the high bit of each byte below 0x20, each quote and each backslash. Only the lowest set
 * bit is exact; a borrow may set higher ones. */
static uint64_t special_bits(uint64_t eight) {
    uint64_t quote = eight ^ EACH_BYTE('"');
    uint64_t backslash = eight ^ EACH_BYTE('\\');
    uint64_t below = (eight - EACH_BYTE(0x20)) & ~eight;
    below |= (quote - EACH_BYTE(1)) & ~quote;
    below |= (backslash - EACH_BYTE(1)) & ~backslash;
    return below & HIGH_BITS;
}

/* The first byte that needs attention in a string. *seen collects the bits of the bytes before
 * it, so that the caller knows whether any was outside ASCII. */
static inline __attribute__((always_inline)) const char *
skip_ordinary(const char *at, const char *end, uint64_t *seen) {
#ifdef SIXTEEN_BITS
    for (; end - at >= 16; at += 16) {
        sixteen c = sixteen_at(at);
        unsigned special = sixteen_bits((sixteen)((c < 0x20) | (c == '"') | (c == '\\')));
        unsigned before = special ? (special & -special) - 1 : 0xFFFF;
        *seen |= sixteen_bits(c) & before ? HIGH_BITS : 0;
        if (special) return at + __builtin_ctz(special);
    }
#endif
    for (; end - at >= 8; at += 8) {
        uint64_t eight;
        memcpy(&eight, at, 8);
        eight = le64toh(eight); /* now the first byte is the lowest */
        uint64_t special = special_bits(eight);
        if (special) {
            *seen |= eight & ((special & -special) - 1); /* the special byte is ASCII */
            return at + __builtin_ctzll(special) / 8;
        }
        *seen |= eight;
    }
    for (; at < end; at++) {
        unsigned char c = (unsigned char)*at;
        if (c < 0x20 || c == '"' || c == '\\') break;
        *seen |= c;
    }
    return at;
}

/* ---- Checking a text ----
 *
 * One loop, with one bit per open level: bit d is set when level d is an object. What may
 * come next is the only other state. */

enum want {
    WANT_VALUE,
    WANT_VALUE_OR_END, /* after '[' */
    WANT_KEY,
    WANT_KEY_OR_END, /* after '{' */
    WANT_NEXT,       /* after a value: ',' or the end of its container */
};

struct check {
    const char *start, *at, *end;
    enum want want;
    unsigned depth, depth_max;
    uint64_t objects;
    struct err *e;
};

/* Line and column, from 1, of the byte at `at`; columns count characters. */
static void locate(const struct check *check, const char *at, size_t *line, size_t *column) {
    *line = *column = 1;
    for (const char *c = check->start; c < at; c++) {
        if (*c == '\n') {
            ++*line;
            *column = 1;
        } else if (((unsigned char)*c & 0xC0) != 0x80) {
            ++*column;
        }
    }
}

static bool json_refuse(const struct check *check, const char *at, const char *expected) {
    size_t line, column;
    locate(check, at, &line, &column);
    err_set(check->e, ERR_MALFORMED, "expected %s but ", expected);
    struct err wanted = *check->e;
    unsigned char c = at < check->end ? (unsigned char)*at : 0;
    if (at == check->end) {
        err_set(check->e, ERR_MALFORMED, "%sthe text ends", wanted.text);
    } else if (c > 0x20 && c < 0x7F) {
        err_set(check->e, ERR_MALFORMED, "%sfound '%c'", wanted.text, c);
    } else {
        err_set(check->e, ERR_MALFORMED, "%sfound byte 0x%02X", wanted.text, c);
    }
    return err_add(check->e, "JSON %zu:%zu (byte %zu)", line, column,
                   (size_t)(at - check->start));
}

/* Check the four digits of a \u escape, at `at`. */
static bool check_hex(const struct check *check, const char *at, uint32_t *ret_unit) {
    *ret_unit = 0;
    for (int i = 0; i < 4; i++, at++) {
        int digit = at < check->end ? str_hex_digit(*at) : -1;
        if (digit < 0) return json_refuse(check, at, "four hexadecimal digits after \\u");
        *ret_unit = *ret_unit << 4 | (uint32_t)digit;
    }
    return true;
}

static bool is_high_surrogate(uint32_t unit) {
    return unit >= 0xD800 && unit <= 0xDBFF;
}

static bool is_low_surrogate(uint32_t unit) {
    return unit >= 0xDC00 && unit <= 0xDFFF;
}

/* Check the escape whose backslash is at check->at. */
static bool check_escape(struct check *check) {
    const char *at = check->at + 1;
    if (at == check->end || !strchr("\"\\/bfnrtu", *at) || *at == '\0')
        return json_refuse(check, at, "one of \" \\ / b f n r t u after a backslash");
    check->at += 2;
    if (*at != 'u') return true;

    uint32_t unit, low;
    if (!check_hex(check, check->at, &unit)) return false;
    if (is_low_surrogate(unit))
        return json_refuse(check, check->at, "no low surrogate without a high one before it");
    check->at += 4;
    if (!is_high_surrogate(unit)) return true;

    if (!str_starts(str_of(check->at, (size_t)(check->end - check->at)), STR("\\u")))
        return json_refuse(check, check->at, "\\u and a low surrogate after a high one");
    if (!check_hex(check, check->at + 2, &low)) return false;
    if (!is_low_surrogate(low))
        return json_refuse(check, check->at + 2, "a low surrogate after a high one");
    check->at += 6;
    return true;
}

/* Check the string whose opening quote is at check->at. */
static bool check_string(struct check *check) {
    const char *inner = ++check->at;
    uint64_t seen = 0;
    for (;;) {
        check->at = skip_ordinary(check->at, check->end, &seen);
        if (check->at == check->end || (unsigned char)*check->at < 0x20)
            return json_refuse(check, check->at, "'\"' or a character that needs no escape");
        if (*check->at == '"') break;
        if (!check_escape(check)) return false;
    }
    if (seen & HIGH_BITS) {
        struct str text = str_of(inner, (size_t)(check->at - inner));
        size_t valid = utf8_valid_prefix(text);
        if (valid < text.len) return json_refuse(check, inner + valid, "valid UTF-8");
    }
    check->at++;
    return true;
}

static bool check_digits(struct check *check) {
    const char *first = check->at;
    while (check->at < check->end && *check->at >= '0' && *check->at <= '9') check->at++;
    return check->at > first || json_refuse(check, check->at, "a digit");
}

static bool at_byte(const struct check *check, char a, char b) {
    return check->at < check->end && (*check->at == a || *check->at == b);
}

static bool starts_number(char c) {
    return c == '-' || (c >= '0' && c <= '9');
}

static bool check_number(struct check *check) {
    if (at_byte(check, '-', '-')) check->at++;
    if (at_byte(check, '0', '0')) {
        check->at++; /* no digit may follow: in 01 the "1" is then unexpected */
    } else if (!check_digits(check)) {
        return false;
    }
    if (at_byte(check, '.', '.')) {
        check->at++;
        if (!check_digits(check)) return false;
    }
    if (at_byte(check, 'e', 'E')) {
        check->at++;
        if (at_byte(check, '+', '-')) check->at++;
        if (!check_digits(check)) return false;
    }
    return true;
}

static bool check_word(struct check *check, struct str word) {
    for (size_t i = 0; i < word.len; i++) {
        if (check->at == check->end || *check->at != word.at[i])
            return json_refuse(check, check->at, word.at);
        check->at++;
    }
    return true;
}

static bool open_level(struct check *check) {
    if (check->depth == check->depth_max) {
        char expected[64];
        snprintf(expected, sizeof(expected), "at most %u levels of arrays and objects",
                 check->depth_max);
        return json_refuse(check, check->at, expected);
    }
    uint64_t bit = UINT64_C(1) << check->depth++;
    bool object = *check->at++ == '{';
    check->objects = object ? check->objects | bit : check->objects & ~bit;
    check->want = object ? WANT_KEY_OR_END : WANT_VALUE_OR_END;
    return true;
}

static bool in_object(const struct check *check) {
    return check->objects >> (check->depth - 1) & 1;
}

static bool close_level(struct check *check) {
    check->at++;
    check->depth--;
    check->want = WANT_NEXT;
    return true;
}

static bool check_value(struct check *check) {
    if (check->want == WANT_VALUE_OR_END && at_byte(check, ']', ']')) return close_level(check);
    const char *expected = check->want == WANT_VALUE_OR_END ? "a value or ']'" : "a value";
    if (check->at == check->end) return json_refuse(check, check->at, expected);
    check->want = WANT_NEXT;
    switch (*check->at) {
    case '{':
    case '[': return open_level(check);
    case '"': return check_string(check);
    case 't': return check_word(check, STR("true"));
    case 'f': return check_word(check, STR("false"));
    case 'n': return check_word(check, STR("null"));
    default: break;
    }
    if (starts_number(*check->at)) return check_number(check);
    return json_refuse(check, check->at, expected);
}

/* Check a key and the colon after it. */
static bool check_key(struct check *check) {
    if (check->want == WANT_KEY_OR_END && at_byte(check, '}', '}')) return close_level(check);
    if (!at_byte(check, '"', '"'))
        return json_refuse(check, check->at,
                           check->want == WANT_KEY ? "a key in quotes"
                                                   : "a key in quotes or '}'");
    if (!check_string(check)) return false;
    check->at = skip_space(check->at, check->end);
    if (!at_byte(check, ':', ':')) return json_refuse(check, check->at, "':'");
    check->at++;
    check->want = WANT_VALUE;
    return true;
}

static bool check_next(struct check *check) {
    bool object = in_object(check);
    if (at_byte(check, ',', ',')) {
        check->at++;
        check->want = object ? WANT_KEY : WANT_VALUE;
        return true;
    }
    if (at_byte(check, object ? '}' : ']', object ? '}' : ']')) return close_level(check);
    return json_refuse(check, check->at, object ? "',' or '}'" : "',' or ']'");
}

const char *json_string_end(const char *at, const char *end) {
    struct err ignored;
    struct check check = {.start = at, .at = at, .end = end, .e = &ignored};
    return at_byte(&check, '"', '"') && check_string(&check) ? check.at : NULL;
}

const char *json_number_end(const char *at, const char *end) {
    struct err ignored;
    struct check check = {.start = at, .at = at, .end = end, .e = &ignored};
    return check_number(&check) ? check.at : NULL;
}

bool json_read_depth(struct str text, unsigned depth_max, struct json *ret, struct err *e) {
    assert(depth_max <= JSON_DEPTH_MAX);
    if (text.len == 0) text = STR_EMPTY;
    struct check check = {.start = text.at,
                          .at = text.at,
                          .end = text.at + text.len,
                          .want = WANT_VALUE,
                          .depth_max = depth_max,
                          .e = e};
    do {
        check.at = skip_space(check.at, check.end);
        bool fine = check.want == WANT_NEXT ? check_next(&check)
                    : check.want == WANT_KEY || check.want == WANT_KEY_OR_END
                        ? check_key(&check)
                        : check_value(&check);
        if (!fine) return false;
    } while (check.depth > 0 || check.want != WANT_NEXT);
    check.at = skip_space(check.at, check.end);
    if (check.at < check.end) return json_refuse(&check, check.at, "the end of the text");
    *ret = json_of(text);
    return true;
}

bool json_read(struct str text, struct json *ret, struct err *e) {
    return json_read_depth(text, JSON_DEPTH_MAX, ret, e);
}

bool json_read_object(struct str text, struct json *ret) {
    struct err ignored;
    if (json_read(text, ret, &ignored) && ret->kind == JSON_OBJECT) return true;
    *ret = (struct json){.kind = JSON_NONE};
    return false;
}

/* ---- Walking what was accepted ---- */

static enum json_kind json_kind_of(char first) {
    switch (first) {
    case '{': return JSON_OBJECT;
    case '[': return JSON_ARRAY;
    case '"': return JSON_STRING;
    case 't': return JSON_TRUE;
    case 'f': return JSON_FALSE;
    case 'n': return JSON_NULL;
    default: return JSON_NUMBER;
    }
}

struct json json_of(struct str raw) {
    raw = str_trim(raw);
    if (raw.len == 0) return (struct json){.kind = JSON_NONE, .raw = STR_EMPTY};
    return (struct json){.kind = json_kind_of(raw.at[0]), .raw = raw};
}

const char *json_kind_name(enum json_kind kind) {
    static const char *const names[] = {
        /* clang-format off */
        [JSON_NONE]   = "nothing",
        [JSON_OBJECT] = "an object",
        [JSON_ARRAY]  = "an array",
        [JSON_STRING] = "a string",
        [JSON_NUMBER] = "a number",
        [JSON_TRUE]   = "true",
        [JSON_FALSE]  = "false",
        [JSON_NULL]   = "null",
        /* clang-format on */
    };
    assert((size_t)kind < ARRAY_LEN(names));
    return names[kind];
}

/* The position after the string whose opening quote is at `at`. */
static inline __attribute__((always_inline)) const char *skip_string(const char *at,
                                                                     const char *end) {
    uint64_t seen = 0;
    for (at++; at < end; at++) {
        at = skip_ordinary(at, end, &seen);
        if (at == end) return end;
        if (*at == '"') return at + 1;
        if (*at == '\\' && end - at > 1) at++;
    }
    return end;
}

static bool ends_scalar(char c) {
    return c == ',' || c == ']' || c == '}' || c == ':' || json_is_space(c);
}

/* The position after the container that is `depth` levels deep at `at`; in a string: one that began
 * before. */
static const char *skip_levels(const char *at, const char *end, size_t depth, bool in_string) {
    if (in_string) at = skip_string(at - 1, end);
    while (at < end) {
        switch (*at) {
        case '"': at = skip_string(at, end); break;
        case '{':
        case '[':
            depth++;
            at++;
            break;
        case '}':
        case ']':
            depth -= depth > 0;
            at++;
            break;
        default: at++;
        }
        if (depth == 0) break;
    }
    return at;
}

#ifdef SIXTEEN_BITS
/* Of each bit: whether an odd number of bits up to it are set. */
static unsigned odd_up_to(unsigned bits) {
    bits ^= bits << 1;
    bits ^= bits << 2;
    bits ^= bits << 4;
    return (bits ^ bits << 8) & 0xFFFF;
}

/* The position after the container that begins at `at`, 16 bytes at a time until a backslash. Of
 * the bracket and the brace the high and low ones differ by one bit. */
static const char *skip_container(const char *at, const char *end) {
    size_t depth = 0;
    unsigned in_string = 0; /* all bits, or none */
    for (; end - at >= 16; at += 16) {
        sixteen c = sixteen_at(at), brace = c | 0x20;
        if (sixteen_bits((sixteen)(c == '\\'))) break;
        unsigned inside = odd_up_to(sixteen_bits((sixteen)(c == '"'))) ^ in_string;
        unsigned opens = sixteen_bits((sixteen)(brace == '{')) & ~inside;
        unsigned marks = opens | (sixteen_bits((sixteen)(brace == '}')) & ~inside);
        for (; marks; marks &= marks - 1) {
            depth += opens & marks & -marks ? 1 : (size_t)-1;
            if (depth == 0) return at + __builtin_ctz(marks) + 1;
        }
        in_string = inside >> 15 ? 0xFFFF : 0;
    }
    return skip_levels(at, end, depth, in_string != 0);
}
#else
static const char *skip_container(const char *at, const char *end) {
    return skip_levels(at, end, 0, false);
}
#endif

/* The position after the value that begins at `at`. */
static inline const char *skip_value(const char *at, const char *end) {
    if (at < end && *at == '"') return skip_string(at, end);
    if (at < end && (*at == '{' || *at == '[')) return skip_container(at, end);
    while (at < end && !ends_scalar(*at)) at++;
    return at;
}

struct json_reader json_enter(struct json container) {
    bool has_parts = container.kind == JSON_OBJECT || container.kind == JSON_ARRAY;
    if (!has_parts || container.raw.len < 2)
        return (struct json_reader){.rest = STR_EMPTY, .kind = JSON_NONE};
    struct str inner = str_of(container.raw.at + 1, container.raw.len - 2);
    return (struct json_reader){.rest = inner, .kind = container.kind};
}

/* Cut one value off the front of *rest, with the white space and the `mark` (if any) after
 * it. */
static struct json json_take_value(struct str *rest, char mark) {
    const char *end = rest->at + rest->len;
    const char *begin = skip_space(rest->at, end);
    const char *after = skip_value(begin, end);
    const char *next = skip_space(after, end);
    if (next < end && *next == mark) next++;
    *rest = str_of(next, (size_t)(end - next));
    if (after == begin) return (struct json){.kind = JSON_NONE, .raw = STR_EMPTY};
    return (struct json){.kind = json_kind_of(*begin),
                         .raw = str_of(begin, (size_t)(after - begin))};
}

bool json_next_member(struct json_reader *reader, struct json *ret_key,
                      struct json *ret_value) {
    if (reader->kind != JSON_OBJECT) return false;
    struct json key = json_take_value(&reader->rest, ':');
    if (key.kind == JSON_NONE) return false;
    *ret_key = key;
    *ret_value = json_take_value(&reader->rest, ',');
    return true;
}

bool json_next_item(struct json_reader *reader, struct json *ret_item) {
    if (reader->kind != JSON_ARRAY) return false;
    struct json item = json_take_value(&reader->rest, ',');
    if (item.kind == JSON_NONE) return false;
    *ret_item = item;
    return true;
}

static bool is_plain_key(struct json name, struct str key) {
    return name.raw.len == key.len + 2 && str_same(name.raw.at + 1, key.at, key.len);
}

/* Set `ret` of each key that is the name. Names are rarely escaped, so the bytes are compared. */
static void set_each(struct json name, struct json value, const struct str *keys, size_t count,
                     struct json *ret) {
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        if (!is_plain_key(name, keys[i])) continue;
        ret[i] = value;
        found = true;
    }
    if (found || str_find_byte(name.raw, '\\') == name.raw.len) return;
    for (size_t i = 0; i < count; i++) {
        if (json_is(name, keys[i])) ret[i] = value;
    }
}

void json_find_each(struct json object, const struct str *keys, size_t count,
                    struct json *ret) {
    struct json_reader reader = json_enter(object);
    struct json name, value;
    for (size_t i = 0; i < count; i++)
        ret[i] = (struct json){.kind = JSON_NONE, .raw = STR_EMPTY};
    while (json_next_member(&reader, &name, &value)) set_each(name, value, keys, count, ret);
}

/* The key that is the name, or `count`. */
static size_t key_of(struct json name, const struct str *keys, size_t count) {
    bool escaped = str_find_byte(name.raw, '\\') < name.raw.len;
    size_t i = 0;
    while (i < count && !(escaped ? json_is(name, keys[i]) : is_plain_key(name, keys[i]))) i++;
    return i;
}

static bool stands_twice(struct str key, struct err *e) {
    return err_set(e, ERR_MALFORMED, "\"" STR_FMT "\" stands in the object more than once",
                   STR_ARG(key));
}

bool json_find_once(struct json object, const struct str *keys, size_t count, struct json *ret,
                    struct err *e) {
    struct json_reader reader = json_enter(object);
    struct json name, value;
    for (size_t i = 0; i < count; i++)
        ret[i] = (struct json){.kind = JSON_NONE, .raw = STR_EMPTY};
    while (json_next_member(&reader, &name, &value)) {
        size_t i = key_of(name, keys, count);
        if (i == count) continue;
        if (ret[i].kind != JSON_NONE) return stands_twice(keys[i], e);
        ret[i] = value;
    }
    return true;
}

struct json json_find(struct json object, struct str key) {
    struct json found;
    json_find_each(object, &key, 1, &found);
    return found;
}

bool json_check_once(struct json object, const char *const *keys, struct err *e) {
    struct json_reader reader = json_enter(object);
    struct json key, value;
    uint64_t seen = 0;
    while (object.kind == JSON_OBJECT && json_next_member(&reader, &key, &value)) {
        size_t i = 0;
        while (keys[i] && !json_is(key, str_from(keys[i]))) i++;
        assert(i < 64);
        uint64_t bit = keys[i] ? UINT64_C(1) << i : 0;
        if (seen & bit) return stands_twice(str_from(keys[i]), e);
        seen |= bit;
    }
    return true;
}

struct json json_at(struct json array, size_t index) {
    struct json_reader reader = json_enter(array);
    struct json item;
    for (size_t i = 0; json_next_item(&reader, &item); i++) {
        if (i == index) return item;
    }
    return (struct json){.kind = JSON_NONE, .raw = STR_EMPTY};
}

size_t json_count(struct json container) {
    struct json_reader reader = json_enter(container);
    struct json key, value;
    size_t count = 0;
    while (json_next_member(&reader, &key, &value) || json_next_item(&reader, &value)) count++;
    return count;
}
