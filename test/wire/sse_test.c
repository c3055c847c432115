#include "wire/sse.h"

#include "helper/assert_str.h"

#include "base/mem.h"

static void record(const struct sse_event *event, void *ctx) {
    struct buf *seen = ctx;
    buf_printf(seen, STR_FMT "=" STR_FMT, STR_ARG(event->type), STR_ARG(event->data));
    if (event->id.len) buf_printf(seen, "#" STR_FMT, STR_ARG(event->id));
    buf_append_byte(seen, ';');
}

static bool feed(struct sse *sse, struct str piece, struct err *e) {
    struct str copy = exact_copy(piece);
    bool fine = sse_feed(sse, copy, e);
    free((void *)copy.at);
    return fine;
}

/* What a stream says must not depend on where it is cut. */
static void assert_reads(struct str stream, const char *expected) {
    for (size_t cut = 0; cut <= stream.len; cut++) {
        struct err e;
        struct buf seen;
        buf_init(&seen, 1024);
        struct sse *sse = sse_new(64, record, &seen);
        assert_true(feed(sse, str_head(stream, cut), &e));
        assert_true(feed(sse, str_skip(stream, cut), &e));
        assert_str(buf_str(&seen), expected);
        sse_free(sse);
        buf_done(&seen);
    }
    struct err e;
    struct buf seen;
    buf_init(&seen, 1024);
    struct sse *sse = sse_new(64, record, &seen);
    for (size_t i = 0; i < stream.len; i++)
        assert_true(feed(sse, str_of(stream.at + i, 1), &e));
    assert_str(buf_str(&seen), expected);
    sse_free(sse);
    buf_done(&seen);
}

static void a_stream_reads_the_same_however_it_is_cut(void **state) {
    (void)state;
    assert_reads(STR("data: a\r\n\r\nevent: done\ndata: b\ndata:c\n\n"),
                 "message=a;done=b\nc;");
}

static void every_kind_of_line_break_ends_a_line(void **state) {
    (void)state;
    assert_reads(STR("data: a\n\ndata: b\r\rdata: c\r\n\r\n"),
                 "message=a;message=b;message=c;");
    assert_reads(STR("data: a\r\ndata: b\n\r\n"), "message=a\nb;");
    assert_reads(STR("data: a\rdata: b\r\n\r"), "message=a\nb;");
    assert_reads(STR("data: a\n\r"), "message=a;");
    assert_reads(STR("\r\n\n\r\rdata: a\r\n\n"), "message=a;");
}

static void data_lines_are_joined_by_line_feeds(void **state) {
    (void)state;
    assert_reads(STR("data: a\ndata\ndata:\ndata: b\n\n"), "message=a\n\n\nb;");
    assert_reads(STR("data\n\n"), "message=;");
    assert_reads(STR("data:\ndata:\n\n"), "message=\n;");
}

static void one_space_after_the_colon_is_not_content(void **state) {
    (void)state;
    assert_reads(STR("data:a\n\ndata: a\n\ndata:  a\n\ndata: \n\n"),
                 "message=a;message=a;message= a;message=;");
    assert_reads(STR("data:a:b\n\n"), "message=a:b;");
    assert_reads(STR("data :a\n\n"), "");
}

static void an_event_without_data_is_none_and_forgets_its_type(void **state) {
    (void)state;
    assert_reads(STR("event: x\n\ndata: a\n\n"), "message=a;");
    assert_reads(STR("event: x\nevent: y\ndata: a\n\n"), "y=a;");
    assert_reads(STR("event: x\nevent:\ndata: a\n\n"), "message=a;");
}

static void comments_and_unknown_fields_are_skipped(void **state) {
    (void)state;
    assert_reads(STR(": hello\n\n:\n:data: no\ndata: a\n: in between\ndata: b\n\n"),
                 "message=a\nb;");
    assert_reads(STR("Data: a\ndatax: b\nfoo\nfoo: bar\ndata: c\n\n"), "message=c;");
}

static void a_comment_of_any_length_costs_nothing(void **state) {
    (void)state;
    struct err e;
    struct buf seen;
    buf_init(&seen, 64);
    struct sse *sse = sse_new(16, record, &seen);
    assert_true(feed(sse, STR(":"), &e));
    for (int i = 0; i < 1000; i++) assert_true(feed(sse, STR("data: a long comment"), &e));
    assert_false(sse_midway(sse));
    assert_true(feed(sse, STR("\ndata: a\n\n: and one that comes whole, at once\n"), &e));
    assert_str(buf_str(&seen), "message=a;");
    sse_free(sse);
    buf_done(&seen);
}

static void the_last_id_is_kept_across_events(void **state) {
    (void)state;
    assert_reads(STR("id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n"),
                 "message=a#1;message=b#1;message=c;");
    assert_reads(STR("id: 1\n\ndata: a\n\n"), "message=a#1;");
    assert_reads(STR("id: 1\nid: a\0b\ndata: a\n\n"), "message=a#1;");
}

