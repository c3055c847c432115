#include "store/changes.h"

#include "helper/assert_str.h"

struct heard {
    size_t times;
    struct changes *again; /* tell this while it is called */
};

static void hear(void *ctx) {
    struct heard *heard = ctx;
    heard->times++;
    if (heard->again) changes_tell(heard->again, CHANGE_WRITTEN);
    heard->again = NULL;
}

static void turns(struct loop *loop) {
    for (int i = 0; i < 3; i++) loop_turn(loop);
}

static void a_watcher_hears_once_of_any_number_of_changes(void **state) {
    (void)state;
    struct loop *loop = loop_new_fake();
    struct changes *changes = changes_new();
    struct heard heard = {0};
    struct changes_watcher *watcher = changes_watch(changes, CHANGE_ANY, loop, hear, &heard);
    turns(loop);
    assert_int_equal(heard.times, 0);
    for (int i = 0; i < 5; i++) changes_tell(changes, i % 2 ? CHANGE_WRITTEN : CHANGE_FREED);
    assert_int_equal(heard.times, 0); /* never before the loop turns */
    turns(loop);
    assert_int_equal(heard.times, 1);
    changes_tell(changes, CHANGE_FREED);
    turns(loop);
    assert_int_equal(heard.times, 2);
    changes_leave(watcher);
    changes_free(changes);
    loop_free(loop);
}

static void a_watcher_hears_of_what_it_wants(void **state) {
    (void)state;
    static const unsigned all[] = {CHANGE_WRITTEN, CHANGE_FREED, CHANGE_ANY};
    struct loop *loop = loop_new_fake();
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        for (unsigned told = 0; told <= CHANGE_ANY; told++) {
            struct changes *changes = changes_new();
            struct heard heard = {0};
            struct changes_watcher *watcher =
                changes_watch(changes, all[i], loop, hear, &heard);
            changes_tell(changes, told);
            turns(loop);
            assert_int_equal(heard.times, (all[i] & told) != 0);
            changes_leave(watcher);
            changes_free(changes);
        }
    }
    loop_free(loop);
}

/* Every kind with every choice of two names, on both sides: nobody misses what concerns it. */
static void names_wake_those_who_wait_for_them(void **state) {
    (void)state;
    const uint64_t a = UINT64_C(1) << 8, b = UINT64_C(1) << 55, names[] = {0, a, b, a | b};
    for (size_t i = 0; i < 4 * 4 * 4 * 4; i++) {
        uint64_t wanted = names[i & 3], named = names[i >> 2 & 3];
        uint64_t kinds = i >> 4 & 3, told = i >> 6 & 3; /* WRITTEN, FREED */
        bool meet = !wanted || !named || (wanted & named);
        uint64_t both = kinds & told; /* names are of what was freed */
        assert_int_equal(change_concerns(wanted | kinds, named | told),
                         both && (both != CHANGE_FREED || meet));
    }
    assert_int_equal(CHANGE_NAMES, (a << 48) - a);
    for (char name[] = "w0"; name[1] <= '9'; name[1]++)
        assert_int_equal(change_name(str_from(name)) & ~CHANGE_NAMES, 0);
}

/* Whoever hears of one of the two hears of both together. */
static void what_is_joined_wakes_all_whom_a_part_concerns(void **state) {
    (void)state;
    const uint64_t a = UINT64_C(1) << 8, b = UINT64_C(1) << 55;
    const uint64_t all[] = {0,
                            CHANGE_WRITTEN,
                            CHANGE_POSTED,
                            CHANGE_FREED,
                            CHANGE_FREED | a,
                            CHANGE_FREED | b,
                            CHANGE_FREED | a | b,
                            CHANGE_WRITTEN | CHANGE_FREED,
                            CHANGE_WRITTEN | CHANGE_FREED | a,
                            CHANGE_ANY,
                            CHANGE_ANY | CHANGE_NAMES};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        for (size_t k = 0; k < ARRAY_LEN(all); k++) {
            uint64_t both = change_join(all[i], all[k]);
            for (size_t w = 0; w < ARRAY_LEN(all); w++) {
                bool one = change_concerns(all[w], all[i]) || change_concerns(all[w], all[k]);
                assert_true(change_concerns(all[w], both) || !one);
            }
        }
    }
    assert_false(
        change_concerns(CHANGE_FREED | b, change_join(CHANGE_FREED | a, CHANGE_WRITTEN)));
}

static void what_is_told_during_a_call_is_heard_after_it(void **state) {
    (void)state;
    struct loop *loop = loop_new_fake();
    struct changes *changes = changes_new();
    struct heard heard = {.again = changes};
    struct changes_watcher *watcher =
        changes_watch(changes, CHANGE_WRITTEN, loop, hear, &heard);
    changes_tell(changes, CHANGE_WRITTEN);
    turns(loop);
    assert_int_equal(heard.times, 2);
    changes_leave(watcher);
    changes_free(changes);
    loop_free(loop);
}

static void one_that_has_left_hears_nothing_more(void **state) {
    (void)state;
    struct loop *loop = loop_new_fake();
    struct changes *changes = changes_new();
    struct heard heard = {0}, other = {0};
    struct changes_watcher *leaves = changes_watch(changes, CHANGE_ANY, loop, hear, &heard);
    struct changes_watcher *stays = changes_watch(changes, CHANGE_ANY, loop, hear, &other);
    changes_tell(changes, CHANGE_WRITTEN);
    changes_leave(leaves); /* its mail is on the way */
    turns(loop);
    assert_int_equal(heard.times, 0);
    assert_int_equal(other.times, 1);
    changes_leave(stays);
    changes_leave(NULL);
    changes_free(changes);
    loop_free(loop);
}

static void watchers_may_outlive_the_store(void **state) {
    (void)state;
    struct loop *loop = loop_new_fake();
    struct changes *changes = changes_new();
    struct heard heard = {0};
    struct changes_watcher *watcher = changes_watch(changes, CHANGE_ANY, loop, hear, &heard);
    changes_free(changes);
    turns(loop);
    changes_leave(watcher);
    changes_free(NULL);
    loop_free(loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_watcher_hears_once_of_any_number_of_changes),
        cmocka_unit_test(a_watcher_hears_of_what_it_wants),
        cmocka_unit_test(names_wake_those_who_wait_for_them),
        cmocka_unit_test(what_is_joined_wakes_all_whom_a_part_concerns),
        cmocka_unit_test(what_is_told_during_a_call_is_heard_after_it),
        cmocka_unit_test(one_that_has_left_hears_nothing_more),
        cmocka_unit_test(watchers_may_outlive_the_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
