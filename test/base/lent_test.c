#include "base/lent.h"

#include "helper/assert_str.h"

#if defined(__has_include)
#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#endif
#endif

static void what_is_lent_can_be_read_meanwhile(void **state) {
    (void)state;
    char frame[] = "my words";
    struct text block;
    struct lent lent = lent_begin(str_from(frame), &block);
    assert_str(lent_read(lent), "my words");
    lent_end(&block);
}

static void what_is_kept_outlives_what_was_lent(void **state) {
    (void)state;
    char frame[] = "my words";
    struct arena *arena = arena_new(KIB);
    struct str kept;
    struct text block;
    struct lent lent = lent_begin(str_from(frame), &block);
    assert_true(lent_keep(lent, arena, &kept));
    lent_end(&block);
    memcpy(frame, "another!", 8);
    assert_str(kept, "my words");
    assert_int_equal(kept.at[kept.len], '\0');
    arena_free(arena);
}

static void nothing_is_kept_past_the_limit_of_the_arena(void **state) {
    (void)state;
    struct arena *arena = arena_new(8);
    struct str kept = STR("before");
    struct text block;
    struct lent lent = lent_begin(STR("my words"), &block);
    assert_false(lent_keep(lent, arena, &kept));
    lent_end(&block);
    assert_str(kept, "before");
    arena_free(arena);
}

static void nothing_at_all_can_be_lent(void **state) {
    (void)state;
    struct text block;
    struct lent lent = lent_begin((struct str){NULL, 0}, &block);
    assert_int_equal(lent_read(lent).len, 0);
    lent_end(&block);
}

/* What makes the sanitizer's report sure: no view of it is valid afterwards. */
static void with_the_address_sanitizer_the_bytes_are_freed_at_the_end(void **state) {
    (void)state;
    char frame[] = "my words";
    struct text block;
    struct lent lent = lent_begin(str_from(frame), &block);
    struct str view = lent_read(lent);
    bool in_block = view.at != frame;
    lent_end(&block);
#ifdef __SANITIZE_ADDRESS__
    assert_true(in_block);
    assert_true(__asan_address_is_poisoned(view.at));
#else
    (void)in_block;
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_lent_can_be_read_meanwhile),
        cmocka_unit_test(what_is_kept_outlives_what_was_lent),
        cmocka_unit_test(nothing_is_kept_past_the_limit_of_the_arena),
        cmocka_unit_test(nothing_at_all_can_be_lent),
        cmocka_unit_test(with_the_address_sanitizer_the_bytes_are_freed_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
