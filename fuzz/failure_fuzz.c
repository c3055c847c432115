/* What a vendor says about a failure, in any shape: it always has a reason and a sentence on
 * one line of valid text that is no longer than it may be, and what is safe stays as it is. The
 * first byte chooses the HTTP status. */
#include "provider/dialect.h"

#include "base/utf8.h"

#include <assert.h>

static void assert_one_line(struct str text) {
    assert(utf8_valid(text));
    for (size_t i = 0; i < text.len; i++) assert((unsigned char)text.at[i] >= ' ');
}

static void quote(struct str text, size_t max_bytes) {
    struct buf once, twice;
    buf_init(&once, max_bytes);
    buf_init(&twice, max_bytes);
    reply_append_safe(&once, text, max_bytes);
    assert(buf_ok(&once));
    assert_one_line(buf_str(&once));
    reply_append_safe(&twice, buf_str(&once), max_bytes);
    assert(buf_ok(&twice));
    assert_one_line(buf_str(&twice));
    buf_done(&once);
    buf_done(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const unsigned statuses[] = {0,   200, 302, 400, 401, 404,
                                        413, 422, 429, 500, 503, 529};
    if (size < 2) return 0;
    struct str input = str_of(data + 2, size - 2);
    quote(input, data[1]);
    quote(input, 4 * KIB);

    struct err e;
    struct json body = {.kind = JSON_NONE};
    if (!json_read(input, &body, &e)) body = (struct json){.kind = JSON_NONE};
    struct reply_failure failure = {.reason = NULL};
    reply_failure_of("Acme", statuses[data[0] % ARRAY_LEN(statuses)], body, &failure);
    assert(failure.reason && failure.why.code != ERR_NONE);
    assert_one_line(err_text(&failure.why));
    assert(str_starts(err_text(&failure.why), STR("Acme ")));
    return 0;
}
