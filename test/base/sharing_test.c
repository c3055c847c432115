/* Owners take turns, none has more than half of the places, and each line has an end. */
#include "base/sharing.h"

#include "helper/assert_str.h"

#include <stdio.h>

enum { ITEMS = 64 };

struct scene {
    struct sharing *sharing;
    struct sharing_item items[ITEMS];
    char owners[ITEMS];
    size_t count;
    char order[ITEMS + 1]; /* the owners of those that got a place */
};

static void scene_init(struct scene *scene, size_t places, size_t most) {
    *scene = (struct scene){.sharing = sharing_new(places, most)};
}

static bool enter(struct scene *scene, char owner) {
    scene->owners[scene->count] = owner;
    return sharing_enter(scene->sharing, str_of(&owner, 1), &scene->items[scene->count++]);
}

static void enter_all(struct scene *scene, const char *owners) {
    for (; *owners; owners++) assert_true(enter(scene, *owners));
}

/* Until none may have a place. */
static const char *take(struct scene *scene) {
    struct sharing_item *item;
    size_t at = 0;
    while ((item = sharing_next(scene->sharing)))
        scene->order[at++] = scene->owners[item - scene->items];
    scene->order[at] = '\0';
    return scene->order;
}

/* All of the owner that have a place. */
static void leave(struct scene *scene, char owner) {
    for (size_t i = 0; i < scene->count; i++) {
        if (scene->owners[i] == owner && scene->items[i].placed)
            sharing_leave(scene->sharing, &scene->items[i]);
    }
}

static void scene_done(struct scene *scene) {
    for (size_t i = 0; i < scene->count; i++) sharing_leave(scene->sharing, &scene->items[i]);
    assert_null(sharing_any_waiting(scene->sharing));
    sharing_free(scene->sharing); /* asserts that no owner is left */
}

static void an_owner_has_half_of_the_places(void **state) {
    (void)state;
    struct scene scene;
    scene_init(&scene, 4, 32);
    enter_all(&scene, "aaaaaaaa");
    assert_string_equal(take(&scene), "aa");
    enter_all(&scene, "bc");
    assert_string_equal(take(&scene), "bc");
    enter_all(&scene, "d");
    assert_string_equal(take(&scene), "");
    leave(&scene, 'b');
    assert_string_equal(take(&scene), "d");
    scene_done(&scene);
}

static void owners_take_turns_however_long_their_lines_are(void **state) {
    (void)state;
    struct scene scene;
    scene_init(&scene, 2, 32);
    enter_all(&scene, "aaaaaabbbc");
    char order[ITEMS] = "";
    for (size_t i = 0; i < 6; i++) {
        strcat(order, take(&scene));
        leave(&scene, 'a');
        leave(&scene, 'b');
        leave(&scene, 'c');
    }
    assert_string_equal(order, "abcabaabaa");
    scene_done(&scene);
}

static void a_line_has_an_end_and_others_have_theirs(void **state) {
    (void)state;
    struct scene scene;
    scene_init(&scene, 4, 3);
    enter_all(&scene, "aaa");
    assert_false(enter(&scene, 'a'));
    assert_string_equal(take(&scene), "aa");
    assert_false(enter(&scene, 'a')); /* those with a place count */
    enter_all(&scene, "b");
    leave(&scene, 'a');
    enter_all(&scene, "a");
    scene_done(&scene);
}

static void one_place_is_for_all(void **state) {
    (void)state;
    struct scene scene;
    scene_init(&scene, 1, 8);
    enter_all(&scene, "aab");
    assert_string_equal(take(&scene), "a");
    leave(&scene, 'a');
    assert_string_equal(take(&scene), "b");
    leave(&scene, 'b');
    assert_string_equal(take(&scene), "a");
    scene_done(&scene);
}

static void what_waits_may_leave(void **state) {
    (void)state;
    struct scene scene;
    scene_init(&scene, 2, 8);
    enter_all(&scene, "aaab");
    assert_string_equal(take(&scene), "ab");
    sharing_leave(scene.sharing, &scene.items[1]);
    sharing_leave(scene.sharing, &scene.items[1]); /* twice is harmless */
    leave(&scene, 'a');
    struct sharing_item *next = sharing_next(scene.sharing);
    assert_ptr_equal(next, &scene.items[2]);
    scene_done(&scene);
}

/* What waits while a place is free is of an owner that has its share. */
static void assert_none_waits_in_vain(const struct scene *scene, const size_t *of) {
    for (size_t i = 0; i < scene->count; i++) {
        const struct sharing_item *item = &scene->items[i];
        if (item->owner && !item->placed)
            assert_int_equal(of[scene->owners[i] - 'a'], sharing_share(scene->sharing));
    }
}

/* Whatever comes and goes: never more places than there are, nor more than an owner's share, and
 * no owner that may go waits while a place is free. */
static void places_are_never_exceeded_nor_wasted(void **state) {
    (void)state;
    for (unsigned seed = 1; seed <= 200; seed++) {
        struct scene scene;
        size_t placed = 0, of[4] = {0}, places = 1 + seed % 5;
        unsigned random = seed;
        scene_init(&scene, places, 6);
        while (scene.count < ITEMS) {
            random = random * 1664525 + 1013904223;
            (void)enter(&scene, (char)('a' + (random >> 20) % 4));
            struct sharing_item *item = sharing_next(scene.sharing);
            if (item) {
                placed++;
                of[scene.owners[item - scene.items] - 'a']++;
            }
            if (!item && placed < places) assert_none_waits_in_vain(&scene, of);
            for (size_t i = 0; i < 4; i++) assert_true(of[i] <= sharing_share(scene.sharing));
            assert_true(placed <= places);
            assert_false(item && placed == places && sharing_may_next(scene.sharing));
            size_t any = (random >> 8) % scene.count;
            if (!scene.items[any].placed || !scene.items[any].owner) continue;
            placed--;
            of[scene.owners[any] - 'a']--;
            sharing_leave(scene.sharing, &scene.items[any]);
        }
        scene_done(&scene);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_has_half_of_the_places),
        cmocka_unit_test(owners_take_turns_however_long_their_lines_are),
        cmocka_unit_test(a_line_has_an_end_and_others_have_theirs),
        cmocka_unit_test(one_place_is_for_all),
        cmocka_unit_test(what_waits_may_leave),
        cmocka_unit_test(places_are_never_exceeded_nor_wasted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
