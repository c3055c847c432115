#include "sidecar/path.h"

/* The next byte of a path, decoded and in lower case. */
static char take_byte(struct str *path) {
    char c = path->at[0];
    bool coded = c == '%' && path->len > 2 && str_hex_digit(path->at[1]) >= 0 &&
                 str_hex_digit(path->at[2]) >= 0;
    if (coded) c = (char)(str_hex_digit(path->at[1]) * 16 + str_hex_digit(path->at[2]));
    *path = str_skip(*path, coded ? 3 : 1);
    return c >= 'A' && c <= 'Z' ? (char)(c | 32) : c;
}

/* Without the last segment and the slash before it. */
static void drop_segment(struct buf *out, size_t start) {
    size_t len = out->len;
    while (len > start && out->at[len - 1] != '/') len--;
    out->len = len > start ? len - 1 : start;
}

/* A segment is complete: everything after the last slash. */
static void end_segment(struct buf *out, size_t start, size_t segment) {
    struct str last = str_skip(buf_str(out), segment);
    struct str name = str_head(last, str_find_byte(last, ';'));
    out->len = segment + name.len;
    if (str_equal(name, STR(".."))) {
        out->len = segment > start ? segment - 1 : start;
        drop_segment(out, start);
    } else if (!name.len || str_equal(name, STR("."))) {
        out->len = segment > start ? segment - 1 : start;
    }
}

void path_plain(struct str path, struct buf *out) {
    size_t start = out->len, segment = start;
    while (path.len) {
        char c = take_byte(&path);
        if (c == '\\') c = '/';
        if (c == '/') end_segment(out, start, segment);
        buf_append_byte(out, c);
        if (c == '/') segment = out->len;
    }
    end_segment(out, start, segment);
    if (out->len == start) buf_append_byte(out, '/');
}
