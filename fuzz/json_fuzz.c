/* Whatever json_read accepts can be walked to the end, unescaped, written again and compacted,
 * and says the same after each, also of members that stand twice. */
#include "wire/json_unique.h"

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

/* No half is left alone in a stream of two texts, wherever the second one ends. */
static void check_pairs(struct str input, struct buf *out, struct buf *mended) {
    const struct str texts[] = {str_skip(input, input.len / 2), input};
    struct json_pairs pairs = {.waits = false};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        buf_clear(out);
        buf_clear(mended);
        bool lone = json_pairs_mend(&pairs, texts[i], out);
        json_mend_surrogates(buf_str(out), mended);
        assert(str_equal(buf_str(out), buf_str(mended)) && (lone || out->len == 0));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str input = str_of(data, size);
    struct json value, again;
    struct err e;
    struct buf text, out, mended;
    buf_init(&text, 6 * size + 16);
    buf_init(&mended, 2 * size + 16);
    buf_init(&out, 6 * size + 16);

    json_put_str(&out, input); /* any bytes become a string that is accepted */
    assert(buf_ok(&out) && json_read(buf_str(&out), &value, &e));
    rewrite(value, &text, &out);

    buf_clear(&out);
    json_mend_surrogates(input, &mended);
    json_mend_surrogates(buf_str(&mended), &out);
    assert(mended.len == size && str_equal(buf_str(&out), buf_str(&mended)));

    check_pairs(input, &out, &mended);
    buf_clear(&mended);
    json_mend_surrogates(input, &mended);

    if (json_read(input, &value, &e)) {
        assert(str_equal(buf_str(&mended), input)); /* there was nothing to mend */
        rewrite(value, &text, &out);
        size_t parts = walk(value, &text);
        buf_clear(&out);
        assert(json_compact(input, &out) && json_read(buf_str(&out), &again, &e));
        assert(walk(again, &text) == parts);
        assert(json_check_unique(value, &e) == json_check_unique(again, &e));
    } else {
        assert(e.code == ERR_MALFORMED && e.text[0]);
    }
    buf_done(&text);
    buf_done(&out);
    buf_done(&mended);
    return 0;
}
