#include "fake/store_fake.h" /* named here: the build links it */
#include "fixture.h"

/* Sections of a write's rows as "run:first+len ..." with '|' between rows; S: a shared row. */
static void describe(const struct store_write *write, struct buf *out) {
    buf_clear(out);
    for (size_t i = 0; i < write->row_count; i++) {
        if (i) buf_append(out, STR(" | "));
        if (write->rows[i].run == 0) buf_append(out, STR("S "));
        struct str row = buf_str(&write->rows[i].bytes);
        struct store_section section;
        bool bad = false, first = true;
        while (store_section_next(&row, &section, &bad)) {
            size_t count = 0;
            struct event event = {0};
            struct err e;
            while (section.events.len) {
                assert_true(event_decode(&section.events, &event, &e));
                count++;
            }
            buf_printf(out, "%s%d:%d+%d", first ? "" : " ", (int)section.run,
                       (int)section.first_seq, (int)count);
            first = false;
        }
        assert_false(bad);
    }
}

static void assert_write(struct fixture *f, size_t index, const char *expected) {
    struct buf out;
    buf_init(&out, 4 * KIB);
    describe(fake_store_write(f->store, index), &out);
    assert_str(buf_str(&out), expected);
    buf_done(&out);
}

static void commit_all(struct fixture *f) {
    while (fake_store_writes(f->store)) {
        fake_store_commit(f->store, 0);
        loop_turn(f->loop);
    }
}

/* A journal of our own beside the fixture's, already begun on disk. */
static struct journal *begun(struct fixture *f, uint64_t run) {
    struct journal *journal = fixture_journal(f, run, MIB);
    journal_leave(journal);
    say_to(journal, EVENT_STARTED, STR_EMPTY);
    loop_advance(f->loop, KEEPER_TICK_MS);
    commit_all(f);
    assert_int_equal(journal_durable(journal), 1);
    return journal;
}

static void a_journal_has_one_write_on_its_way(void **state) {
    struct fixture *f = *state;
    say(f, EVENT_TOOL_CALL, "a");
    loop_turn(f->loop);
    for (size_t i = 0; i < 5; i++) {
        say(f, EVENT_TOOL_CALL, "b");
        loop_turn(f->loop);
        loop_advance(f->loop, KEEPER_TICK_MS);
        assert_int_equal(fake_store_writes(f->store), 1);
    }
    assert_write(f, 0, "7:1+1");
    fake_store_commit(f->store, 0);
    loop_turn(f->loop);
    assert_int_equal(fake_store_writes(f->store), 1);
    assert_write(f, 0, "7:2+5");
}

static void the_first_row_is_its_own_and_text_waits_for_the_tick(void **state) {
    struct fixture *f = *state;
    say(f, EVENT_STARTED, "");
    say(f, EVENT_TEXT, "a");
    loop_turn(f->loop);
    loop_advance(f->loop, KEEPER_TICK_MS - 1);
    assert_int_equal(fake_store_writes(f->store), 0);
    loop_advance(f->loop, 1);
    assert_int_equal(fake_store_writes(f->store), 1);
    assert_write(f, 0, "7:1+2");
}

/* What it does then is the allocator's business; that it goes on, or ends, is ours. */
static void a_keeper_rests_after_much_work_and_goes_on(void **state) {
    struct fixture *f = *state;
    char *much = mem_zero(2 * MIB, 1);
    for (int busy = 0; busy < 3; busy++) {
        say_to(f->journal, EVENT_TEXT, str_of(much, 2 * MIB));
        say(f, EVENT_TOOL_CALL, "a");
        loop_turn(f->loop);
        commit_all(f);
        assert_int_equal(journal_durable(f->journal), 2 * busy + 2);
        loop_advance(f->loop,
                     busy == 2 ? 10 : 60000); /* the last one does not live to see it */
    }
    free(much);
}

static void text_of_all_live_runs_shares_a_row(void **state) {
    struct fixture *f = *state;
    struct journal *one = begun(f, 101), *two = begun(f, 102);
    say_to(one, EVENT_TEXT, STR("a"));
    say_to(two, EVENT_TEXT, STR("b"));
    say_to(one, EVENT_TEXT, STR("c"));
    say(f, EVENT_STARTED, "");
    loop_advance(f->loop, KEEPER_TICK_MS);
    assert_int_equal(fake_store_writes(f->store), 1);
    assert_write(f, 0, "S 101:2+2 102:2+1 | 7:1+1");
    commit_all(f);
    assert_int_equal(journal_durable(one), 3);
    journal_unref(one);
    journal_unref(two);
}

