#include "contract/nimi/realtime/dialogue.h"

#include "base/mem.h"
#include "helper/assert_str.h"

#include <stdlib.h>

static void turns_are_joined_in_order(void **state) {
    (void)state;
    struct dialogue dialogue;
    dialogue_init(&dialogue);
    assert_str(dialogue_str(&dialogue), "");
    dialogue_add(&dialogue, STR("one "));
    dialogue_add(&dialogue, STR("two "));
    assert_str(dialogue_str(&dialogue), "one two ");
    dialogue_done(&dialogue);
}

static void add_many(struct dialogue *dialogue, char letter, size_t len) {
    char *bytes = mem_alloc(len);
    memset(bytes, letter, len);
    dialogue_add(dialogue, str_of(bytes, len));
    free(bytes);
}

static void the_oldest_turns_make_room_whole(void **state) {
    (void)state;
    struct dialogue dialogue;
    dialogue_init(&dialogue);
    dialogue_add(&dialogue, STR("a"));
    dialogue_add(&dialogue, STR("bb"));
    dialogue_add(&dialogue, STR("ccc"));
    add_many(&dialogue, 'd', DIALOGUE_MAX_BYTES - 4);
    struct str all = dialogue_str(&dialogue);
    assert_int_equal(all.len, DIALOGUE_MAX_BYTES - 4 + 3);
    assert_str(str_head(all, 4), "cccd");
    add_many(&dialogue, 'e', DIALOGUE_MAX_BYTES);
    assert_int_equal(dialogue_str(&dialogue).len, DIALOGUE_MAX_BYTES);
    assert_int_equal(dialogue.count, 1);
    add_many(&dialogue, 'f', DIALOGUE_MAX_BYTES + 1);
    assert_str(dialogue_str(&dialogue), "");
    dialogue_add(&dialogue, STR("again"));
    assert_str(dialogue_str(&dialogue), "again");
    dialogue_done(&dialogue);
}

static void the_number_of_turns_is_bounded(void **state) {
    (void)state;
    struct dialogue dialogue;
    dialogue_init(&dialogue);
    for (size_t i = 0; i < DIALOGUE_TURNS_MAX + 3; i++)
        dialogue_add(&dialogue, i < 3 ? STR("old") : STR("x"));
    assert_int_equal(dialogue.count, DIALOGUE_TURNS_MAX);
    assert_int_equal(dialogue_str(&dialogue).len, DIALOGUE_TURNS_MAX);
    dialogue_done(&dialogue);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_are_joined_in_order),
        cmocka_unit_test(the_oldest_turns_make_room_whole),
        cmocka_unit_test(the_number_of_turns_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
