#include "route/pattern.h"

#include "base/utf8.h"

/* Cut the first segment, "/" excluded, off `*rest`. False at the end. */
static bool next_segment(struct str *rest, struct str *ret) {
    if (rest->len == 0 || rest->at[0] != '/') return false;
    struct str after = str_skip(*rest, 1);
    *ret = str_head(after, str_find_byte(after, '/'));
    *rest = str_skip(after, ret->len);
    return true;
}

static bool is_hole(struct str segment) {
    return segment.len > 2 && segment.at[0] == '{' && segment.at[segment.len - 1] == '}';
}

/* Most patterns are another path's: that is seen before their first hole. */
bool pattern_matches_rest(struct str pattern, struct str path) {
    size_t same = 0;
    for (; same < pattern.len && pattern.at[same] != '{'; same++) {
        if (same == path.len || pattern.at[same] != path.at[same]) return false;
    }
    if (same == pattern.len) return path.len == same;
    struct str want, got;
    while (next_segment(&pattern, &want)) {
        if (!next_segment(&path, &got)) return false;
        if (is_hole(want) ? got.len == 0 : !str_equal(want, got)) return false;
    }
    return path.len == 0;
}

struct str pattern_parameter(struct str pattern, struct str path, struct str name) {
    struct str want, got;
    while (next_segment(&pattern, &want) && next_segment(&path, &got)) {
        if (is_hole(want) && str_equal(str_of(want.at + 1, want.len - 2), name)) return got;
    }
    return STR_EMPTY;
}

/* --- text --------------------------------------------------------------------------------- */

static bool decode_bytes(struct str text, char plus, struct buf *out) {
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i] == '+' ? plus : text.at[i];
        if (c == '%') {
            if (text.len - i < 3) return false;
            int high = str_hex_digit(text.at[i + 1]), low = str_hex_digit(text.at[i + 2]);
            if (high < 0 || low < 0) return false;
            c = (char)(high << 4 | low);
            i += 2;
        }
        if (!buf_append_byte(out, c)) return false;
    }
    return true;
}

static bool pattern_decode(struct str text, char plus, struct buf *out) {
    size_t before = out->len;
    if (decode_bytes(text, plus, out) && utf8_valid(str_skip(buf_str(out), before)))
        return true;
    out->len = before;
    return false;
}

bool segment_decode(struct str segment, struct buf *out) {
    return pattern_decode(segment, '+', out);
}

enum query_value query_find(struct str query, struct str name, struct buf *out) {
    while (query.len) {
        struct str rest, value, pair = str_split(query, '&', &rest);
        struct str key = str_split(pair, '=', &value);
        query = rest;
        if (str_equal(key, name))
            return pattern_decode(value, ' ', out) ? QUERY_READ : QUERY_BAD;
    }
    return QUERY_ABSENT;
}
