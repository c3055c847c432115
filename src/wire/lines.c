#include "wire/lines.h"

#define PIECES_MAX_BYTES (256 * KIB) /* room for bytes received after a whole line */

void lines_init(struct lines *lines, size_t line_max_bytes) {
    *lines = (struct lines){.line_max_bytes = line_max_bytes};
    buf_init(&lines->bytes, line_max_bytes + PIECES_MAX_BYTES);
}

void lines_done(struct lines *lines) {
    buf_done(&lines->bytes);
}

static void forget_taken(struct lines *lines) {
    buf_drop(&lines->bytes, lines->taken);
    lines->scanned -= lines->taken;
    lines->taken = 0;
    if (!lines->bytes.len) buf_release(&lines->bytes);
}

bool lines_feed(struct lines *lines, struct str bytes) {
    if (lines->taken) forget_taken(lines);
    if (bytes.len > lines->bytes.max_bytes - lines->bytes.len) return false;
    return buf_append(&lines->bytes, bytes);
}

enum lines_found lines_next(struct lines *lines, struct str *ret) {
    struct str rest = str_skip(buf_str(&lines->bytes), lines->scanned);
    size_t end = lines->scanned + str_find_byte(rest, '\n');
    size_t len = end - lines->taken;
    bool whole = end < lines->bytes.len;
    lines->scanned = end;
    if (len > lines->line_max_bytes) return LINES_TOO_LONG;
    if (!whole) return LINES_NONE;
    struct str line = str_of(lines->bytes.at + lines->taken, len);
    if (str_ends(line, STR("\r"))) line.len--;
    lines->taken = lines->scanned = end + 1;
    *ret = line;
    return LINES_ONE;
}