static void an_id_counts_from_the_end_of_its_event(void **state) {
    (void)state;
    struct err e;
    struct buf seen;
    buf_init(&seen, 64);
    struct sse *sse = sse_new(64, record, &seen);
    assert_true(sse_feed(sse, STR("id: 7-1\ndata: a\n\nid: 7-2\ndata: b\n"), &e));
    assert_str(sse_last_id(sse), "7-1");
    assert_true(sse_feed(sse, STR("\n"), &e));
    assert_str(sse_last_id(sse), "7-2");
    sse_free(sse);
    buf_done(&seen);
}

static void retry_is_digits_only(void **state) {
    (void)state;
    struct err e;
    uint64_t wait_ms = 0;
    struct buf seen;
    buf_init(&seen, 64);
    struct sse *sse = sse_new(64, record, &seen);
    assert_true(sse_feed(sse, STR("retry: soon\nretry: 1.5\nretry:\nretry: -1\n"), &e));
    assert_false(sse_retry_ms(sse, &wait_ms));
    assert_true(sse_feed(sse, STR("retry: 2500\nretry: 99999999999999999999\n"), &e));
    assert_true(sse_retry_ms(sse, &wait_ms));
    assert_int_equal(wait_ms, 2500);
    sse_free(sse);
    buf_done(&seen);
}

static void one_byte_order_mark_at_the_start_is_dropped(void **state) {
    (void)state;
    assert_reads(STR("\xEF\xBB\xBF"
                     "data: a\n\n"),
                 "message=a;");
    assert_reads(STR("\xEF\xBB\xBF\xEF\xBB\xBF"
                     "data: a\n\ndata: b\n\n"),
                 "message=b;");
    assert_reads(STR("\n\xEF\xBB\xBF"
                     "data: a\n\ndata: b\n\n"),
                 "message=b;");
    assert_reads(STR("\xEF\xBB"
                     "data: a\n\ndata: b\n\n"),
                 "message=b;");
}

static void bytes_that_are_no_text_become_replacement_characters(void **state) {
    (void)state;
    assert_reads(STR("data: a\xFF"
                     "b\xE2\x82\n\ndata: \xE2\x82\xAC\n\n"),
                 "message=a\xEF\xBF\xBD"
                 "b\xEF\xBF\xBD;message=\xE2\x82\xAC;");
}

static void an_event_that_was_not_ended_is_none(void **state) {
    (void)state;
    struct str stream = STR("event: x\ndata: a\ndata: b\n\n");
    for (size_t cut = 0; cut <= stream.len; cut++) {
        struct err e;
        struct buf seen;
        buf_init(&seen, 64);
        struct sse *sse = sse_new(64, record, &seen);
        assert_true(feed(sse, str_head(stream, cut), &e));
        assert_int_equal(sse_midway(sse), cut > 0 && cut < stream.len);
        assert_int_equal(seen.len > 0, cut == stream.len);
        sse_free(sse);
        buf_done(&seen);
    }
}

/* Walks the limit down to zero: 12 bytes are the longest line. */
static void an_event_beyond_the_limit_ends_the_parser(void **state) {
    (void)state;
    struct str stream = STR("data: abcdef\n\ndata: b\n\n");
    for (size_t limit = 0; limit <= 13; limit++) {
        for (size_t cut = 0; cut <= stream.len; cut++) {
            struct err e = {0};
            struct buf seen;
            buf_init(&seen, 64);
            struct sse *sse = sse_new(limit, record, &seen);
            bool fine = feed(sse, str_head(stream, cut), &e);
            fine = fine && feed(sse, str_skip(stream, cut), &e);
            assert_int_equal(fine, limit >= 12);
            if (!fine) assert_int_equal(e.code, ERR_TOO_LARGE);
            assert_str(buf_str(&seen), fine ? "message=abcdef;message=b;" : "");
            if (!fine) assert_false(sse_feed(sse, STR("\n\n"), &e));
            sse_free(sse);
            buf_done(&seen);
        }
    }
}

static void many_data_lines_are_limited_together(void **state) {
    (void)state;
    struct err e;
    struct buf seen;
    buf_init(&seen, 64);
    struct sse *sse = sse_new(16, record, &seen);
    assert_true(sse_feed(sse, STR("data: 1234567\ndata: 12345678\n\n"), &e));
    assert_str(buf_str(&seen), "message=1234567\n12345678;");
    assert_false(sse_feed(sse, STR("data: 12345678\ndata: 12345678\n\n"), &e));
    assert_str(buf_str(&seen), "message=1234567\n12345678;");
    sse_free(sse);
    buf_done(&seen);
}

static struct sse *stopping;

