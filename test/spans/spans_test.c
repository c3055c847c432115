#include "spans/spans.h"

#include "helper/assert_str.h"
#include "wire/pb.h"

#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define IDS                                                                                    \
    "\x0a\x10\x0a\xf7\x65\x19\x16\xcd\x43\xdd\x84\x48\xeb\x21\x1c\x80\x31\x9c"                 \
    "\x12\x08\xb7\xad\x6b\x71\x69\x20\x33\x31"

static atomic_uint begun; /* chunks */

static void count_chunk(void *ctx) {
    (void)ctx;
    begun++;
}

static void start(void) {
    begun = 0;
    spans_start(count_chunk, NULL);
}

static struct trace_context trace_of(const char *parent) {
    struct trace_context trace;
    assert_true(trace_context_read(str_from(parent), &trace));
    return trace;
}

static void report(struct str what, struct str error) {
    struct trace_context self = trace_of(PARENT);
    const struct span_attribute attributes[] = {
        SPAN_TEXT("a.text", STR("x\"y")), SPAN_TEXT("a.empty", STR_EMPTY),
        SPAN_NUMBER("a.number", 7), SPAN_NUMBER("a.unknown", -1)};
    spans_report(&(struct span){.self = &self,
                                .operation = SPAN_NAME("chat"),
                                .what = what,
                                .kind = SPAN_CLIENT,
                                .ended_unix_ms = 1500,
                                .took_ms = 500,
                                .attributes = attributes,
                                .count = ARRAY_LEN(attributes),
                                .error = error});
}

/* All that waits. Returns the number of spans. */
static size_t take(struct buf *out, uint64_t *ret_dropped) {
    struct spans_chunk *chunk;
    size_t count = 0;
    uint64_t dropped;
    *ret_dropped = 0;
    while ((chunk = spans_take(SPANS_ANY, &dropped))) {
        struct spans_part part = spans_chunk_part(chunk, 0, SIZE_MAX);
        *ret_dropped += dropped;
        count += part.count;
        buf_append(out, str_of(part.at, part.len));
        spans_chunk_free(chunk);
    }
    *ret_dropped += dropped;
    return count;
}

static void nothing_is_kept_until_it_is_wanted(void **state) {
    (void)state;
    assert_false(spans_wanted());
    report(STR("m"), STR_EMPTY);
    spans_stop();
}

static void assert_bytes(struct str found, struct str expected) {
    assert_int_equal(found.len, expected.len);
    assert_memory_equal(found.at, expected.at, expected.len);
}

static void a_span_is_written_as_otlp_has_it(void **state) {
    (void)state;
    struct buf out;
    uint64_t dropped;
    start();
    report(STR("m"), STR("TIMEOUT"));
    buf_init(&out, 16 * KIB);
    assert_int_equal(take(&out, &dropped), 1);
    assert_int_equal(dropped, 0);
    assert_bytes(buf_str(&out), STR("\x12\x7c" IDS "\x2a\x06"
                                    "chat m"
                                    "\x30\x03\x39\x00\xca\x9a\x3b\x00\x00\x00\x00"
                                    "\x41\x00\x2f\x68\x59\x00\x00\x00\x00"
                                    "\x4a\x0f\x0a\x06"
                                    "a.text"
                                    "\x12\x05\x0a\x03x\"y"
                                    "\x4a\x0e\x0a\x08"
                                    "a.number"
                                    "\x12\x02\x18\x07"
                                    "\x4a\x17\x0a\x0a"
                                    "error.type"
                                    "\x12\x09\x0a\x07TIMEOUT"
                                    "\x7a\x02\x18\x02"
                                    "\x85\x01\x01\x00\x00\x00"));
    assert_int_equal(take(&out, &dropped), 0);
    buf_done(&out);
    spans_stop();
}

/* What only some spans have. */
static void a_span_has_its_parent_and_its_state(void **state) {
    (void)state;
    struct trace_context self = trace_of(PARENT);
    static const unsigned char parent[TRACE_SPAN_BYTES] = {[7] = 0xb2};
    struct buf out;
    uint64_t dropped;
    self.state = STR("a=1");
    buf_init(&out, KIB);
    start();
    spans_report(&(struct span){.self = &self,
                                .parent = parent,
                                .operation = SPAN_NAME("job"),
                                .kind = SPAN_CONSUMER,
                                .ended_unix_ms = 0,
                                .took_ms = 1});
    assert_int_equal(take(&out, &dropped), 1);
    assert_bytes(buf_str(&out), STR("\x12\x4a" IDS "\x1a\x03"
                                    "a=1"
                                    "\x22\x08\0\0\0\0\0\0\0\xb2\x2a\x03job"
                                    "\x30\x05\x39\0\0\0\0\0\0\0\0\x41\0\0\0\0\0\0\0\0"
                                    "\x85\x01\x01\0\0\0"));
    buf_done(&out);
    spans_stop();
}

