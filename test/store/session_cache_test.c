/* Sessions that were seen last are remembered, and none is remembered that was forgotten. */
#include "store/session_cache.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these four first. */
#include <cmocka.h>

static void assert_found(const struct session_cache *cache, struct str key, uint64_t hash,
                         int64_t id, uint64_t newest) {
    int64_t found = 0;
    uint64_t run = 0;
    assert_true(session_cache_find(cache, key, hash, &found, &run));
    assert_int_equal(found, id);
    assert_int_equal(run, newest);
}

static void assert_not_found(const struct session_cache *cache, struct str key, uint64_t hash) {
    int64_t found = 7;
    uint64_t run = 8;
    assert_false(session_cache_find(cache, key, hash, &found, &run));
    assert_int_equal(found, 7);
    assert_int_equal(run, 8);
}

static void what_was_put_last_is_found(void **state) {
    (void)state;
    struct session_cache *cache = session_cache_new();
    assert_not_found(cache, STR("a"), 1);
    session_cache_put(cache, STR("a"), 1, 10, 100);
    session_cache_put(cache, STR("b"), 2, 20, 200);
    session_cache_put(cache, STR("a"), 1, 10, 101);
    assert_found(cache, STR("a"), 1, 10, 101);
    assert_found(cache, STR("b"), 2, 20, 200);
    session_cache_free(cache);
}

static void a_key_is_not_taken_for_another_of_its_hash_or_slot(void **state) {
    (void)state;
    struct session_cache *cache = session_cache_new();
    uint64_t other = 1 + SESSION_CACHE_SLOTS;
    session_cache_put(cache, STR("a"), 1, 10, 100);
    assert_not_found(cache, STR("b"), 1);
    assert_not_found(cache, STR("a"), other);
    session_cache_forget(cache, STR("b"), 1);
    session_cache_forget(cache, STR("a"), other);
    assert_found(cache, STR("a"), 1, 10, 100);
    session_cache_put(cache, STR("b"), 1, 20, 200); /* takes its place */
    assert_not_found(cache, STR("a"), 1);
    session_cache_put(cache, STR("c"), other, 30, 300);
    assert_not_found(cache, STR("b"), 1);
    assert_found(cache, STR("c"), other, 30, 300);
    session_cache_free(cache);
}

static void what_was_forgotten_is_gone(void **state) {
    (void)state;
    struct session_cache *cache = session_cache_new();
    for (uint64_t i = 0; i < 3; i++) session_cache_put(cache, STR("a"), i, 1, 1);
    session_cache_forget(cache, STR("a"), 1);
    assert_found(cache, STR("a"), 0, 1, 1);
    assert_not_found(cache, STR("a"), 1);
    session_cache_clear(cache);
    assert_not_found(cache, STR("a"), 0);
    assert_not_found(cache, STR("a"), 2);
    session_cache_free(cache);
    session_cache_free(NULL);
}

static void a_long_key_is_not_kept(void **state) {
    (void)state;
    static const char long_key[SESSION_CACHE_KEY_BYTES + 1] = "a name of many bytes";
    struct session_cache *cache = session_cache_new();
    session_cache_put(cache, str_of(long_key, sizeof(long_key) - 1), 1, 1, 1);
    assert_found(cache, str_of(long_key, sizeof(long_key) - 1), 1, 1, 1);
    session_cache_put(cache, str_of(long_key, sizeof(long_key)), 2, 1, 1);
    assert_not_found(cache, str_of(long_key, sizeof(long_key)), 2);
    session_cache_free(cache);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_put_last_is_found),
        cmocka_unit_test(a_key_is_not_taken_for_another_of_its_hash_or_slot),
        cmocka_unit_test(what_was_forgotten_is_gone),
        cmocka_unit_test(a_long_key_is_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