static void an_effect_takes_the_text_before_it_into_its_own_row(void **state) {
    struct fixture *f = *state;
    struct journal *one = begun(f, 101), *two = begun(f, 102);
    say_to(one, EVENT_TEXT, STR("a"));
    say_to(two, EVENT_TEXT, STR("b"));
    say_to(one, EVENT_TOOL_CALL, STR("c"));
    loop_turn(f->loop);
    assert_write(f, 0, "101:2+2");
    commit_all(f);
    loop_advance(f->loop, KEEPER_TICK_MS);
    assert_write(f, 0, "S 102:2+1");
    commit_all(f);
    journal_unref(one);
    journal_unref(two);
}

/* A session is read back without the shared rows, and its calls must have their results. */
static void a_tool_result_does_not_stand_in_a_shared_row(void **state) {
    struct fixture *f = *state;
    struct journal *one = begun(f, 101), *two = begun(f, 102);
    say_to(one, EVENT_TOOL_RESULT, STR_EMPTY);
    say_to(one, EVENT_TEXT, STR("a"));
    say_to(two, EVENT_TEXT, STR("b"));
    loop_advance(f->loop, KEEPER_TICK_MS);
    assert_write(f, 0, "101:2+2 | S 102:2+1");
    commit_all(f);
    say_to(one, EVENT_TEXT, STR("c"));
    loop_advance(f->loop, KEEPER_TICK_MS);
    assert_write(f, 0, "S 101:4+1");
    commit_all(f);
    journal_unref(one);
    journal_unref(two);
}

static void much_text_does_not_wait_for_the_tick(void **state) {
    struct fixture *f = *state;
    for (size_t i = 0; i < 200; i++) say_long(f, 1000);
    loop_turn(f->loop);
    assert_int_equal(fake_store_writes(f->store), 0);
    for (size_t i = 0; i < 70; i++) say_long(f, 1000);
    loop_turn(f->loop);
    assert_int_equal(fake_store_writes(f->store), 1);
    commit_all(f);
    assert_int_equal(journal_durable(f->journal), 270);
}

static void a_shared_row_has_an_end(void **state) {
    struct fixture *f = *state;
    struct journal *all[8];
    char text[3 * KIB] = {0};
    for (size_t i = 0; i < 8; i++) all[i] = begun(f, 101 + i);
    for (size_t i = 0; i < 8; i++) say_to(all[i], EVENT_TEXT, str_of(text, sizeof(text)));
    loop_advance(f->loop, KEEPER_TICK_MS);
    assert_write(f, 0, "S 101:2+1 102:2+1 103:2+1 104:2+1 105:2+1 106:2+1 | S 107:2+1 108:2+1");
    commit_all(f);
    for (size_t i = 0; i < 8; i++) journal_unref(all[i]);
}

static void much_text_of_one_run_has_a_row_to_itself(void **state) {
    struct fixture *f = *state;
    struct journal *all[4];
    char text[3 * KIB] = {0};
    for (size_t i = 0; i < 4; i++) all[i] = begun(f, 101 + i);
    for (size_t i = 0; i < 4; i++) say_to(all[i], EVENT_TEXT, STR("few"));
    for (size_t i = 1; i < 3; i++) {
        say_to(all[i], EVENT_TEXT, str_of(text, sizeof(text)));
        say_to(all[i], EVENT_TEXT, str_of(text, KIB));
    }
    loop_advance(f->loop, KEEPER_TICK_MS);
    assert_write(f, 0, "S 101:2+1 104:2+1 | S 102:2+3 | S 103:2+3");
    commit_all(f);
    for (size_t i = 0; i < 4; i++) journal_unref(all[i]);
}

static void chunks_share_a_section_up_to_an_end(void **state) {
    struct fixture *f = *state;
    struct journal *journal = begun(f, 101);
    char text[3 * KIB] = {0};
    for (size_t i = 0; i < 30; i++) say_to(journal, EVENT_TEXT, str_of(text, sizeof(text)));
    loop_advance(f->loop, KEEPER_TICK_MS);
    assert_write(f, 0, "S 101:2+22 101:24+8");
    commit_all(f);
    assert_int_equal(journal_durable(journal), 31);
    journal_unref(journal);
}

static void text_that_is_lost_is_written_again_at_the_next_tick(void **state) {
    struct fixture *f = *state;
    say(f, EVENT_TEXT, "a");
    loop_advance(f->loop, KEEPER_TICK_MS);
    fake_store_lose(f->store, 0, ERR_UNAVAILABLE);
    say(f, EVENT_TEXT, "b");
    loop_turn(f->loop);
    assert_int_equal(f->lost, 0);
    assert_int_equal(fake_store_writes(f->store), 0);
    loop_advance(f->loop, KEEPER_TICK_MS);
    assert_write(f, 0, "7:1+2");
    fake_store_commit(f->store, 0);
    loop_turn(f->loop);
    assert_marks(f->journal, 2, 2, 2);
}

