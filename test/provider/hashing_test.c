#include "provider/hashing.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static double likeness(const char *a, const char *b) {
    double x[HASHING_DIMENSIONS], y[HASHING_DIMENSIONS], sum = 0;
    assert_true(hashing_embed(str_from(a), x));
    assert_true(hashing_embed(str_from(b), y));
    for (size_t i = 0; i < HASHING_DIMENSIONS; i++) sum += x[i] * y[i];
    return sum;
}

/* Also on a machine that adds in another order: written down once, compared for ever. */
static void a_text_has_the_same_vector_everywhere(void **state) {
    (void)state;
    static const struct {
        size_t at;
        double value;
    } expected[] = {{27, 0x1.08654a2d4f6dap-1},   {31, 0x1.08654a2d4f6dap-2},
                    {103, -0x1.08654a2d4f6dap-2}, {111, 0x1.08654a2d4f6dap-2},
                    {123, -0x1.08654a2d4f6dap-1}, {150, -0x1.08654a2d4f6dap-2},
                    {163, 0x1.08654a2d4f6dap-2},  {215, 0x1.08654a2d4f6dap-2},
                    {252, -0x1.08654a2d4f6dap-2}};
    double vector[HASHING_DIMENSIONS];
    size_t seen = 0;
    assert_true(hashing_embed(STR("A weir"), vector));
    for (size_t i = 0; i < HASHING_DIMENSIONS; i++) {
        if (vector[i] == 0) continue;
        assert_true(seen < sizeof(expected) / sizeof(*expected));
        assert_int_equal(i, expected[seen].at);
        assert_true(vector[i] == expected[seen].value);
        seen++;
    }
    assert_int_equal(seen, sizeof(expected) / sizeof(*expected));
}

static void a_vector_is_as_long_as_one(void **state) {
    (void)state;
    static const char *const texts[] = {"a", "A weir stands across a stream.", "你好，世界",
                                        "!!", "\xff\xfe broken"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        assert_true(fabs(likeness(texts[i], texts[i]) - 1) < 1e-12);
}

static void texts_that_share_words_are_alike(void **state) {
    (void)state;
    assert_true(likeness("The sluice is OPEN", "the sluice is open!") > 0.999);
    double near = likeness("the sluice gate is open", "who opened the sluice gates?");
    double far = likeness("the sluice gate is open", "bread needs flour and water");
    assert_true(near > 0.4);
    assert_true(far < 0.3);
    assert_true(near > far + 0.2);
    /* Parts of words: another ending, a typing mistake. */
    assert_true(likeness("embedding", "embeddings") > 0.4);
    assert_true(likeness("embedding", "embedding") > likeness("embedding", "embeding"));
    assert_true(likeness("embedding", "embeding") > likeness("embedding", "bread"));
}

static void the_order_of_words_does_not_count(void **state) {
    (void)state;
    assert_true(likeness("dog bites man", "man bites dog") > 0.999);
    assert_true(likeness("dog", "dog dog dog") > 0.999);
}

static void nothing_has_no_vector(void **state) {
    (void)state;
    double vector[HASHING_DIMENSIONS];
    assert_false(hashing_embed(STR(""), vector));
    assert_false(hashing_embed(STR(" \t\r\n"), vector));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_has_the_same_vector_everywhere),
        cmocka_unit_test(a_vector_is_as_long_as_one),
        cmocka_unit_test(texts_that_share_words_are_alike),
        cmocka_unit_test(the_order_of_words_does_not_count),
        cmocka_unit_test(nothing_has_no_vector),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
