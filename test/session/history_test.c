/* Histories that share a shelf: each shows its own records, whatever was appended to the
 * others. */
#include "session/history.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these four first. */
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static struct turn_record *record_of(uint64_t run, size_t bytes) {
    char *text = mem_zero(bytes + 1, 1);
    memset(text, 'x', bytes);
    struct message message = {.role = MESSAGE_USER, .text = str_of(text, bytes)};
    struct turn_record *record = turn_record_new(run, &message, 1);
    free(text);
    return record;
}

static struct history *after(struct history *history, uint64_t run, size_t bytes) {
    struct history *longer = history_with(history, record_of(run, bytes));
    history_unref(history);
    return longer;
}

/* Of all records. */
static void assert_prompt_bytes(const struct history *history) {
    size_t bytes = 0;
    struct message *messages = mem_zero(history->message_count, sizeof(struct message));
    history_messages(history, messages);
    for (size_t i = 0; i < history->message_count; i++)
        bytes += messages[i].text.len + messages[i].tool.len;
    assert_int_equal(history->prompt_bytes, bytes);
    assert_ptr_equal(history_oldest(history)->text.at, messages[0].text.at);
    free(messages);
}

/* The runs from `first` to `last`, and nothing else; sums that fit them. */
static void assert_runs(const struct history *history, uint64_t first, uint64_t last) {
    size_t bytes = 0;
    assert_int_equal(history->record_count, last - first + 1);
    assert_int_equal(history->message_count, history->record_count);
    for (size_t i = 0; i < history->record_count; i++) {
        assert_int_equal(history->records[i]->run, first + i);
        bytes += history->records[i]->text_bytes;
    }
    assert_int_equal(history->text_bytes, bytes);
    assert_prompt_bytes(history);
}

/* Its first run after `run` turns: a quarter is dropped at once, whenever it would be too long. */
static uint64_t first_after(uint64_t run) {
    uint64_t block = HISTORY_TURNS_MAX - HISTORY_TURNS_LEFT + 1;
    if (run <= HISTORY_TURNS_MAX) return 1;
    return 1 + ((run - HISTORY_TURNS_MAX - 1) / block + 1) * block;
}

static void a_history_shows_its_newest_turns_however_long_it_grew(void **state) {
    (void)state;
    struct history *history = history_new();
    for (uint64_t run = 1; run <= 1000; run++) {
        history = after(history, run, run % 7);
        assert_runs(history, first_after(run), run);
    }
    history_unref(history);
}

static void the_newest_agent_is_found_behind_the_users_words(void **state) {
    (void)state;
    const struct message messages[] = {
        {.role = MESSAGE_AGENT, .agent = STR_INIT("eve"), .text = STR_INIT("a")},
        {.role = MESSAGE_TOOL_RESULT, .agent = STR_INIT("wally"), .tool = STR_INIT("find")},
        {.role = MESSAGE_USER, .text = STR_INIT("b")},
        {.role = MESSAGE_SYSTEM, .text = STR_INIT("c")},
    };
    struct history *history = history_new();
    assert_null(history_oldest(history));
    assert_null(history_newest_of_agent(history));
    history = after(history, 1, 3);
    assert_null(history_newest_of_agent(history));
    struct history *longer = history_with(history, turn_record_new(2, messages, 4));
    history_unref(history);
    longer = after(longer, 3, 3);
    struct history *longest = history_with(longer, turn_record_new(4, NULL, 0));
    assert_true(str_equal(history_newest_of_agent(longest)->agent, STR("wally")));
    assert_int_equal(longest->prompt_bytes, 3 + 1 + 4 + 1 + 1 + 3);
    history_unref(longer);
    history_unref(longest);
}