/* Written again it might stand in the log twice. */
static void text_that_may_be_there_is_not_written_again(void **state) {
    struct fixture *f = *state;
    say(f, EVENT_TEXT, "a");
    loop_advance(f->loop, KEEPER_TICK_MS);
    fake_store_lose(f->store, 0, ERR_OUTCOME_UNKNOWN);
    loop_turn(f->loop);
    assert_int_equal(f->lost, 1);
    loop_advance(f->loop, KEEPER_TICK_MS);
    assert_int_equal(fake_store_writes(f->store), 0);
}

static void text_that_is_lost_before_an_effect_rides_with_it(void **state) {
    struct fixture *f = *state;
    say(f, EVENT_TEXT, "a");
    loop_advance(f->loop, KEEPER_TICK_MS);
    say(f, EVENT_TOOL_CALL, "c");
    loop_turn(f->loop);
    fake_store_lose(f->store, 0, ERR_UNAVAILABLE);
    loop_turn(f->loop);
    assert_int_equal(f->lost, 0); /* only text was in it */
    assert_write(f, 0, "7:1+2");
    fake_store_commit(f->store, 0);
    loop_turn(f->loop);
    assert_marks(f->journal, 2, 2, 2);
}

static void writes_of_different_journals_may_end_in_any_order(void **state) {
    struct fixture *f = *state;
    struct journal *one = begun(f, 101);
    say_to(one, EVENT_TOOL_CALL, STR("c"));
    loop_turn(f->loop);
    say(f, EVENT_TOOL_CALL, "c");
    loop_turn(f->loop);
    assert_int_equal(fake_store_writes(f->store), 2);
    fake_store_commit(f->store, 1);
    loop_turn(f->loop);
    assert_marks(f->journal, 1, 1, 1);
    assert_marks(one, 2, 1, 1);
    fake_store_commit(f->store, 0);
    loop_turn(f->loop);
    assert_marks(one, 2, 2, 2);
    journal_unref(one);
}

static void a_flush_writes_what_waits_and_says_when(void **state) {
    struct fixture *f = *state;
    bool kept = false;
    say(f, EVENT_TEXT, "a");
    keeper_flush(f->keeper, fixture_kept, &kept);
    loop_turn(f->loop);
    assert_int_equal(fake_store_writes(f->store), 1);
    assert_false(kept);
    say(f, EVENT_TEXT, "b"); /* what comes meanwhile too, without waiting for a tick */
    fake_store_commit(f->store, 0);
    loop_turn(f->loop);
    assert_false(kept);
    assert_write(f, 0, "S 7:2+1");
    fake_store_commit(f->store, 0);
    loop_turn(f->loop);
    assert_true(kept);
}

static void a_flush_with_nothing_to_write_says_so(void **state) {
    struct fixture *f = *state;
    bool kept = false;
    keeper_flush(f->keeper, fixture_kept, &kept);
    assert_false(kept);
    loop_turn(f->loop);
    assert_true(kept);
}

static void a_flush_does_not_wait_for_a_store_that_is_gone(void **state) {
    struct fixture *f = *state;
    bool kept = false;
    fake_store_always_lose(f->store, ERR_UNAVAILABLE);
    say(f, EVENT_TEXT, "a");
    journal_leave(f->journal);
    keeper_flush(f->keeper, fixture_kept, &kept);
    loop_turn(f->loop);
    loop_turn(f->loop);
    assert_true(kept);
    assert_int_equal(fake_store_sent(f->store), 1);
}

static void a_journal_that_was_left_is_still_written(void **state) {
    struct fixture *f = *state;
    say(f, EVENT_TEXT, "a");
    loop_turn(f->loop);
    journal_leave(f->journal);
    journal_unref(f->journal);
    f->journal = NULL;
    loop_advance(f->loop, KEEPER_TICK_MS);
    assert_write(f, 0, "7:1+1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_journal_has_one_write_on_its_way),
        TEST(the_first_row_is_its_own_and_text_waits_for_the_tick),
        TEST(text_of_all_live_runs_shares_a_row),
        TEST(an_effect_takes_the_text_before_it_into_its_own_row),
        TEST(a_tool_result_does_not_stand_in_a_shared_row),
        TEST(much_text_does_not_wait_for_the_tick),
        TEST(a_shared_row_has_an_end),
        TEST(much_text_of_one_run_has_a_row_to_itself),
        TEST(chunks_share_a_section_up_to_an_end),
        TEST(text_that_is_lost_is_written_again_at_the_next_tick),
        TEST(text_that_may_be_there_is_not_written_again),
        TEST(text_that_is_lost_before_an_effect_rides_with_it),
        TEST(writes_of_different_journals_may_end_in_any_order),
        TEST(a_keeper_rests_after_much_work_and_goes_on),
        TEST(a_flush_writes_what_waits_and_says_when),
        TEST(a_flush_with_nothing_to_write_says_so),
        TEST(a_flush_does_not_wait_for_a_store_that_is_gone),
        TEST(a_journal_that_was_left_is_still_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
