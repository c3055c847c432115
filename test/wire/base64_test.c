#include "wire/base64.h"

#include "helper/assert_str.h"

/* RFC 4648 section 10, and bytes that use the last two letters. */
static const struct {
    struct str bytes;
    const char *padded, *unpadded, *url;
} cases[] = {
    {STR_INIT(""), "", "", ""},
    {STR_INIT("f"), "Zg==", "Zg", "Zg"},
    {STR_INIT("fo"), "Zm8=", "Zm8", "Zm8"},
    {STR_INIT("foo"), "Zm9v", "Zm9v", "Zm9v"},
    {STR_INIT("foob"), "Zm9vYg==", "Zm9vYg", "Zm9vYg"},
    {STR_INIT("fooba"), "Zm9vYmE=", "Zm9vYmE", "Zm9vYmE"},
    {STR_INIT("foobar"), "Zm9vYmFy", "Zm9vYmFy", "Zm9vYmFy"},
    {STR_INIT("\xFB\xFF\xBF"), "+/+/", "+/+/", "-_-_"},
    {STR_INIT("\0\0"), "AAA=", "AAA", "AAA"},
};

static bool decode(const char *text, enum base64_alphabet alphabet,
                   enum base64_padding padding) {
    struct str copy = exact_copy(str_from(text));
    char *room = malloc(base64_decoded_len(copy.len) + 1);
    size_t len;
    bool fine = base64_decode(copy, alphabet, padding, room, &len);
    free(room);
    free((void *)copy.at);
    return fine;
}

static void known_vectors_are_encoded(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf out;
        buf_init(&out, 64);
        assert_true(base64_encode(&out, cases[i].bytes, BASE64_STANDARD, BASE64_PADDED));
        assert_str(buf_str(&out), cases[i].padded);
        buf_clear(&out);
        assert_true(base64_encode(&out, cases[i].bytes, BASE64_STANDARD, BASE64_UNPADDED));
        assert_str(buf_str(&out), cases[i].unpadded);
        buf_clear(&out);
        assert_true(base64_encode(&out, cases[i].bytes, BASE64_URL, BASE64_UNPADDED));
        assert_str(buf_str(&out), cases[i].url);
        buf_done(&out);
    }
}

static void known_vectors_are_decoded(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char room[16];
        size_t len;
        const struct {
            const char *text;
            enum base64_alphabet alphabet;
            enum base64_padding padding;
        } ways[] = {
            {cases[i].padded, BASE64_STANDARD, BASE64_PADDED},
            {cases[i].padded, BASE64_STANDARD, BASE64_EITHER},
            {cases[i].unpadded, BASE64_STANDARD, BASE64_UNPADDED},
            {cases[i].unpadded, BASE64_STANDARD, BASE64_EITHER},
            {cases[i].url, BASE64_URL, BASE64_UNPADDED},
        };
        for (size_t way = 0; way < ARRAY_LEN(ways); way++) {
            assert_true(base64_decode(str_from(ways[way].text), ways[way].alphabet,
                                      ways[way].padding, room, &len));
            assert_true(str_equal(str_of(room, len), cases[i].bytes));
        }
    }
}

static void every_length_of_every_byte_comes_back(void **state) {
    (void)state;
    char bytes[259], room[259];
    for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = (char)(i * 37);
    struct buf out;
    buf_init(&out, 512);
    for (size_t len = 0; len <= sizeof(bytes); len++) {
        size_t got;
        buf_clear(&out);
        assert_true(base64_encode(&out, str_of(bytes, len), BASE64_URL, BASE64_UNPADDED));
        assert_int_equal(out.len, base64_encoded_len(len));
        assert_int_equal(base64_decoded_len(out.len), len);
        assert_true(base64_decode(buf_str(&out), BASE64_URL, BASE64_UNPADDED, room, &got));
        assert_true(str_equal(str_of(room, got), str_of(bytes, len)));
    }
    buf_done(&out);
}

static void only_the_letters_of_the_alphabet_are_taken(void **state) {
    (void)state;
    for (int c = 0; c < 256; c++) {
        char text[] = {'A', 'A', (char)c, 'A'}, room[3];
        bool common =
            (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        size_t len;
        assert_int_equal(
            base64_decode(str_of(text, 4), BASE64_STANDARD, BASE64_PADDED, room, &len),
            common || c == '+' || c == '/');
        assert_int_equal(
            base64_decode(str_of(text, 4), BASE64_URL, BASE64_UNPADDED, room, &len),
            common || c == '-' || c == '_');
    }
}

static void wrong_padding_is_refused(void **state) {
    (void)state;
    static const char *const texts[] = {"A",     "=",     "==",    "A=",       "A==", "A===",
                                        "AA=",   "AAA==", "AAAA=", "AAAA====", "=AA", "AA=A",
                                        "AA==A", "====",  "AAAAA", "AA==AA=="};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        assert_false(decode(texts[i], BASE64_STANDARD, BASE64_EITHER));
        assert_false(decode(texts[i], BASE64_STANDARD, BASE64_PADDED));
        assert_false(decode(texts[i], BASE64_STANDARD, BASE64_UNPADDED));
    }
    assert_false(decode("AA", BASE64_STANDARD, BASE64_PADDED));
    assert_false(decode("AA==", BASE64_STANDARD, BASE64_UNPADDED));
}

/* "Zg" and "Zh" would both be "f": only the first may be. */
static void no_bytes_have_two_texts(void **state) {
    (void)state;
    assert_true(decode("Zg", BASE64_URL, BASE64_UNPADDED));
    assert_false(decode("Zh", BASE64_URL, BASE64_UNPADDED));
    assert_false(decode("Zm9", BASE64_URL, BASE64_UNPADDED));
    assert_true(decode("Zm8", BASE64_URL, BASE64_UNPADDED));
    assert_false(decode("Zh==", BASE64_STANDARD, BASE64_EITHER));
}

static void encoding_stops_at_the_limit(void **state) {
    (void)state;
    for (size_t limit = 0; limit <= 8; limit++) {
        struct buf out;
        buf_init(&out, limit);
        assert_int_equal(base64_encode(&out, STR("foob"), BASE64_STANDARD, BASE64_PADDED),
                         limit == 8);
        buf_done(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_vectors_are_encoded),
        cmocka_unit_test(known_vectors_are_decoded),
        cmocka_unit_test(every_length_of_every_byte_comes_back),
        cmocka_unit_test(only_the_letters_of_the_alphabet_are_taken),
        cmocka_unit_test(wrong_padding_is_refused),
        cmocka_unit_test(no_bytes_have_two_texts),
        cmocka_unit_test(encoding_stops_at_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