static void a_turn_that_is_over_leaves_its_instructions_behind(void **state) {
    (void)state;
    const struct message messages[] = {
        {.role = MESSAGE_SYSTEM, .text = STR_INIT("be brief"), .instructions = true},
        {.role = MESSAGE_SYSTEM, .text = STR_INIT("s")},
        {.role = MESSAGE_USER, .text = STR_INIT("hi")},
    };
    struct turn_record *going_on = turn_record_new(1, messages, 3);
    struct turn_record *over = turn_record_ended(1, messages, 3);
    assert_int_equal(going_on->message_count, 3);
    assert_true(going_on->messages[0].instructions);
    assert_int_equal(over->message_count, 2);
    assert_true(str_equal(over->messages[0].text, STR("s")));
    assert_int_equal(over->text_bytes, 3);
    assert_int_equal(over->prompt_bytes, 3);
    turn_record_unref(going_on);
    turn_record_unref(over);
}

static void a_snapshot_stays_as_it_was(void **state) {
    (void)state;
    struct history *history = history_new(), *kept[200];
    for (uint64_t run = 1; run <= 200; run++) {
        history = after(history, run, 1);
        kept[run - 1] = history_ref(history);
    }
    history_unref(history);
    for (uint64_t run = 1; run <= 200; run++) {
        assert_runs(kept[run - 1], first_after(run), run);
        history_unref(kept[run - 1]);
    }
}

static void two_that_grow_from_one_do_not_meet(void **state) {
    (void)state;
    struct history *root = history_new();
    for (uint64_t run = 1; run <= 10; run++) root = after(root, run, 1);
    struct history *one = history_ref(root), *other = history_ref(root);
    for (uint64_t run = 11; run <= 40; run++) {
        one = after(one, run, 1);
        other = after(other, run, 2);
        assert_runs(one, 1, run);
        assert_runs(other, 1, run);
    }
    assert_int_equal(one->records[39]->text_bytes, 1);
    assert_int_equal(other->records[39]->text_bytes, 2);
    assert_ptr_equal(one->records[9], other->records[9]);
    assert_runs(root, 1, 10);
    history_unref(one);
    history_unref(other);
    history_unref(root);
}

struct branch {
    pthread_t thread;
    struct history *root, *grown;
};

static void *grow(void *ctx) {
    struct branch *branch = ctx;
    branch->grown = history_ref(branch->root);
    for (uint64_t run = 4; run <= 30; run++) branch->grown = after(branch->grown, run, 1);
    return NULL;
}

static void threads_that_grow_from_one_do_not_meet(void **state) {
    (void)state;
    struct history *root = history_new();
    for (uint64_t run = 1; run <= 3; run++) root = after(root, run, 1);
    struct branch branches[4];
    for (size_t i = 0; i < ARRAY_LEN(branches); i++) {
        branches[i] = (struct branch){.root = root};
        assert_int_equal(pthread_create(&branches[i].thread, NULL, grow, &branches[i]), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(branches); i++) {
        pthread_join(branches[i].thread, NULL);
        assert_runs(branches[i].grown, 1, 30);
        for (size_t j = 0; j < i; j++) {
            assert_ptr_not_equal(branches[i].grown->records[3], branches[j].grown->records[3]);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(branches); i++) history_unref(branches[i].grown);
    history_unref(root);
}

static void a_large_turn_that_fell_out_is_let_go(void **state) {
    (void)state;
    struct turn_record *large = record_of(2, 2 * HISTORY_MAX_BYTES);
    struct history *history = after(history_new(), 1, 1);
    struct history *longer = history_with(history, turn_record_ref(large));
    history_unref(history);
    assert_runs(longer, 2, 2);
    longer = after(longer, 3, 1);
    assert_runs(longer, 3, 3);
    assert_int_equal(atomic_load(&large->refs), 1);
    turn_record_unref(large);
    history_unref(longer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_history_shows_its_newest_turns_however_long_it_grew),
        cmocka_unit_test(the_newest_agent_is_found_behind_the_users_words),
        cmocka_unit_test(a_turn_that_is_over_leaves_its_instructions_behind),
        cmocka_unit_test(a_snapshot_stays_as_it_was),
        cmocka_unit_test(two_that_grow_from_one_do_not_meet),
        cmocka_unit_test(threads_that_grow_from_one_do_not_meet),
        cmocka_unit_test(a_large_turn_that_fell_out_is_let_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
