#include "wire/grpc.h"

#include "helper/assert_str.h"

/* G4 */
static void a_timeout_is_digits_and_a_unit(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t ns;
    } cases[] = {
        {"1n", 1},
        {"00000001n", 1},
        {"99999999n", 99999999},
        {"1u", 1000},
        {"100m", 100000000},
        {"0S", 0},
        {"0n", 0},
        {"00000000H", 0},
        {"1S", 1000000000},
        {"1234S", 1234000000000},
        {"2M", 120000000000},
        {"1H", 3600000000000},
        {"2562047H", 9223369200000000000},
        {"2562048H", INT64_MAX},
        {"99999999H", INT64_MAX},
        {"99999999M", 5999999940000000000},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t ns = 42;
        struct err e;
        if (!grpc_timeout_parse(str_from(cases[i].text), &ns, &e))
            fail_msg("%s", cases[i].text);
        assert_true(ns == cases[i].ns);
    }
}

/* G4 */
static void any_other_timeout_is_refused(void **state) {
    (void)state;
    static const char *const texts[] = {
        "",     "1",    "S",    "1234s", "-1S", "+1S",       "000000000S",
        "9a1S", "1h",   "1N",   " 1S",   "1S ", "1 S",       "1.5S",
        "1SS",  "1e3S", "0x1S", "1ms",   "nan", "1\xC2\xB5", "123456789n"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        uint64_t ns = 42;
        struct err e = {0};
        if (grpc_timeout_parse(str_from(texts[i]), &ns, &e)) fail_msg("%s", texts[i]);
        assert_int_equal(e.code, ERR_INTERNAL);
        assert_int_equal(ns, 42);
    }
    uint64_t ns;
    struct err e;
    assert_false(grpc_timeout_parse(STR("1\0S"), &ns, &e));
}

