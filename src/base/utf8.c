#include "base/utf8.h"

#include "base/sixteen.h"

#include <assert.h>

/* One row per kind of first byte: the number of bytes after it and the range of the second. */
static size_t tail_bounds(unsigned char first, unsigned char *low, unsigned char *high) {
    *low = 0x80;
    *high = 0xBF;
    if (first >= 0xC2 && first <= 0xDF) return 1;
    if (first == 0xE0) return *low = 0xA0, 2;
    if (first == 0xED) return *high = 0x9F, 2;
    if (first >= 0xE1 && first <= 0xEF) return 2;
    if (first == 0xF0) return *low = 0x90, 3;
    if (first >= 0xF1 && first <= 0xF3) return 3;
    if (first == 0xF4) return *high = 0x8F, 3;
    return 0;
}

/* Length of the first character of `s` (not empty). *ret_whole says whether it is complete; if
 * not, the result is the length of the ill-formed or unfinished part, at least 1. */
static size_t measure(struct str s, bool *ret_whole) {
    unsigned char first = (unsigned char)s.at[0];
    *ret_whole = true;
    if (first < 0x80) return 1;
    unsigned char low, high;
    size_t tail = tail_bounds(first, &low, &high);
    *ret_whole = false;
    if (tail == 0) return 1;
    for (size_t i = 1; i <= tail; i++) {
        if (i == s.len) return i;
        unsigned char next = (unsigned char)s.at[i];
        if (next < low || next > high) return i;
        low = 0x80;
        high = 0xBF;
    }
    *ret_whole = true;
    return tail + 1;
}

/* Whether no byte of the 32 at `at` has its high bit set. */
static inline bool is_ascii(const char *at) {
    return !sixteen_any(sixteen_at(at) | sixteen_at(at + 16));
}

/* The same for 64 bytes. */
static inline bool is_ascii_64(const char *at) {
    sixteen head = sixteen_at(at) | sixteen_at(at + 16);
    return !sixteen_any(head | sixteen_at(at + 32) | sixteen_at(at + 48));
}

static inline bool is_ascii_8(const char *at) {
    uint64_t eight;
    memcpy(&eight, at, 8);
    return !(eight & 0x8080808080808080u);
}

static size_t skip_ascii(struct str s, size_t at) {
    while (at + 64 <= s.len && is_ascii_64(s.at + at)) at += 64;
    while (at + 32 <= s.len && is_ascii(s.at + at)) at += 32;
    while (at + 8 <= s.len && is_ascii_8(s.at + at)) at += 8;
    bool rest = at < s.len && s.len - at < 8 && s.len >= 8;
    if (rest && is_ascii_8(s.at + s.len - 8)) return s.len; /* some bytes once more */
    while (at < s.len && (unsigned char)s.at[at] < 0x80) at++;
    return at;
}

/* The valid prefix of `s`, given that it is valid up to `at`. */
static __attribute__((noinline)) size_t valid_from(struct str s, size_t at) {
    while ((at = skip_ascii(s, at)) < s.len) {
        bool whole;
        size_t len = measure(str_skip(s, at), &whole);
        if (!whole) return at;
        at += len;
    }
    return at;
}

size_t utf8_valid_prefix(struct str s) {
    size_t at = skip_ascii(s, 0);
    return at == s.len ? at : valid_from(s, at);
}

bool utf8_valid(struct str s) {
    return utf8_valid_prefix(s) == s.len;
}

size_t utf8_ascii_prefix(struct str s) {
    return skip_ascii(s, 0);
}

size_t utf8_pending(struct str s) {
    for (size_t back = 1; back <= 3 && back <= s.len; back++) {
        unsigned char byte = (unsigned char)s.at[s.len - back];
        if ((byte & 0xC0) == 0x80) continue;
        bool whole;
        size_t len = measure(str_skip(s, s.len - back), &whole);
        unsigned char low, high;
        bool leads = byte >= 0x80 && tail_bounds(byte, &low, &high) > 0;
        return !whole && len == back && leads ? back : 0;
    }
    return 0;
}

size_t utf8_cut(struct str s, size_t max_bytes) {
    struct str head = str_head(s, max_bytes);
    return head.len == s.len ? s.len - utf8_pending(s) : head.len - utf8_pending(head);
}

static bool begins_character(char byte) {
    return ((unsigned char)byte & 0xC0) != 0x80;
}

/* The position `count` characters after `at`, or s.len. */
static __attribute__((noinline)) size_t head_from(struct str s, size_t at, uint64_t count) {
    /* Eight bytes at a time: bytes of the form 10xxxxxx do not begin a character. */
    for (uint64_t eight; at + 8 <= s.len; at += 8) {
        memcpy(&eight, s.at + at, 8);
        uint64_t tails = eight & ~(eight << 1) & 0x8080808080808080u;
        uint64_t begun = tails ? 8 - (uint64_t)__builtin_popcountll(tails) : 8;
        if (begun > count) break;
        count -= begun;
    }
    for (; at < s.len; at++) {
        if (begins_character(s.at[at]) && count-- == 0) break;
    }
    return at;
}

size_t utf8_head(struct str s, uint64_t count) {
    size_t at = 0;
    for (; at + 64 <= s.len && count >= 64 && is_ascii_64(s.at + at); at += 64) count -= 64;
    for (; at + 32 <= s.len && count >= 32 && is_ascii(s.at + at); at += 32) count -= 32;
    bool there = at == s.len || (count == 0 && begins_character(s.at[at]));
    return there ? at : head_from(s, at, count);
}

bool utf8_append_repaired(struct buf *buf, struct str s) {
    while (s.len) {
        size_t valid = utf8_valid_prefix(s);
        buf_append(buf, str_head(s, valid));
        s = str_skip(s, valid);
        if (s.len == 0) break;
        bool whole;
        size_t bad = measure(s, &whole);
        buf_append(buf, STR("\xEF\xBF\xBD"));
        s = str_skip(s, bad);
    }
    return buf_ok(buf);
}

bool utf8_append(struct buf *buf, uint32_t c) {
    assert(c <= 0x10FFFF && !(c >= 0xD800 && c <= 0xDFFF));
    char out[4];
    size_t len;
    if (c < 0x80) {
        out[0] = (char)c;
        len = 1;
    } else if (c < 0x800) {
        out[0] = (char)(0xC0 | (c >> 6));
        out[1] = (char)(0x80 | (c & 0x3F));
        len = 2;
    } else if (c < 0x10000) {
        out[0] = (char)(0xE0 | (c >> 12));
        out[1] = (char)(0x80 | ((c >> 6) & 0x3F));
        out[2] = (char)(0x80 | (c & 0x3F));
        len = 3;
    } else {
        out[0] = (char)(0xF0 | (c >> 18));
        out[1] = (char)(0x80 | ((c >> 12) & 0x3F));
        out[2] = (char)(0x80 | ((c >> 6) & 0x3F));
        out[3] = (char)(0x80 | (c & 0x3F));
        len = 4;
    }
    return buf_append(buf, str_of(out, len));
}
