#include "turn/detached.h"

#include "fake/provider_fake.h" /* named here: the build links them */
#include "fake/store_fake.h"
#include "fixture.h"

static const struct leaving detach = {.how = LEAVING_DETACHES};
static const struct leaving half_minute = {.how = LEAVING_DETACHES, .for_ms = 30000};

/* Another caller reads, from now on. */
static struct cursor *read_on(struct turn *turn) {
    static bool heard;
    struct cursor *cursor;
    struct err e;
    assert_true(cursor_open(run_journal(turn->run), 0, turn->f->loop, fixture_kept, &heard,
                            &cursor, &e));
    return cursor;
}

/* The caller's own reader goes; the run stays in our hands. */
static void leave(struct turn *turn, struct leaving leaving) {
    run_leave(turn->run, leaving, STR("he left"));
    cursor_close(turn->cursor);
    turn->cursor = NULL;
    turns(turn->f);
}

static void a_caller_who_cancels_ends_the_run(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "hello");
    run_leave(turn.run, (struct leaving){LEAVING_CANCELS, 0}, STR("he left"));
    assert_seen(&turn, "started(hello) usage(0 -1) cancelled(he left)");
    end(&turn);
}

static void a_detached_run_goes_on_to_its_end(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "hello");
    leave(&turn, detach);
    loop_advance(f->loop, 60000);
    assert_int_equal(run_state(turn.run), RUN_ASKING);
    reply(f, "hi");
    assert_int_equal(run_state(turn.run), RUN_DONE);
    end(&turn);
    assert_history(f, "user=hello agent/manager=hi");
}

static void detached_for_a_time_it_ends_when_that_is_over(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "hello");
    leave(&turn, half_minute);
    loop_advance(f->loop, 29999);
    turns(f);
    assert_int_equal(run_state(turn.run), RUN_ASKING);
    loop_advance(f->loop, 1);
    turns(f);
    assert_int_equal(run_state(turn.run), RUN_CANCELLED);
    end(&turn);
}

static void a_reader_keeps_it_and_the_time_begins_anew_when_he_leaves(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "hello");
    leave(&turn, half_minute);
    loop_advance(f->loop, 20000);
    struct cursor *one = read_on(&turn), *other = read_on(&turn);
    loop_advance(f->loop, 100000);
    turns(f);
    cursor_close(one);
    loop_advance(f->loop, 40000);
    struct err e;
    assert_true(cursor_open(run_journal(turn.run), 0, f->loop, NULL, NULL, &one, &e));

    turns(f);
    assert_int_equal(run_state(turn.run), RUN_ASKING);
    cursor_close(other);
    loop_advance(f->loop, 29999);
    cursor_close(one); /* a glance, which keeps nothing */
    turns(f);
    assert_int_equal(run_state(turn.run), RUN_ASKING);
    loop_advance(f->loop, 1);
    turns(f);
    assert_int_equal(run_state(turn.run), RUN_CANCELLED);
    end(&turn);
}

static void the_last_word_about_leaving_counts(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "hello");
    leave(&turn, half_minute);
    run_leave(turn.run, detach, STR("he left"));
    loop_advance(f->loop, 100000);
    assert_int_equal(run_state(turn.run), RUN_ASKING);
    run_leave(turn.run, (struct leaving){LEAVING_CANCELS, 0}, STR("he left"));
    run_leave(turn.run, half_minute, STR("he left")); /* it has begun to end */
    turns(f);
    assert_int_equal(run_state(turn.run), RUN_CANCELLED);
    end(&turn);
}

static void a_detached_run_that_asks_a_human_waits(void **state) {
    struct fixture *f = *state;
    struct turn turn, answered;
    say(&turn, f, "hello");
    leave(&turn, half_minute);
    fake_approval(asked(f), "a1", "May I?");
    fake_done(asked(f), "m-1");
    turns(f);
    assert_int_equal(run_state(turn.run), RUN_WAITING);
    loop_advance(f->loop, 1000000);
    turns(f);
    assert_int_equal(run_state(turn.run), RUN_WAITING);
    answer_as_human(&answered, f, "yes");
    reply(f, "done");
    assert_int_equal(run_state(turn.run), RUN_DONE);
    end(&answered);
    end(&turn);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TURN_TEST(a_caller_who_cancels_ends_the_run),
        STORED_TURN_TEST(a_detached_run_goes_on_to_its_end),
        TURN_TEST(detached_for_a_time_it_ends_when_that_is_over),
        TURN_TEST(a_reader_keeps_it_and_the_time_begins_anew_when_he_leaves),
        TURN_TEST(the_last_word_about_leaving_counts),
        TURN_TEST(a_detached_run_that_asks_a_human_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