static void a_written_timeout_is_never_shorter_than_asked(void **state) {
    (void)state;
    static const struct {
        uint64_t ns;
        const char *text;
    } cases[] = {
        {0, "0n"},
        {99999999, "99999999n"},
        {100000000, "100000u"},
        {100000001, "100001u"},
        {UINT64_C(120) * 1000000000, "120000m"},
        {INT64_MAX, "2562048H"},
        {UINT64_MAX, "5124096H"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf out;
        struct err e;
        uint64_t back;
        buf_init(&out, 16);
        assert_true(grpc_timeout_append(&out, cases[i].ns));
        assert_str(buf_str(&out), cases[i].text);
        assert_true(grpc_timeout_parse(buf_str(&out), &back, &e));
        assert_true(back >= cases[i].ns || back == INT64_MAX);
        buf_done(&out);
    }
}

static void assert_encoded(struct str text, const char *expected) {
    struct buf out;
    buf_init(&out, 2 * KIB);
    assert_true(grpc_message_encode(&out, text));
    assert_str(buf_str(&out), expected);
    buf_done(&out);
}

/* G6 */
static void a_status_message_is_percent_encoded(void **state) {
    (void)state;
    assert_encoded(STR(""), "");
    assert_encoded(STR("all fine: ~!"), "all fine: ~!");
    assert_encoded(STR("a\0b"), "a%00b");
    assert_encoded(STR("100%"), "100%25");
    assert_encoded(STR("系统"), "%E7%B3%BB%E7%BB%9F");
    assert_encoded(STR("\xFF\xFE\xFD"), "%EF%BF%BD%EF%BF%BD%EF%BF%BD");
    assert_encoded(STR("\t\r\n\x7F"), "%09%0D%0A%7F");
    assert_encoded(STR(" a b "), "%20a b%20");
    assert_encoded(STR(" "), "%20");
    assert_encoded(STR("\xE2\x82"), "%EF%BF%BD");
}

/* G1: the text of the official case special_status_message. */
static void a_status_message_comes_back_byte_for_byte(void **state) {
    (void)state;
    struct str text = STR("\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n");
    struct buf out, back;
    buf_init(&out, 2 * KIB);
    buf_init(&back, 2 * KIB);
    assert_true(grpc_message_encode(&out, text));
    assert_true(grpc_message_decode(&back, buf_str(&out)));
    assert_true(str_equal(buf_str(&back), text));
    buf_done(&out);
    buf_done(&back);
}

/* G6 */
static void a_long_status_message_is_cut_between_characters(void **state) {
    (void)state;
    static const char *const fillers[] = {"a", "é", "系", "😈", "%", " ", "\xFF", "a b "};
    for (size_t i = 0; i < ARRAY_LEN(fillers); i++) {
        struct buf text, out, back;
        buf_init(&text, 16 * KIB);
        buf_init(&out, 2 * KIB);
        buf_init(&back, 16 * KIB);
        while (text.len < 10 * KIB) buf_append(&text, str_from(fillers[i]));
        assert_true(grpc_message_encode(&out, buf_str(&text)));
        assert_true(out.len <= GRPC_STATUS_MESSAGE_MAX_BYTES);
        assert_true(out.len > GRPC_STATUS_MESSAGE_MAX_BYTES - 12 || fillers[i][0] == ' ');
        assert_true(grpc_message_decode(&back, buf_str(&out)));
        if (fillers[i][0] != '\xFF') assert_true(str_starts(buf_str(&text), buf_str(&back)));
        buf_done(&text);
        buf_done(&out);
        buf_done(&back);
    }
}

static void text_that_is_not_an_escape_stays_as_it_is(void **state) {
    (void)state;
    static const struct {
        const char *value, *text;
    } cases[] = {
        {"%", "%"},     {"%4", "%4"},     {"%zz", "%zz"},     {"a%2", "a%2"},
        {"%25%", "%%"}, {"%41%4", "A%4"}, {"%e2%82%ac", "€"}, {"%FF", "\xEF\xBF\xBD"},
        {"%%41", "%A"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf out;
        buf_init(&out, 64);
        assert_true(grpc_message_decode(&out, str_from(cases[i].value)));
        assert_str(buf_str(&out), cases[i].text);
        buf_done(&out);
    }
}

static void every_byte_survives_encoding_when_it_is_text(void **state) {
    (void)state;
    for (int c = 0; c < 128; c++) {
        char text[] = {'a', (char)c, 'z'};
        struct buf out, back;
        buf_init(&out, 64);
        buf_init(&back, 64);
        assert_true(grpc_message_encode(&out, str_of(text, 3)));
        for (size_t i = 0; i < out.len; i++) assert_true(out.at[i] >= ' ' && out.at[i] <= '~');
        assert_true(grpc_message_decode(&back, buf_str(&out)));
        assert_true(str_equal(buf_str(&back), str_of(text, 3)));
        buf_done(&out);
        buf_done(&back);
    }
}

/* G7 */
static void only_grpc_with_protobuf_is_served(void **state) {
    (void)state;
    static const struct {
        const char *value;
        bool served;
    } cases[] = {
        {"application/grpc", true},
        {"application/grpc+proto", true},
        {"application/grpc;x=y", true},
        {"application/grpc+proto ; charset=utf-8", true},
        {"Application/GRPC", true},
        {"application/grpc-web", false},
        {"application/grpc-web+proto", false},
        {"application/grpc+json", false},
        {"application/grpc+", false},
        {"application/grpcx", false},
        {"application/grp", false},
        {"text/plain", false},
        {"text/plain; application/grpc", false},
        {"", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(grpc_content_type_ok(str_from(cases[i].value)), cases[i].served);
    assert_false(grpc_content_type_ok((struct str){NULL, 0}));
}

static void binary_metadata_is_read_padded_or_not(void **state) {
    (void)state;
    struct buf out;
    struct err e;
    buf_init(&out, 16);
    assert_true(grpc_bin_decode(&out, STR("q6ur"), &e));
    assert_true(grpc_bin_decode(&out, STR("qw=="), &e));
    assert_true(grpc_bin_decode(&out, STR("qw"), &e));
    assert_true(str_equal(buf_str(&out), STR("\xAB\xAB\xAB\xAB\xAB")));
    assert_false(grpc_bin_decode(&out, STR("q-ur"), &e));
    assert_int_equal(e.code, ERR_INTERNAL);
    assert_int_equal(out.len, 5);
    assert_false(grpc_bin_decode(&out, STR("AAAAAAAAAAAAAAAAAAAA"), &e));
    assert_int_equal(e.code, ERR_TOO_LARGE);
    buf_clear(&out);
    assert_true(grpc_bin_encode(&out, STR("\xAB")));
    assert_str(buf_str(&out), "qw");
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timeout_is_digits_and_a_unit),
        cmocka_unit_test(any_other_timeout_is_refused),
        cmocka_unit_test(a_written_timeout_is_never_shorter_than_asked),
        cmocka_unit_test(a_status_message_is_percent_encoded),
        cmocka_unit_test(a_status_message_comes_back_byte_for_byte),
        cmocka_unit_test(a_long_status_message_is_cut_between_characters),
        cmocka_unit_test(text_that_is_not_an_escape_stays_as_it_is),
        cmocka_unit_test(every_byte_survives_encoding_when_it_is_text),
        cmocka_unit_test(only_grpc_with_protobuf_is_served),
        cmocka_unit_test(binary_metadata_is_read_padded_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
