#include "text/terminal_text.h"

#include "base/utf8.h"
#include "text/width.h"

/* Characters above ASCII that a terminal may act on, or that hide or reorder text. */
static const struct {
    uint32_t first, last;
} hostile[] = {
    {0x80, 0x9F},       /* C1 controls */
    {0x061C, 0x061C},   /* Arabic letter mark */
    {0x200E, 0x200F},   /* left-to-right and right-to-left mark */
    {0x2028, 0x202E},   /* line and paragraph separator; embeddings and overrides */
    {0x2066, 0x2069},   /* isolates */
    {0xFFF9, 0xFFFB},   /* interlinear annotations */
    {0xE0000, 0xE007F}, /* tags */
};

static bool is_hostile(uint32_t c) {
    for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
        if (c >= hostile[i].first && c <= hostile[i].last) return true;
    }
    return false;
}

/* The length of the longest prefix that may be shown as it is. `text` is valid UTF-8. */
static size_t harmless_prefix(struct str text) {
    size_t at = 0, len;
    for (; at < text.len; at += len) {
        uint32_t c = width_decode(str_skip(text, at), &len);
        if (c < 0x20 || c == 0x7F || is_hostile(c)) break;
    }
    return at;
}

/* --- for people --------------------------------------------------------------------------- */

/* `next` is what follows, to tell a line end of two characters. */
static void append_control(struct buf *out, uint32_t c, struct str next,
                           enum terminal_lines lines) {
    bool is_gap = c == '\n' || c == '\t' || c == '\r';
    if (c == '\r' && (next.len == 0 || next.at[0] == '\n')) return;
    if (is_gap && lines == TERMINAL_ONE_LINE) {
        buf_append_byte(out, ' ');
    } else if (c == '\n' || c == '\t') {
        buf_append_byte(out, (char)c);
    } else if (c == 0x7F) {
        utf8_append(out, 0x2421);
    } else {
        utf8_append(out, c < 0x20 ? 0x2400 + c : 0xFFFD); /* control pictures */
    }
}

static void append_valid(struct buf *out, struct str text, enum terminal_lines lines) {
    while (text.len) {
        size_t len, plain = harmless_prefix(text);
        buf_append(out, str_head(text, plain));
        text = str_skip(text, plain);
        if (text.len == 0) return;
        uint32_t c = width_decode(text, &len);
        text = str_skip(text, len);
        append_control(out, c, text, lines);
    }
}

/* Text of ours is valid mostly, and then it is not copied. */
bool terminal_text_append(struct buf *out, struct str text, enum terminal_lines lines) {
    struct buf repaired;
    if (utf8_valid(text)) {
        append_valid(out, text, lines);
        return buf_ok(out);
    }
    buf_init(&repaired, 3 * text.len + 3);
    utf8_append_repaired(&repaired, text);
    append_valid(out, buf_str(&repaired), lines);
    buf_done(&repaired);
    return buf_ok(out);
}

/* --- for programs ------------------------------------------------------------------------- */

static void terminal_text_append_escaped(struct buf *out, uint32_t c) {
    if (c > 0xFFFF) {
        buf_printf(out, "\\u%04x\\u%04x", 0xD7C0 + (c >> 10), 0xDC00 + (c & 0x3FF));
    } else {
        buf_printf(out, "\\u%04x", c);
    }
}

bool terminal_text_append_json(struct buf *out, struct str json) {
    while (json.len) {
        size_t len, plain = utf8_valid_prefix(json);
        plain = harmless_prefix(str_head(json, plain));
        buf_append(out, str_head(json, plain));
        json = str_skip(json, plain);
        if (json.len == 0) break;
        if (utf8_valid_prefix(str_head(json, 4)) == 0) { /* no JSON has this */
            utf8_append(out, 0xFFFD);
            json = str_skip(json, 1);
            continue;
        }
        uint32_t c = width_decode(json, &len);
        json = str_skip(json, len);
        if (c == '\n' || c == '\t' || c == '\r') {
            buf_append_byte(out, ' '); /* between tokens: strings have none */
        } else {
            terminal_text_append_escaped(out, c);
        }
    }
    return buf_ok(out);
}
