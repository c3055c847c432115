/* Whatever json_read accepts can be walked to the end, unescaped, written again and compacted,
 * and says the same after each. */
#include "wire/json.h"

#include <assert.h>

static size_t walk(struct json value, struct buf *text) {
    struct json_reader reader = json_enter(value);
    struct json key, part;
    size_t parts = 1;
    int64_t number;
    double real;
    buf_clear(text);
    if (value.kind == JSON_STRING) assert(json_text(value, text));
    if (value.kind == JSON_STRING) assert(json_is(value, buf_str(text)));
    if (value.kind == JSON_NUMBER) assert(json_double(value, &real));
    if (json_i64(value, &number)) assert(value.kind == JSON_NUMBER);
    while (json_next_item(&reader, &part)) parts += walk(part, text);
    while (json_next_member(&reader, &key, &part)) {
        buf_clear(text);
        assert(json_text(key, text));
        assert(json_find(value, buf_str(text)).kind != JSON_NONE);
        parts += walk(part, text);
    }
    return parts;
}

/* A string must survive being written and read. */
static void rewrite(struct json value, struct buf *text, struct buf *out) {
    struct json again;
    struct err e;
    if (value.kind != JSON_STRING) return;
    buf_clear(text);
    buf_clear(out);
    assert(json_text(value, text) && json_put_str(out, buf_str(text)));
    assert(json_read(buf_str(out), &again, &e) && json_is(again, buf_str(text)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str input = str_of(data, size);
    struct json value, again;
    struct err e;
    struct buf text, out;
    buf_init(&text, 6 * size + 16);
    buf_init(&out, 6 * size + 16);

    json_put_str(&out, input); /* any bytes become a string that is accepted */
    assert(buf_ok(&out) && json_read(buf_str(&out), &value, &e));
    rewrite(value, &text, &out);

    if (json_read(input, &value, &e)) {
        rewrite(value, &text, &out);
        size_t parts = walk(value, &text);
        buf_clear(&out);
        assert(json_compact(input, &out) && json_read(buf_str(&out), &again, &e));
        assert(walk(again, &text) == parts);
    } else {
        assert(e.code == ERR_MALFORMED && e.text[0]);
    }
    buf_done(&text);
    buf_done(&out);
    return 0;
}