static void a_chunk_is_told_of_once_and_is_full_before_the_next(void **state) {
    (void)state;
    uint64_t dropped;
    size_t reports = 0;
    start();
    report(STR("m"), STR_EMPTY);
    report(STR("m"), STR_EMPTY);
    assert_int_equal(begun, 1);
    assert_null(spans_take(SPANS_FULL, &dropped));
    while (begun == 1) report(STR("m"), STR_EMPTY), reports++;
    struct spans_chunk *chunk = spans_take(SPANS_FULL, &dropped);
    assert_non_null(chunk);
    assert_int_equal(spans_chunk_part(chunk, 0, SIZE_MAX).count, reports + 1);
    assert_null(spans_take(SPANS_FULL, &dropped));
    spans_chunk_free(chunk);
    chunk = spans_take(SPANS_ANY, &dropped);
    assert_int_equal(spans_chunk_part(chunk, 0, SIZE_MAX).count, 1);
    spans_chunk_free(chunk);
    report(STR("m"), STR_EMPTY);
    assert_int_equal(begun, 3);
    spans_stop();
}

static void what_does_not_fit_is_dropped_and_counted(void **state) {
    (void)state;
    struct buf out;
    uint64_t dropped;
    start();
    for (unsigned i = 0; i < 40000; i++)
        report(STR("a model with a rather long name"), STR("X"));
    buf_init(&out, 64 * MIB);
    size_t count = take(&out, &dropped);
    assert_true(dropped > 1000 && count > 10000);
    assert_int_equal(count + dropped, 40000);
    assert_int_equal(begun, SPANS_MAX_BYTES / SPANS_CHUNK_BYTES);
    report(STR("m"), STR_EMPTY); /* there is room again */
    assert_int_equal(take(&out, &dropped), 1);
    assert_int_equal(dropped, 0);
    buf_done(&out);
    spans_stop();
}

/* A chunk that the exporter has not given back counts, too. */
static void chunks_that_are_out_take_room(void **state) {
    (void)state;
    uint64_t dropped;
    start();
    for (unsigned i = 0; i < 60000; i++) report(STR("m"), STR_EMPTY);
    struct spans_chunk *chunk = spans_take(SPANS_ANY, &dropped);
    assert_non_null(chunk);
    report(STR("m"), STR_EMPTY);
    size_t count = spans_chunk_part(chunk, 0, SIZE_MAX).count;
    spans_chunk_free(spans_take(SPANS_ANY, &dropped));
    assert_int_equal(dropped, 1);
    report(STR("m"), STR_EMPTY);
    spans_chunk_free(chunk);
    spans_chunk_free(spans_take(SPANS_ANY, &dropped));
    assert_int_equal(dropped, 0);
    assert_true(count > 100);
    spans_stop();
}

/* Parts are whole spans, all of them, in order, whatever their limit. */
static void a_chunk_is_cut_between_spans(void **state) {
    (void)state;
    uint64_t dropped;
    start();
    for (unsigned i = 0; i < 20; i++) report(STR("m"), i % 2 ? STR("E") : STR_EMPTY);
    struct spans_chunk *chunk = spans_take(SPANS_ANY, &dropped);
    struct spans_part whole = spans_chunk_part(chunk, 0, SIZE_MAX);
    for (size_t max_bytes = 0; max_bytes <= whole.len; max_bytes++) {
        size_t from = 0, count = 0;
        struct spans_part part;
        while ((part = spans_chunk_part(chunk, from, max_bytes)).count) {
            assert_true(part.count == 1 || part.len <= max_bytes);
            assert_int_equal(part.at[0], 0x12);
            from += part.len;
            count += part.count;
        }
        assert_int_equal(from, whole.len);
        assert_int_equal(count, 20);
    }
    spans_chunk_free(chunk);
    spans_stop();
}

/* The span that has most of everything. */
static void report_largest(struct str text) {
    struct trace_context self = trace_of(PARENT);
    struct span_attribute attributes[SPAN_ATTRIBUTES_MAX];
    char states[TRACE_STATE_MAX_BYTES];
    memset(states, 's', sizeof(states));
    self.state = str_of(states, sizeof(states));
    for (size_t i = 0; i < ARRAY_LEN(attributes); i++)
        attributes[i] =
            (struct span_attribute)SPAN_TEXT("a.name.that.has.forty.bytes.............", text);
    spans_report(
        &(struct span){.self = &self,
                       .parent = self.span,
                       .operation = SPAN_NAME("an operation of as many as forty bytes,"),
                       .what = text,
                       .kind = SPAN_CLIENT,
                       .ended_unix_ms = INT64_MAX / 1000000,
                       .attributes = attributes,
                       .count = ARRAY_LEN(attributes),
                       .error = text});
}

