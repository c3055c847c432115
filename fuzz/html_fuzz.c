/* Any bytes that are UTF-8 become text that is UTF-8, within bounds. */
#include "text/html.h"

#include "base/utf8.h"

#include <assert.h>

#define OUT_MAX_BYTES (64 * KIB)

static bool some_more(void *ctx) {
    unsigned *left = ctx;
    return (*left)-- > 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct err e;
    struct buf page, out;
    unsigned left = 20000;
    struct html_options options = {
        .url = STR("https://example.org/a"), .go_on = some_more, .ctx = &left};
    buf_init(&page, 3 * size);
    buf_init(&out, OUT_MAX_BYTES);
    utf8_append_repaired(&page, str_of(data, size));
    if (html_text(buf_str(&page), &options, &out, &e)) {
        assert(utf8_valid(buf_str(&out)));
    } else {
        assert(e.text[0]);
    }
    buf_done(&out);
    buf_done(&page);
    return 0;
}
