/* The heads of frames, with the bytes cut anywhere. */
#include "server/frames.h"

#include "base/buf.h"
#include "helper/assert_str.h"

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

/* Settings, a PRIORITY on 3 that depends on 7, DATA on 5 with a reserved bit, an empty frame,
 * a PRIORITY too short for what it should hold. */
static const char stream[] = PREFACE "\0\0\6\4\0\0\0\0\0abcdef"
                                     "\0\0\5\2\0\0\0\0\3\x80\0\0\7\x10"
                                     "\0\0\4\0\1\x80\0\0\5data"
                                     "\0\0\0\1\5\0\0\0\x09"
                                     "\0\0\2\2\0\0\0\0\x0b??";

#define EXPECTED "4:0:0 2:3:2147483655 0:5:0 1:9:0 2:11:0 "

static void walk(struct frames *frames, struct str bytes, struct buf *seen) {
    struct frame_head head;
    while (frames_next(frames, &bytes, &head))
        buf_printf(seen, "%u:%d:%u ", head.type, head.stream, head.first4);
    assert_int_equal(bytes.len, 0);
}

static void heads_are_the_same_however_the_bytes_are_cut(void **state) {
    (void)state;
    struct str all = str_of(stream, sizeof(stream) - 1);
    for (size_t cut = 0; cut <= all.len; cut++) {
        for (size_t cut2 = cut; cut2 <= all.len; cut2++) {
            struct buf seen;
            struct frames frames;
            buf_init(&seen, 1 * KIB);
            frames_init(&frames);
            walk(&frames, str_head(all, cut), &seen);
            walk(&frames, str_head(str_skip(all, cut), cut2 - cut), &seen);
            walk(&frames, str_skip(all, cut2), &seen);
            assert_str(buf_str(&seen), EXPECTED);
            buf_done(&seen);
        }
    }
}

static void a_head_is_delivered_before_its_payload_arrives(void **state) {
    (void)state;
    struct frames frames;
    struct frame_head head;
    struct str rest = STR(PREFACE "\xff\xff\xff\0\0\0\0\0\1");
    frames_init(&frames);
    assert_true(frames_next(&frames, &rest, &head));
    assert_int_equal(head.stream, 1);
    assert_int_equal(frames.left, 0xffffff);
}

static void a_setting_is_given_another_value_in_place(void **state) {
    (void)state;
    char frame[] = "\0\0\x0c\x04\0\0\0\0\0\0\x03\x7f\xff\xff\xff\0\x04\0\0\0\x01";
    frames_set(frame, sizeof(frame) - 1, 3, 0x01020304);
    assert_memory_equal(frame + 9, "\0\x03\x01\x02\x03\x04\0\x04\0\0\0\x01", 12);
    char ping[] = "\0\0\x08\x06\0\0\0\0\0\0\x03\x7f\xff\xff\xff\0\x04";
    frames_set(ping, sizeof(ping) - 1, 3, 0);
    assert_memory_equal(ping + 9, "\0\x03\x7f\xff\xff\xff\0\x04", 8);
    for (size_t len = 0; len < sizeof(frame); len++) frames_set(frame, len, 3, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_are_the_same_however_the_bytes_are_cut),
        cmocka_unit_test(a_head_is_delivered_before_its_payload_arrives),
        cmocka_unit_test(a_setting_is_given_another_value_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
