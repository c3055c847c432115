/* Whatever a keyboard sends: the text is valid, the cursor stands at a character, and it is the same
 * however the bytes are cut. What is drawn of it holds no control but the drawing's own. */
#include "cli/line_draw.h"

#include <assert.h>

#define TEXT_MAX_BYTES 512

static void check_drawn(const struct line_edit *edit, struct line_screen *screen) {
    struct buf out;
    buf_init(&out, 64 * KIB);
    line_draw(edit, STR("> "), screen, &out);
    assert(buf_ok(&out) && utf8_valid(buf_str(&out)) && screen->cursor_row < screen->rows);
    for (struct str rest = buf_str(&out); rest.len; rest = str_skip(rest, 1)) {
        unsigned char byte = (unsigned char)rest.at[0];
        if (str_starts(rest, STR("\x1b["))) {
            rest = str_skip(rest, 2);
            while (rest.at[0] >= '0' && rest.at[0] <= '9') rest = str_skip(rest, 1);
            assert(rest.at[0] == 'A' || rest.at[0] == 'C' || rest.at[0] == 'J');
        } else {
            assert(byte == '\r' || byte == '\n' || (byte >= 0x20 && byte != 0x7F));
        }
    }
    buf_done(&out);
}

static void check(const struct line_edit *edit) {
    assert(utf8_valid(buf_str(&edit->text)) && edit->cursor <= edit->text.len);
    assert(utf8_valid(str_head(buf_str(&edit->text), edit->cursor)));
}

/* Returns the first event's bytes, or all. */
static size_t eat(struct line_edit *edit, struct str bytes, size_t piece) {
    size_t eaten = 0;
    while (eaten < bytes.len) {
        struct str rest = str_head(str_skip(bytes, eaten), piece);
        size_t len = rest.len;
        enum line_edit_event event = line_edit_eat(edit, &rest);
        eaten += len - rest.len;
        assert(event != LINE_MORE || rest.len == 0);
        if (event == LINE_ENTERED || event == LINE_OVER) break;
    }
    check(edit);
    return eaten;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct line_history history;
    struct line_edit whole, cut;
    if (size < 3 || size > 4 * KIB) return 0;
    struct line_screen screen = {.columns = data[0], .rows = 1 + data[1] % 40};
    struct str bytes = str_of(data + 2, size - 2);
    line_history_init(&history, STR_EMPTY);
    line_history_add(&history, STR("older\nlines"));
    line_history_add(&history, STR("newer"));
    line_edit_init(&whole, &history, TEXT_MAX_BYTES);
    line_edit_init(&cut, &history, TEXT_MAX_BYTES);
    while (bytes.len) {
        line_edit_begin(&whole);
        line_edit_begin(&cut);
        size_t eaten = eat(&whole, bytes, bytes.len);
        assert(eat(&cut, bytes, 1) == eaten);
        if (whole.text.len + 256 < TEXT_MAX_BYTES) { /* else what fits depends on the pieces */
            assert(str_equal(buf_str(&whole.text), buf_str(&cut.text)));
            assert(whole.cursor == cut.cursor);
        }
        check_drawn(&whole, &screen);
        check_drawn(&whole, &screen);
        bytes = str_skip(bytes, eaten);
    }
    line_edit_done(&whole);
    line_edit_done(&cut);
    line_history_done(&history);
    return 0;
}