static void record_and_stop(const struct sse_event *event, void *ctx) {
    record(event, ctx);
    sse_stop(stopping);
}

static void a_stopped_parser_lends_no_further_event(void **state) {
    (void)state;
    struct err e;
    struct buf seen;
    buf_init(&seen, 64);
    stopping = sse_new(64, record_and_stop, &seen);
    assert_true(sse_feed(stopping, STR("data: [DONE]\n\ndata: more\n\n"), &e));
    assert_true(sse_feed(stopping, STR("data: more\n\n"), &e));
    assert_str(buf_str(&seen), "message=[DONE];");
    sse_free(stopping);
    buf_done(&seen);
}

static void a_stream_of_only_line_breaks_is_read_in_one_pass(void **state) {
    (void)state;
    struct err e;
    struct buf seen;
    size_t len = 8 * MIB;
    char *bytes = mem_alloc(len);
    buf_init(&seen, 64);
    struct sse *sse = sse_new(64, record, &seen);
    for (const char *breaks = "\r\n"; *breaks; breaks++) {
        memset(bytes, *breaks, len);
        assert_true(sse_feed(sse, str_of(bytes, len), &e));
    }
    sse_free(sse);
    buf_done(&seen);
    free(bytes);
}

static void events_are_written_as_the_strictest_reader_wants_them(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 256);
    assert_true(sse_append(&out, STR_EMPTY, STR_EMPTY, STR("{\"delta\":\"hello \"}")));
    assert_true(sse_append(&out, STR("error"), STR_EMPTY, STR("{}")));
    assert_true(sse_append(&out, STR("reset"), STR("2-17"), STR_EMPTY));
    assert_true(sse_append_comment(&out, STR("alive")));
    assert_true(sse_append(&out, STR_EMPTY, STR_EMPTY, STR("[DONE]")));
    assert_str(buf_str(&out), "data: {\"delta\":\"hello \"}\n\n"
                              "event: error\ndata: {}\n\n"
                              "id: 2-17\nevent: reset\ndata: \n\n"
                              ": alive\n\n"
                              "data: [DONE]\n\n");
    buf_done(&out);
}

static void what_is_written_reads_back(void **state) {
    (void)state;
    static const struct {
        const char *data, *read;
    } cases[] = {
        {"plain", "plain"}, {"", ""},           {" space", " space"},
        {"a\nb", "a\nb"},   {"a\r\nb", "a\nb"}, {"a\rb\n\rc", "a\nb\n\nc"},
        {"\n", "\n"},       {"a\n", "a\n"},     {"data: x\n\nevent: y", "data: x\n\nevent: y"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf out, expected;
        buf_init(&out, 256);
        buf_init(&expected, 256);
        assert_true(sse_append(&out, STR("t"), STR("9"), str_from(cases[i].data)));
        buf_printf(&expected, "t=%s#9;", cases[i].read);
        buf_append_byte(&expected, '\0');
        assert_reads(buf_str(&out), expected.at);
        buf_done(&out);
        buf_done(&expected);
    }
}

static void writing_stops_at_the_limit(void **state) {
    (void)state;
    struct str whole = STR("id: 1\nevent: x\ndata: a\ndata: b\n\n");
    for (size_t limit = 0; limit <= whole.len; limit++) {
        struct buf out;
        buf_init(&out, limit);
        assert_int_equal(sse_append(&out, STR("x"), STR("1"), STR("a\nb")), limit == whole.len);
        assert_true(str_starts(whole, buf_str(&out)));
        buf_done(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_reads_the_same_however_it_is_cut),
        cmocka_unit_test(every_kind_of_line_break_ends_a_line),
        cmocka_unit_test(data_lines_are_joined_by_line_feeds),
        cmocka_unit_test(one_space_after_the_colon_is_not_content),
        cmocka_unit_test(an_event_without_data_is_none_and_forgets_its_type),
        cmocka_unit_test(comments_and_unknown_fields_are_skipped),
        cmocka_unit_test(a_comment_of_any_length_costs_nothing),
        cmocka_unit_test(the_last_id_is_kept_across_events),
        cmocka_unit_test(an_id_counts_from_the_end_of_its_event),
        cmocka_unit_test(retry_is_digits_only),
        cmocka_unit_test(one_byte_order_mark_at_the_start_is_dropped),
        cmocka_unit_test(bytes_that_are_no_text_become_replacement_characters),
        cmocka_unit_test(an_event_that_was_not_ended_is_none),
        cmocka_unit_test(an_event_beyond_the_limit_ends_the_parser),
        cmocka_unit_test(many_data_lines_are_limited_together),
        cmocka_unit_test(a_stopped_parser_lends_no_further_event),
        cmocka_unit_test(a_stream_of_only_line_breaks_is_read_in_one_pass),
        cmocka_unit_test(events_are_written_as_the_strictest_reader_wants_them),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(writing_stops_at_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
