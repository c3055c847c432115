#include "wire/multipart.h"

#include "helper/assert_str.h"

static void parts_stand_between_their_boundaries(void **state) {
    (void)state;
    static const struct multipart_part parts[] = {
        {STR_INIT("model"), STR_INIT(""), STR_INIT(""), STR_INIT("whisper-1")},
        {STR_INIT("file"), STR_INIT("a.wav"), STR_INIT("audio/wav"), STR_INIT("\0\r\n--x")},
    };
    struct err e;
    struct buf type, out;
    buf_init(&type, 128);
    buf_init(&out, 1024);
    assert_true(multipart_write(parts, ARRAY_LEN(parts), &type, &out, &e));
    assert_str(buf_str(&type), "multipart/form-data; boundary=weir-form-00000000");
    assert_true(
        str_equal(buf_str(&out), STR("--weir-form-00000000\r\n"
                                     "Content-Disposition: form-data; name=\"model\"\r\n"
                                     "\r\n"
                                     "whisper-1\r\n"
                                     "--weir-form-00000000\r\n"
                                     "Content-Disposition: form-data; name=\"file\"; "
                                     "filename=\"a.wav\"\r\n"
                                     "Content-Type: audio/wav\r\n"
                                     "\r\n"
                                     "\0\r\n--x\r\n"
                                     "--weir-form-00000000--\r\n")));
    buf_done(&type);
    buf_done(&out);
}

static void no_content_holds_the_boundary(void **state) {
    (void)state;
    static const struct multipart_part parts[] = {
        {STR_INIT("a"), STR_INIT(""), STR_INIT(""), STR_INIT("\r\n--weir-form-00000000--\r\n")},
        {STR_INIT("b"), STR_INIT(""), STR_INIT(""), STR_INIT("weir-form-00000001")},
    };
    struct err e;
    struct buf type, out;
    buf_init(&type, 128);
    buf_init(&out, 1024);
    assert_true(multipart_write(parts, ARRAY_LEN(parts), &type, &out, &e));
    assert_str(buf_str(&type), "multipart/form-data; boundary=weir-form-00000002");
    buf_done(&type);
    buf_done(&out);
}

static void a_name_that_breaks_its_line_is_refused(void **state) {
    (void)state;
    static const struct multipart_part bad[] = {
        {STR_INIT("a\r\nb"), STR_INIT(""), STR_INIT(""), STR_INIT("x")},
        {STR_INIT(""), STR_INIT(""), STR_INIT(""), STR_INIT("x")},
        {STR_INIT("a"), STR_INIT("\"; x=\""), STR_INIT(""), STR_INIT("x")},
        {STR_INIT("a"), STR_INIT("b"), STR_INIT("text/plain\r\nX: y"), STR_INIT("x")},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e;
        struct buf type, out;
        buf_init(&type, 128);
        buf_init(&out, 1024);
        assert_false(multipart_write(&bad[i], 1, &type, &out, &e));
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        assert_int_equal(out.len, 0);
        buf_done(&type);
        buf_done(&out);
    }
}

static void a_form_that_does_not_fit_is_refused(void **state) {
    (void)state;
    static const struct multipart_part part = {STR_INIT("a"), STR_INIT(""), STR_INIT(""),
                                               STR_INIT("0123456789")};
    bool fitted = false;
    for (size_t limit = 0; limit < 256; limit++) {
        struct err e;
        struct buf type, out;
        buf_init(&type, 128);
        buf_init(&out, limit);
        bool fits = multipart_write(&part, 1, &type, &out, &e);
        assert_true(fits || e.code == ERR_TOO_LARGE);
        assert_true(!fitted || fits);
        fitted = fits;
        buf_done(&type);
        buf_done(&out);
    }
    assert_true(fitted);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_stand_between_their_boundaries),
        cmocka_unit_test(no_content_holds_the_boundary),
        cmocka_unit_test(a_name_that_breaks_its_line_is_refused),
        cmocka_unit_test(a_form_that_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
