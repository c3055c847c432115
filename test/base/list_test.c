#include "base/list.h"

#include "base/attr.h"
#include "base/buf.h"

#include "helper/assert_str.h"

struct item {
    char name;
    struct list link;
};

static struct item *item_of(struct list *link) {
    return CONTAINER_OF(link, struct item, link);
}

static void assert_items(struct list *list, const char *names) {
    struct buf seen;
    buf_init(&seen, 64);
    LIST_EACH(list, link) buf_append_byte(&seen, item_of(link)->name);
    assert_str(buf_str(&seen), names);
    /* Backwards it must be the same list. */
    size_t left = seen.len;
    for (struct list *link = list->prev; link != list; link = link->prev)
        assert_int_equal(item_of(link)->name, names[--left]);
    assert_int_equal(left, 0);
    buf_done(&seen);
}

static void make(struct item *items, size_t count) {
    for (size_t i = 0; i < count; i++) {
        items[i].name = (char)('a' + (int)i);
        list_init(&items[i].link);
    }
}

static void items_join_at_either_end_and_in_between(void **state) {
    (void)state;
    struct list list;
    struct item items[4];
    make(items, 4);
    list_init(&list);
    assert_true(list_empty(&list));
    list_append(&list, &items[0].link);
    list_append(&list, &items[1].link);
    list_prepend(&list, &items[2].link);
    list_add_after(&items[0].link, &items[3].link);
    assert_items(&list, "cadb");
    assert_true(list_linked(&items[0].link));
}

static void leaving_may_be_repeated(void **state) {
    (void)state;
    struct list list;
    struct item items[3];
    make(items, 3);
    list_init(&list);
    for (int i = 0; i < 3; i++) list_append(&list, &items[i].link);
    list_remove(&items[1].link);
    list_remove(&items[1].link);
    assert_false(list_linked(&items[1].link));
    assert_items(&list, "ac");
    list_append(&list, &items[1].link);
    assert_items(&list, "acb");
}

static void popping_takes_the_first(void **state) {
    (void)state;
    struct list list;
    struct item items[2];
    make(items, 2);
    list_init(&list);
    assert_null(list_pop(&list));
    list_append(&list, &items[0].link);
    list_append(&list, &items[1].link);
    assert_ptr_equal(list_pop(&list), &items[0].link);
    assert_false(list_linked(&items[0].link));
    assert_ptr_equal(list_pop(&list), &items[1].link);
    assert_null(list_pop(&list));
}

static void moving_keeps_the_order_of_both(void **state) {
    (void)state;
    struct list from, to;
    struct item items[4];
    make(items, 4);
    list_init(&from);
    list_init(&to);
    list_move(&from, &to);
    assert_true(list_empty(&to));
    list_append(&from, &items[0].link);
    list_append(&from, &items[1].link);
    list_move(&from, &to);
    assert_true(list_empty(&from));
    assert_items(&to, "ab");
    list_append(&from, &items[2].link);
    list_append(&from, &items[3].link);
    list_move(&from, &to);
    assert_items(&to, "abcd");
    assert_items(&from, "");
}

static void the_item_at_hand_may_leave_during_a_walk(void **state) {
    (void)state;
    struct list list;
    struct item items[4];
    make(items, 4);
    list_init(&list);
    for (int i = 0; i < 4; i++) list_append(&list, &items[i].link);
    LIST_EACH(&list, link) {
        if (item_of(link)->name != 'b') list_remove(link);
    }
    assert_items(&list, "b");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_join_at_either_end_and_in_between),
        cmocka_unit_test(leaving_may_be_repeated),
        cmocka_unit_test(popping_takes_the_first),
        cmocka_unit_test(moving_keeps_the_order_of_both),
        cmocka_unit_test(the_item_at_hand_may_leave_during_a_walk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
