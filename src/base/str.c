#include "base/str.h"

#include "base/mem.h"

static char str_lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool str_equal_nocase(struct str a, struct str b) {
    if (a.len != b.len) return false;
    if (str_equal(a, b)) return true;
    for (size_t i = 0; i < a.len; i++) {
        if (str_lower(a.at[i]) != str_lower(b.at[i])) return false;
    }
    return true;
}

bool str_is_printable(struct str s) {
    for (size_t i = 0; i < s.len; i++) {
        if (s.at[i] < ' ' || s.at[i] > '~') return false;
    }
    return true;
}

bool str_is_plain(struct str s, const char *more) {
    for (size_t i = 0; i < s.len; i++) {
        char byte = s.at[i];
        if (!str_is_alnum(byte) && (byte == '\0' || !strchr(more, byte))) return false;
    }
    return true;
}

int str_compare(struct str a, struct str b) {
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common ? memcmp(a.at, b.at, common) : 0;
    if (order != 0) return order < 0 ? -1 : 1;
    return a.len == b.len ? 0 : a.len < b.len ? -1 : 1;
}

size_t str_find_byte(struct str s, char byte) {
    const char *found = s.len ? memchr(s.at, byte, s.len) : NULL;
    return found ? (size_t)(found - s.at) : s.len;
}

size_t str_find(struct str s, struct str part) {
    if (part.len == 0) return 0;
    const char *found = s.len ? memmem(s.at, s.len, part.at, part.len) : NULL;
    return found ? (size_t)(found - s.at) : s.len;
}

size_t str_find_nocase(struct str s, struct str part) {
    for (size_t i = 0; i + part.len <= s.len; i++) {
        if (str_equal_nocase(str_of(s.at + i, part.len), part)) return i;
    }
    return s.len;
}

static bool str_is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct str str_trim(struct str s) {
    while (s.len && str_is_space(s.at[0])) s = str_skip(s, 1);
    while (s.len && str_is_space(s.at[s.len - 1])) s.len--;
    return s;
}

struct str str_split(struct str s, char byte, struct str *rest) {
    size_t cut = str_find_byte(s, byte);
    *rest = cut == s.len ? (struct str){NULL, 0} : str_skip(s, cut + 1);
    return str_head(s, cut);
}

bool str_to_u64(struct str s, uint64_t *ret) {
    if (s.len == 0) return false;
    uint64_t value = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.at[i] < '0' || s.at[i] > '9') return false;
        if (__builtin_mul_overflow(value, 10u, &value)) return false;
        if (__builtin_add_overflow(value, (uint64_t)(s.at[i] - '0'), &value)) return false;
    }
    *ret = value;
    return true;
}

bool str_to_i64(struct str s, int64_t *ret) {
    bool negative = s.len && s.at[0] == '-';
    if (s.len && (s.at[0] == '-' || s.at[0] == '+')) s = str_skip(s, 1);
    uint64_t size;
    if (!str_to_u64(s, &size)) return false;
    if (size > (uint64_t)INT64_MAX + (negative ? 1 : 0)) return false;
    *ret = negative ? (int64_t)(0 - size) : (int64_t)size;
    return true;
}

char *str_dup(struct str s) {
    char *copy = mem_alloc(s.len + 1);
    if (s.len) memcpy(copy, s.at, s.len);
    copy[s.len] = '\0';
    return copy;
}
