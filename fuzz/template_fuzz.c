/* Any text as a template: its pieces, put together again, are the text, and a brace never gets
 * lost. Any bytes as what a tool said: the result is one JSON object, however it was meant. */
#include "tool/template.h"
#include "tool/tool_output.h"
#include "wire/json.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const heads[] = {"", "{", "{env:", "{call:"};

static void put(const struct template_piece *piece, struct buf *out) {
    bool brace = piece->kind == TEMPLATE_TEXT && piece->text.len == 1 &&
                 (piece->text.at[0] == '{' || piece->text.at[0] == '}');
    buf_append(out, str_from(heads[piece->kind]));
    buf_append(out, piece->text);
    if (brace) buf_append(out, piece->text);
    if (piece->kind != TEMPLATE_TEXT) buf_append_byte(out, '}');
}

static void cut(struct str text) {
    struct template_piece piece;
    struct str rest = text;
    struct err e;
    struct buf again;
    bool good = true;
    buf_init(&again, SIZE_MAX);
    while (good && rest.len) {
        size_t before = rest.len;
        good = template_next(&rest, &piece, &e);
        if (good) put(&piece, &again);
        assert(!good || rest.len < before);
    }
    assert(good ? str_equal(buf_str(&again), text) : e.text[0] != 0);
    buf_done(&again);
}

static void check_result(struct str text, enum tool_output_form form) {
    struct buf out;
    struct json value;
    struct err e;
    buf_init(&out, SIZE_MAX);
    if (tool_output_write(text, form, STR("output"), &out, &e)) {
        bool reads = json_read(buf_str(&out), &value, &e);
        assert(reads && json_count(value) == 1);
    } else {
        assert(form == TOOL_OUTPUT_JSON);
    }
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str text = str_of(data, size);
    cut(text);
    check_result(text, TOOL_OUTPUT_AUTO);
    check_result(text, TOOL_OUTPUT_JSON);
    check_result(text, TOOL_OUTPUT_TEXT);
    return 0;
}