static size_t count_of(struct str text, struct str wanted) {
    size_t count = 0, at;
    while ((at = str_find(text, wanted)) < text.len) {
        text = str_skip(text, at + wanted.len);
        count++;
    }
    return count;
}

/* As a value: its tag, its length, and itself. */
static struct str value_of(struct str text, char *room) {
    char *end = pb_put_bytes(pb_put_head(room, 1, text.len), text);
    return str_of(room, (size_t)(end - room));
}

static void texts_of_every_length_are_cut_and_fit(void **state) {
    (void)state;
    char text[SPAN_TEXT_BYTES + 10], room[SPAN_TEXT_BYTES + 8];
    struct buf out;
    uint64_t dropped;
    memset(text, '.', sizeof(text));
    buf_init(&out, MIB);
    for (size_t len = 1; len <= sizeof(text); len++) {
        struct str kept = str_of(text, len < SPAN_TEXT_BYTES ? len : SPAN_TEXT_BYTES);
        start();
        report_largest(str_of(text, len));
        assert_int_equal(take(&out, &dropped), 1);
        assert_int_equal(count_of(buf_str(&out), value_of(kept, room)),
                         SPAN_ATTRIBUTES_MAX + 1);
        struct str rest = str_skip(buf_str(&out), str_find(buf_str(&out), STR("bytes, ")) + 7);
        assert_memory_equal(rest.at, text, kept.len);
        assert_int_equal(rest.at[kept.len], 0x30);
        buf_clear(&out);
        spans_stop();
    }
    buf_done(&out);
}

static void a_long_text_is_cut_between_characters(void **state) {
    (void)state;
    char text[SPAN_TEXT_BYTES + 10];
    struct buf out;
    uint64_t dropped;
    memset(text, 'x', sizeof(text));
    memcpy(text + SPAN_TEXT_BYTES - 1, "\xc3\xa4", 2);
    buf_init(&out, 16 * KIB);
    start();
    report(str_of(text, sizeof(text)), STR_EMPTY);
    assert_int_equal(take(&out, &dropped), 1);
    assert_true(str_find(buf_str(&out), STR("\xc3")) == out.len);
    assert_true(str_find(buf_str(&out), STR("xx\x30\x03")) < out.len);
    buf_done(&out);
    spans_stop();
}

/* One text that is not UTF-8 would have a collector refuse all spans of the request. */
static void what_is_not_utf8_is_replaced(void **state) {
    (void)state;
    static const struct {
        struct str said, sent;
    } texts[] = {
        {STR_INIT("caf\xc3\xa9"), STR_INIT("\x2a\x0a"
                                           "chat caf\xc3\xa9\x30")},
        {STR_INIT("a\xff"
                  "b"),
         STR_INIT("\x2a\x0a"
                  "chat a\xef\xbf\xbd"
                  "b\x30")},
        {STR_INIT("longer than eight \x80"), STR_INIT("longer than eight \xef\xbf\xbd\x30")},
        {STR_INIT("\x80 longer than eight"), STR_INIT("\xef\xbf\xbd longer than eight\x30")},
    };
    struct buf out;
    uint64_t dropped;
    buf_init(&out, 16 * KIB);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        start();
        report(texts[i].said, texts[i].said);
        assert_int_equal(take(&out, &dropped), 1);
        assert_true(str_find(buf_str(&out), texts[i].sent) < out.len);
        assert_true(str_find(buf_str(&out), STR("\xff")) == out.len);
        buf_clear(&out);
        spans_stop();
    }
    char text[SPAN_TEXT_BYTES];
    memset(text, 0xff, sizeof(text)); /* each is three bytes in its place */
    start();
    report(str_of(text, sizeof(text)), STR_EMPTY);
    assert_int_equal(take(&out, &dropped), 1);
    assert_true(str_find(buf_str(&out), STR("\xff")) == out.len);
    assert_true(str_find(buf_str(&out), STR("\xef\xbf\xbd\x30\x03")) < out.len);
    buf_done(&out);
    spans_stop();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_kept_until_it_is_wanted),
        cmocka_unit_test(a_span_is_written_as_otlp_has_it),
        cmocka_unit_test(a_span_has_its_parent_and_its_state),
        cmocka_unit_test(a_chunk_is_told_of_once_and_is_full_before_the_next),
        cmocka_unit_test(what_does_not_fit_is_dropped_and_counted),
        cmocka_unit_test(chunks_that_are_out_take_room),
        cmocka_unit_test(a_chunk_is_cut_between_spans),
        cmocka_unit_test(texts_of_every_length_are_cut_and_fit),
        cmocka_unit_test(a_long_text_is_cut_between_characters),
        cmocka_unit_test(what_is_not_utf8_is_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
