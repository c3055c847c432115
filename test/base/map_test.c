#include "base/map.h"

#include "helper/assert_str.h"

#include <stdio.h>

static struct str key_of(char room[static 16], size_t number) {
    return str_of(room, (size_t)snprintf(room, 16, "key-%zu", number));
}

static void what_was_put_is_found_until_it_is_removed(void **state) {
    (void)state;
    struct map *map = map_new();
    int one, two;
    assert_null(map_find(map, STR("a")));
    assert_null(map_remove(map, STR("a")));
    assert_null(map_put(map, STR("a"), &one));
    assert_ptr_equal(map_find(map, STR("a")), &one);
    assert_ptr_equal(map_put(map, STR("a"), &two), &one);
    assert_int_equal(map_count(map), 1);
    assert_ptr_equal(map_remove(map, STR("a")), &two);
    assert_null(map_find(map, STR("a")));
    assert_null(map_remove(map, STR("a")));
    assert_int_equal(map_count(map), 0);
    map_free(map);
}

static void keys_are_bytes_and_copied(void **state) {
    (void)state;
    struct map *map = map_new();
    int one, two, three;
    char key[] = "changes";
    map_put(map, str_from(key), &one);
    map_put(map, STR("a\0b"), &two);
    map_put(map, (struct str){NULL, 0}, &three);
    key[0] = 'X';
    assert_ptr_equal(map_find(map, STR("changes")), &one);
    assert_null(map_find(map, str_from(key)));
    assert_ptr_equal(map_find(map, STR("a\0b")), &two);
    assert_null(map_find(map, STR("a\0c")));
    assert_null(map_find(map, STR("a")));
    assert_ptr_equal(map_find(map, STR_EMPTY), &three);
    map_free(map);
}

static void thousands_of_keys_are_kept_apart(void **state) {
    (void)state;
    enum { KEYS = 5000 };
    static int values[KEYS];
    struct map *map = map_new();
    char room[16];
    for (size_t i = 0; i < KEYS; i++) assert_null(map_put(map, key_of(room, i), &values[i]));
    for (size_t i = 0; i < KEYS; i += 2)
        assert_ptr_equal(map_remove(map, key_of(room, i)), &values[i]);
    assert_int_equal(map_count(map), KEYS / 2);
    for (size_t i = 0; i < KEYS; i++)
        assert_ptr_equal(map_find(map, key_of(room, i)), i % 2 ? &values[i] : NULL);
    map_free(map);
}

/* Removed slots must neither fill the table nor make a search endless. */
static void keys_may_come_and_go_for_ever(void **state) {
    (void)state;
    struct map *map = map_new();
    int value, other;
    char room[16];
    map_put(map, STR("stays"), &other);
    for (size_t i = 0; i < 20000; i++) {
        assert_null(map_put(map, key_of(room, i), &value));
        assert_ptr_equal(map_remove(map, key_of(room, i)), &value);
        assert_null(map_find(map, key_of(room, i)));
    }
    assert_ptr_equal(map_find(map, STR("stays")), &other);
    assert_int_equal(map_count(map), 1);
    map_free(map);
}

/* Keys that stand in each other's way, in any order, a thousand times more than stay. */
static void what_stays_is_found_whatever_else_goes(void **state) {
    (void)state;
    enum { KEYS = 3000 };
    static int values[KEYS];
    bool here[KEYS] = {false};
    struct map *map = map_new();
    char room[16];
    size_t count = 0;
    uint32_t random = 1;
    for (size_t round = 0; round < 40 * KEYS; round++) {
        random = random * 1664525 + 1013904223;
        size_t i = random >> 8 & 0xfff;
        bool growing = round < 20 * KEYS;
        if (i >= KEYS || here[i] == (growing && round % 3)) continue;
        void *before = here[i] ? map_remove(map, key_of(room, i))
                               : map_put(map, key_of(room, i), &values[i]);
        assert_ptr_equal(before, here[i] ? &values[i] : NULL);
        here[i] = !here[i];
        count += here[i] ? 1 : (size_t)-1;
    }
    assert_int_equal(map_count(map), count);
    for (size_t i = 0; i < KEYS; i++)
        assert_ptr_equal(map_find(map, key_of(room, i)), here[i] ? &values[i] : NULL);
    map_free(map);
}

static void a_walk_meets_each_key_once(void **state) {
    (void)state;
    static int values[100];
    struct map *map = map_new();
    char room[16];
    size_t cursor = 0, met = 0;
    struct str key;
    void *value;
    assert_false(map_next(map, &cursor, &key, &value));
    for (size_t i = 0; i < 100; i++) map_put(map, key_of(room, i), &values[i]);
    for (size_t i = 50; i < 100; i++) map_remove(map, key_of(room, i));
    for (cursor = 0; map_next(map, &cursor, &key, &value); met++) {
        int *place = value;
        assert_true(place >= values && place < values + 50);
        assert_true(str_equal(key, key_of(room, (size_t)(place - values))));
        assert_int_equal((*place)++, 0);
    }
    assert_int_equal(met, 50);
    map_free(map);
}

static void the_hash_depends_on_every_byte_and_the_length(void **state) {
    (void)state;
    char bytes[40] = {0};
    for (size_t len = 0; len < sizeof(bytes); len++) {
        uint64_t hash = map_hash(str_of(bytes, len));
        assert_true(hash == map_hash(str_of(bytes, len)));
        assert_true(hash != map_hash(str_of(bytes, len + 1)));
        for (size_t at = 0; at < len; at++) {
            bytes[at] = 1;
            assert_true(map_hash(str_of(bytes, len)) != hash);
            bytes[at] = 0;
        }
    }
}

static void nothing_may_be_freed(void **state) {
    (void)state;
    map_free(NULL);
    map_free(map_new());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_put_is_found_until_it_is_removed),
        cmocka_unit_test(keys_are_bytes_and_copied),
        cmocka_unit_test(thousands_of_keys_are_kept_apart),
        cmocka_unit_test(keys_may_come_and_go_for_ever),
        cmocka_unit_test(what_stays_is_found_whatever_else_goes),
        cmocka_unit_test(a_walk_meets_each_key_once),
        cmocka_unit_test(the_hash_depends_on_every_byte_and_the_length),
        cmocka_unit_test(nothing_may_be_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
