/* str: a borrowed view of bytes.
 *
 * Text travels through the program as a pointer and a length, by value. A view never owns its
 * bytes (base/text.h does) and need not end in NUL. The function that returns a view says how
 * long it stays valid.
 *
 * Memory   none.
 * Threads  any; values only.
 */
#ifndef WEIR_BASE_STR_H
#define WEIR_BASE_STR_H

#include "base/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
    const char *at;
    size_t len;
};

#define STR(literal) ((struct str){"" literal, sizeof(literal) - 1})
#define STR_INIT(literal)                                                                      \
    { "" literal, sizeof(literal) - 1 }
#define STR_EMPTY ((struct str){"", 0})

/* For printf: "%.*s" and its two arguments. */
#define STR_FMT "%.*s"
#define STR_ARG(s) (int)((s).len), ((s).len ? (s).at : "")

static inline struct str str_from(const char *text) {
    return (struct str){text ? text : "", text ? strlen(text) : 0};
}

static inline struct str str_of(const void *at, size_t len) {
    return (struct str){at, len};
}

static inline bool str_equal(struct str a, struct str b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

/* Whether the `len` bytes at `a` and at `b` are equal: memcmp() without the call for 8 to 16. */
static inline bool str_same(const char *a, const char *b, size_t len) {
    uint64_t a_first, a_last, b_first, b_last;
    if (len < sizeof(a_first) || len > 2 * sizeof(a_first)) return memcmp(a, b, len) == 0;
    memcpy(&a_first, a, sizeof(a_first));
    memcpy(&b_first, b, sizeof(b_first));
    memcpy(&a_last, a + len - sizeof(a_last), sizeof(a_last));
    memcpy(&b_last, b + len - sizeof(b_last), sizeof(b_last));
    return ((a_first ^ b_first) | (a_last ^ b_last)) == 0;
}

/* The first `len` bytes, or all of them when there are fewer. */
static inline struct str str_head(struct str s, size_t len) {
    return (struct str){s.at, len < s.len ? len : s.len};
}

/* What follows the first `len` bytes; empty when there are fewer. */
static inline struct str str_skip(struct str s, size_t len) {
    size_t cut = len < s.len ? len : s.len;
    if (cut == 0) return s; /* also keeps NULL + 0 out, which C does not define */
    return (struct str){s.at + cut, s.len - cut};
}

static inline bool str_starts(struct str s, struct str head) {
    return s.len >= head.len && (head.len == 0 || memcmp(s.at, head.at, head.len) == 0);
}

static inline bool str_ends(struct str s, struct str tail) {
    return s.len >= tail.len && str_equal(str_skip(s, s.len - tail.len), tail);
}

/* ASCII letters compare without case; all other bytes must be equal. */
bool str_equal_nocase(struct str a, struct str b);

/* Whether `byte` is an ASCII letter or digit. */
static inline bool str_is_alnum(char byte) {
    char lower = (char)(byte | 32);
    return (lower >= 'a' && lower <= 'z') || (byte >= '0' && byte <= '9');
}

/* The value of a hexadecimal digit, in either case; -1: it is not one. */
static inline int str_hex_digit(char byte) {
    if (byte >= '0' && byte <= '9') return byte - '0';
    char lower = (char)(byte | 32);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Whether each byte is printable ASCII, blanks included; true of an empty text. */
bool str_is_printable(struct str s);

/* Whether each byte is an ASCII letter, a digit or one of `more`; true of an empty text. */
bool str_is_plain(struct str s, const char *more);

/* -1, 0 or 1, comparing unsigned bytes; a prefix sorts first. */
int str_compare(struct str a, struct str b);

/* Index of the first `byte`, or s.len when there is none. */
size_t str_find_byte(struct str s, char byte);

/* Index of the first `part`, or s.len when there is none. An empty part is found at 0. */
size_t str_find(struct str s, struct str part);

/* Like str_find, but ASCII letters compare without case. */
size_t str_find_nocase(struct str s, struct str part);

/* Without spaces, tabs, CR and LF at both ends. */
struct str str_trim(struct str s);

/* Split at the first `byte`: returns the part before it and sets `*rest` to the part after it.
 * Without such a byte, all of `s` is returned and *rest is empty with rest->at NULL. */
struct str str_split(struct str s, char byte, struct str *rest);

/* Parse all of `s` as decimal digits, without a sign. False, and nothing stored, when it is
 * not a number or does not fit. */
MUST_CHECK bool str_to_u64(struct str s, uint64_t *ret);

/* The same with an optional '-' or '+'. */
MUST_CHECK bool str_to_i64(struct str s, int64_t *ret);

/* A copy that ends in NUL; free() it. */
char *str_dup(struct str s);

#endif
