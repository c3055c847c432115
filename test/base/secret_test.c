#include "base/secret.h"

#include "base/attr.h"
#include "base/buf.h"

#include "helper/assert_str.h"

static const struct str known[] = {STR_INIT("correct-horse-battery"), STR_INIT("none")};

/* The text with each secret in brackets. */
static void marks(const char *text, const char *expected) {
    struct buf out;
    struct secret_span span;
    size_t at = 0;
    struct str exact = exact_copy(str_from(text));
    buf_init(&out, KIB);
    while (secret_next(exact, at, known, ARRAY_LEN(known), &span)) {
        assert_true(at <= span.from && span.from < span.to && span.to <= exact.len);
        buf_append(&out, str_head(str_skip(exact, at), span.from - at));
        buf_printf(&out, "[" STR_FMT "]",
                   STR_ARG(str_head(str_skip(exact, span.from), span.to - span.from)));
        at = span.to;
    }
    buf_append(&out, str_skip(exact, at));
    assert_str(buf_str(&out), expected);
    buf_done(&out);
    free((void *)(uintptr_t)exact.at);
}

static void a_key_is_known_by_how_it_begins(void **state) {
    (void)state;
    marks("use sk-abcdef and go", "use [sk-abcdef] and go");
    marks("AIzaSyA-1234.", "[AIzaSyA-1234].");
    marks("task-force, sk-, risk-averse", "task-force, sk-, risk-averse");
}

static void a_value_after_the_name_of_a_secret_is_one(void **state) {
    (void)state;
    marks("Bearer x, then", "Bearer [x], then");
    marks("?key=a&b=c", "?key=[a]&b=c");
    marks("https://me:you@host/a@b", "https://[me:you]@host/a@b");
    marks("https://host/a@b", "https://host/a@b");
}

static void letters_and_digits_in_one_go_are_no_word(void **state) {
    (void)state;
    marks("a 0123456789abcdef0123456789abcdef b", "a [0123456789abcdef0123456789abcdef] b");
    marks("0123456789abcdef0123456789abcde", "0123456789abcdef0123456789abcde");
}

static void a_long_run_is_hidden_to_its_end(void **state) {
    (void)state;
    char text[600], expected[602];
    memset(text, 'x', sizeof(text) - 1);
    memcpy(text, "sk-", 3);
    text[sizeof(text) - 1] = '\0';
    expected[0] = '[';
    memcpy(expected + 1, text, sizeof(text) - 1);
    memcpy(expected + sizeof(text), "]", 2);
    marks(text, expected);
}

static void each_longer_piece_of_what_is_known_is_found_also_inside_words(void **state) {
    (void)state;
    marks("xcorrect-horse-batteryx", "x[correct-horse-battery]x");
    marks("rect-horse-b!", "[rect-horse-b]!");
    marks("rect-horse-! none", "rect-horse-! none");
}

static void names_of_secrets_are_known_in_every_spelling(void **state) {
    (void)state;
    static const char *const secret[] = {"authorization", "API_KEY", "x-api-key", "PassWord",
                                         "access_token"};
    static const char *const plain[] = {"", "tokens", "query", "keys",
                                        "authorization_is_long_here"};
    for (size_t i = 0; i < ARRAY_LEN(secret); i++)
        assert_true(secret_name(str_from(secret[i])));
    for (size_t i = 0; i < ARRAY_LEN(plain); i++) assert_false(secret_name(str_from(plain[i])));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_known_by_how_it_begins),
        cmocka_unit_test(a_value_after_the_name_of_a_secret_is_one),
        cmocka_unit_test(letters_and_digits_in_one_go_are_no_word),
        cmocka_unit_test(a_long_run_is_hidden_to_its_end),
        cmocka_unit_test(each_longer_piece_of_what_is_known_is_found_also_inside_words),
        cmocka_unit_test(names_of_secrets_are_known_in_every_spelling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
