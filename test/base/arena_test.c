#include "base/arena.h"

#include "helper/assert_str.h"

#include <stdalign.h>

static void bytes_are_zeroed_aligned_and_apart(void **state) {
    (void)state;
    struct arena *arena = arena_new(64 * MIB);
    char *blocks[300];
    for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
        size_t size = i * 37 % 3000;
        blocks[i] = arena_alloc(arena, size);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % alignof(max_align_t), 0);
        for (size_t at = 0; at < size; at++) assert_int_equal(blocks[i][at], 0);
        memset(blocks[i], (int)i, size);
    }
    for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
        for (size_t at = 0; at < i * 37 % 3000; at++) assert_int_equal(blocks[i][at], (char)i);
    }
    arena_free(arena);
}

static void a_block_larger_than_any_other_has_its_own(void **state) {
    (void)state;
    struct arena *arena = arena_new(MIB);
    char *small = arena_alloc(arena, 10), *large = arena_alloc(arena, 500 * KIB);
    char *next = arena_alloc(arena, 10);
    assert_true(small && large && next);
    memset(large, 1, 500 * KIB);
    assert_int_equal(next[9], 0);
    arena_free(arena);
}

static void the_limit_is_exact_and_refusals_cost_nothing(void **state) {
    (void)state;
    for (size_t limit = 0; limit <= 100; limit++) {
        struct arena *arena = arena_new(limit);
        assert_null(arena_alloc(arena, limit + 1));
        assert_null(arena_alloc(arena, SIZE_MAX));
        assert_non_null(arena_alloc(arena, limit));
        assert_null(arena_alloc(arena, 1));
        assert_non_null(arena_alloc(arena, 0));
        assert_int_equal(arena_used(arena), limit);
        arena_free(arena);
    }
}

static void a_copied_string_ends_in_nul(void **state) {
    (void)state;
    struct arena *arena = arena_new(9);
    struct str copy = STR("untouched");
    assert_true(arena_str(arena, str_head(STR("abcdef"), 3), &copy));
    assert_str(copy, "abc");
    assert_int_equal(copy.at[3], '\0');
    assert_true(arena_str(arena, (struct str){NULL, 0}, &copy));
    assert_int_equal(copy.at[0], '\0');
    copy = STR("untouched");
    assert_false(arena_str(arena, STR("abcd"), &copy));
    assert_str(copy, "untouched");
    assert_int_equal(arena_used(arena), 5);
    arena_free(arena);
}

static void texts_are_kept_together_or_not_at_all(void **state) {
    (void)state;
    struct arena *arena = arena_new(10);
    struct str a = STR("abc"), b = {NULL, 0}, c = STR("def");
    struct str *const texts[] = {&a, &b, &c};
    assert_true(arena_keep_texts(arena, texts, ARRAY_LEN(texts)));
    assert_str(a, "abc");
    assert_str(c, "def");
    assert_int_equal(a.at[3], '\0');
    assert_int_equal(b.len, 0);
    assert_int_equal(b.at[0], '\0');
    assert_int_equal(c.at[3], '\0');
    assert_int_equal(arena_used(arena), 9);
    struct str untouched = STR("x"), *const more[] = {&untouched};
    const char *before = untouched.at;
    assert_false(arena_keep_texts(arena, more, 1));
    assert_ptr_equal(untouched.at, before);
    assert_true(arena_keep_texts(arena, more, 0));
    arena_free(arena);
}

static void nothing_may_be_freed(void **state) {
    (void)state;
    arena_free(NULL);
    arena_free(arena_new(0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_zeroed_aligned_and_apart),
        cmocka_unit_test(a_block_larger_than_any_other_has_its_own),
        cmocka_unit_test(the_limit_is_exact_and_refusals_cost_nothing),
        cmocka_unit_test(a_copied_string_ends_in_nul),
        cmocka_unit_test(texts_are_kept_together_or_not_at_all),
        cmocka_unit_test(nothing_may_be_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
