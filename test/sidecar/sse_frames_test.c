#include "sidecar/sse_frames.h"

#include "helper/assert_str.h"

static bool record(const struct sse_frame *frame, void *ctx) {
    struct buf *seen = ctx;
    buf_printf(seen, STR_FMT "|" STR_FMT "|" STR_FMT ";", STR_ARG(frame->bytes),
               STR_ARG(frame->event), STR_ARG(frame->data.at ? frame->data : STR("none")));
    return true;
}

static bool feed(struct sse_frames *frames, struct str piece, struct buf *seen) {
    struct err e;
    struct str copy = exact_copy(piece);
    bool fine = sse_frames_feed(frames, copy, record, seen, &e);
    free((void *)copy.at);
    return fine;
}

/* What comes out must not depend on where the stream is cut. */
static void assert_frames(struct str stream, const char *expected) {
    for (size_t cut = 0; cut <= stream.len; cut++) {
        struct sse_frames frames;
        struct buf seen;
        buf_init(&seen, 4096);
        sse_frames_init(&frames, 256);
        assert_true(feed(&frames, str_head(stream, cut), &seen));
        assert_true(feed(&frames, str_skip(stream, cut), &seen));
        assert_str(buf_str(&seen), expected);
        sse_frames_done(&frames);
        buf_done(&seen);
    }
}

static void a_frame_keeps_its_bytes(void **state) {
    (void)state;
    assert_frames(STR("event: result\nid: 7\ndata: {}\n\n"),
                  "event: result\nid: 7\ndata: {}\n|result|{};");
    assert_frames(STR(": ping\n\ndata:x\n\n"), ": ping\n||none;data:x\n||x;");
    assert_frames(STR("data\n\n"), "data\n||;");
}

static void every_line_break_becomes_a_line_feed(void **state) {
    (void)state;
    assert_frames(STR("data: a\r\n\r\ndata: b\r\rdata: c\n\r\n"),
                  "data: a\n||a;data: b\n||b;data: c\n||c;");
    assert_frames(STR("\n\r\n\rdata: a\n\n"), "data: a\n||a;");
}

static void data_lines_are_joined(void **state) {
    (void)state;
    assert_frames(STR("data: a\ndata\ndata:  b\n\n"), "data: a\ndata\ndata:  b\n||a\n\n b;");
    assert_frames(STR("data:\ndata:\n\n"), "data:\ndata:\n||\n;");
}

static void a_byte_order_mark_is_dropped_once(void **state) {
    (void)state;
    assert_frames(STR("\xef\xbb\xbf"
                      "data: a\n\n"),
                  "data: a\n||a;");
    assert_frames(STR("\n\xef\xbb\xbf"
                      "data: a\n\n"),
                  "\xef\xbb\xbf"
                  "data: a\n||none;");
}

static void a_frame_without_its_empty_line_is_kept_back(void **state) {
    (void)state;
    struct sse_frames frames;
    struct buf seen;
    buf_init(&seen, 256);
    sse_frames_init(&frames, 256);
    assert_true(feed(&frames, STR("data: a\n"), &seen));
    assert_true(sse_frames_midway(&frames));
    assert_int_equal(seen.len, 0);
    assert_true(feed(&frames, STR("\n"), &seen));
    assert_false(sse_frames_midway(&frames));
    sse_frames_done(&frames);
    buf_done(&seen);
}

static void a_frame_has_a_limit(void **state) {
    (void)state;
    for (size_t limit = 0; limit < 12; limit++) {
        struct sse_frames frames;
        struct buf seen;
        buf_init(&seen, 256);
        sse_frames_init(&frames, limit);
        assert_int_equal(feed(&frames, STR("data: 1234\n\n"), &seen), limit > 10);
        sse_frames_done(&frames);
        buf_done(&seen);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_keeps_its_bytes),
        cmocka_unit_test(every_line_break_becomes_a_line_feed),
        cmocka_unit_test(data_lines_are_joined),
        cmocka_unit_test(a_byte_order_mark_is_dropped_once),
        cmocka_unit_test(a_frame_without_its_empty_line_is_kept_back),
        cmocka_unit_test(a_frame_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
