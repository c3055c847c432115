/* Which call gets a slot, and which waits. */
#include "contract/nimi/scheduler.h"

#include "helper/assert_str.h"

static struct loop *loop;
static struct scheduler *scheduler;
static unsigned granted;

static struct ticket **last; /* the one granted last */

static void on_granted(void *ctx) {
    last = ctx;
    granted++;
}

static unsigned weight_of(struct str app, const void *ctx) {
    (void)ctx;
    return str_equal(app, STR("heavy")) ? 3 : 1;
}

static int setup(void **state) {
    (void)state;
    const struct scheduler_limits limits = {.global = 3,
                                            .per_app = 2,
                                            .background = 2,
                                            .queue_max = 16,
                                            .queue_per_app = 4,
                                            .weight = weight_of};
    loop = loop_new_fake();
    scheduler = scheduler_new(&limits);
    granted = 0;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    loop_turn(loop);
    scheduler_free(scheduler);
    loop_free(loop);
    return 0;
}

static enum ticket_state take_as(const char *owner, const char *app, enum fair_class class,
                                 struct ticket **ret) {
    const struct ticket_ask ask = {.app = str_from(app),
                                   .owner = str_from(owner),
                                   .class = class,
                                   .loop = loop,
                                   .on_granted = on_granted,
                                   .ctx = ret};
    return scheduler_take(scheduler, &ask, ret);
}

static enum ticket_state take(const char *app, struct ticket **ret) {
    return take_as("", app, FAIR_INTERACTIVE, ret);
}

static void an_app_has_two_slots_and_leaves_the_others_theirs(void **state) {
    (void)state;
    struct ticket *a1, *a2, *a3, *b;
    assert_int_equal(take("a", &a1), TICKET_GRANTED);
    assert_int_equal(take("a", &a2), TICKET_GRANTED);
    assert_int_equal(take("a", &a3), TICKET_WAITS);
    assert_int_equal(take("b", &b), TICKET_GRANTED);
    struct occupancy now = scheduler_occupancy(scheduler, STR("a"));
    assert_int_equal(now.global_used, 3);
    assert_int_equal(now.app_used, 2);
    assert_int_equal(now.waiting, 1);
    scheduler_release(b);
    loop_turn(loop);
    assert_int_equal(granted, 0); /* a slot is free, but not one of this app */
    scheduler_release(a1);
    assert_int_equal(granted, 0); /* never from inside */
    loop_turn(loop);
    assert_int_equal(granted, 1);
    scheduler_release(a2);
    scheduler_release(a3);
}

static void an_app_may_have_any_bytes_as_its_name(void **state) {
    (void)state;
    const struct str names[] = {STR("a\0b"), STR("a\0c"), STR("a"), STR("\0")};
    struct ticket *tickets[ARRAY_LEN(names)];
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
            const struct ticket_ask ask = {
                .app = names[i], .loop = loop, .on_granted = on_granted};
            scheduler_take(scheduler, &ask, &tickets[i]);
            assert_int_equal(scheduler_occupancy(scheduler, names[i]).app_used, i < 3);
        }
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
            scheduler_release(tickets[i]);
            loop_turn(loop);
            assert_int_equal(scheduler_occupancy(scheduler, names[i]).app_used, 0);
        }
    }
}

static void a_call_that_waited_half_a_minute_is_starved(void **state) {
    (void)state;
    struct ticket *held[2], *waits;
    take("a", &held[0]);
    take("a", &held[1]);
    assert_int_equal(take("a", &waits), TICKET_WAITS);
    loop_advance(loop, SCHEDULER_STARVED_MS);
    scheduler_release(held[0]);
    loop_turn(loop);
    assert_int_equal(granted, 1);
    assert_int_equal(ticket_waited_ms(waits), SCHEDULER_STARVED_MS);
    assert_true(ticket_starved(waits));
    scheduler_release(held[1]);
    scheduler_release(waits);
}

static void a_ticket_withdrawn_during_its_notice_passes_its_slot_on(void **state) {
    (void)state;
    struct ticket *held[2], *first, *second;
    take("a", &held[0]);
    take("a", &held[1]);
    take("a", &first);
    take("a", &second);
    scheduler_release(held[0]); /* the first is notified, later */
    scheduler_release(first);
    loop_turn(loop);
    loop_turn(loop);
    assert_int_equal(granted, 1); /* the second */
    scheduler_release(held[1]);
    scheduler_release(second);
    assert_int_equal(scheduler_occupancy(scheduler, STR("a")).global_used, 0);
}

static void a_full_queue_refuses(void **state) {
    (void)state;
    struct ticket *tickets[6], *refused;
    for (size_t i = 0; i < 6; i++) assert_true(take("", &tickets[i]) != TICKET_REFUSED);
    assert_int_equal(take("", &refused), TICKET_REFUSED);
    assert_null(refused);
    for (size_t i = 6; i > 0; i--) scheduler_release(tickets[i - 1]);
}

/* --- fairness ----------------------------------------------------------------------------- */

static void jobs_leave_a_slot_for_interactive_calls(void **state) {
    (void)state;
    struct ticket *jobs[8], *stream;
    for (size_t i = 0; i < 8; i++) {
        const char *app = i % 2 ? "a" : "b";
        enum ticket_state taken = take_as("", app, FAIR_BACKGROUND, &jobs[i]);
        assert_int_equal(taken, i < 2 ? TICKET_GRANTED : TICKET_WAITS);
    }
    assert_int_equal(take("c", &stream), TICKET_GRANTED);
    scheduler_release(stream); /* and it stays free */
    loop_turn(loop);
    assert_int_equal(granted, 0);
    scheduler_release(jobs[0]);
    loop_turn(loop);
    assert_int_equal(granted, 1);
    assert_ptr_equal(last, &jobs[2]);
    for (size_t i = 1; i < 8; i++) scheduler_release(jobs[i]);
}

/* Three slots are taken; then who comes next, as letters of the apps. */
struct line {
    struct ticket *held[3];
    struct ticket *waiting[64];
    size_t count;
};

static void line_open(struct line *line) {
    static const char *const names[] = {"x", "y", "z"};
    line->count = 0;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(take(names[i], &line->held[i]), TICKET_GRANTED);
}

static void line_add(struct line *line, const char *owner, const char *app,
                     enum fair_class class) {
    assert_int_equal(take_as(owner, app, class, &line->waiting[line->count++]), TICKET_WAITS);
}

/* The index of the next that is granted, which gives its slot back at the next call. */
static size_t line_next(struct line *line) {
    unsigned before = granted;
    scheduler_release(line->held[0]);
    loop_turn(loop);
    assert_int_equal(granted, before + 1);
    line->held[0] = *last;
    size_t index = (size_t)(last - line->waiting);
    line->waiting[index] = NULL;
    return index;
}

static void line_close(struct line *line) {
    for (size_t i = 0; i < line->count; i++) scheduler_release(line->waiting[i]);
    for (size_t i = 0; i < 3; i++) scheduler_release(line->held[i]);
    loop_turn(loop);
    loop_turn(loop);
}

static void a_newcomer_does_not_wait_for_a_backlog(void **state) {
    (void)state;
    struct line line;
    line_open(&line);
    for (size_t i = 0; i < 4; i++) line_add(&line, "", "a", FAIR_INTERACTIVE);
    line_add(&line, "", "b", FAIR_INTERACTIVE);
    assert_int_equal(line_next(&line), 0);
    assert_int_equal(line_next(&line), 4); /* b's turn */
    assert_int_equal(line_next(&line), 1);
    line_close(&line);
}

static void owners_take_turns_whatever_their_apps_are_called(void **state) {
    (void)state;
    struct line line;
    char name[] = "fake0";
    line_open(&line);
    for (size_t i = 0; i < 8; i++) {
        name[4] = (char)('0' + i);
        line_add(&line, "10.0.0.1", name, FAIR_INTERACTIVE);
    }
    line_add(&line, "10.0.0.2", "b", FAIR_INTERACTIVE);
    line_add(&line, "10.0.0.2", "b", FAIR_INTERACTIVE);
    assert_int_equal(line_next(&line), 0);
    assert_int_equal(line_next(&line), 8);
    assert_int_equal(line_next(&line), 1);
    assert_int_equal(line_next(&line), 9);
    line_close(&line);
}

static void a_weight_of_three_is_three_turns(void **state) {
    (void)state;
    struct line line;
    size_t heavy = 0;
    line_open(&line);
    for (size_t i = 0; i < 4; i++) {
        line_add(&line, "", "heavy", FAIR_INTERACTIVE);
        line_add(&line, "", "light", FAIR_INTERACTIVE);
    }
    for (size_t i = 0; i < 4; i++) heavy += line_next(&line) % 2 == 0;
    assert_int_equal(heavy, 3);
    line_close(&line);
}

static void an_interactive_call_comes_first_but_not_always(void **state) {
    (void)state;
    struct line line;
    char name[] = "a";
    line_open(&line);
    line_add(&line, "", "job", FAIR_BACKGROUND);
    for (size_t i = 0; i < FAIR_BACKGROUND_EVERY; i++, name[0]++)
        line_add(&line, "", name, FAIR_INTERACTIVE);
    for (size_t i = 1; i < FAIR_BACKGROUND_EVERY; i++)
        assert_int_not_equal(line_next(&line), 0);
    assert_int_equal(line_next(&line), 0);
    line_close(&line);
}

static void one_apps_flood_does_not_take_the_others_places(void **state) {
    (void)state;
    struct ticket *tickets[64], *refused;
    size_t count = 0;
    char name[] = "flood-a";
    while (take("flood", &tickets[count]) != TICKET_REFUSED) count++;
    assert_int_equal(count, 2 + 4); /* its slots and its places */
    assert_int_equal(take("b", &tickets[count++]), TICKET_GRANTED);
    for (; name[6] <= 'z'; name[6]++) { /* and neither do names made up */
        while (take_as("10.0.0.1", name, FAIR_INTERACTIVE, &tickets[count]) != TICKET_REFUSED)
            count++;
    }
    assert_int_equal(take_as("10.0.0.1", "new", FAIR_INTERACTIVE, &refused), TICKET_REFUSED);
    assert_int_equal(take_as("10.0.0.2", "new", FAIR_INTERACTIVE, &tickets[count++]),
                     TICKET_WAITS);
    assert_int_equal(take_as("", "flood", FAIR_BACKGROUND, &tickets[count++]), TICKET_WAITS);
    while (count > 0) scheduler_release(tickets[--count]);
    loop_turn(loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_app_has_two_slots_and_leaves_the_others_theirs,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(an_app_may_have_any_bytes_as_its_name, setup, teardown),
        cmocka_unit_test_setup_teardown(a_call_that_waited_half_a_minute_is_starved, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_ticket_withdrawn_during_its_notice_passes_its_slot_on,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_queue_refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(jobs_leave_a_slot_for_interactive_calls, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_newcomer_does_not_wait_for_a_backlog, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(owners_take_turns_whatever_their_apps_are_called, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_weight_of_three_is_three_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(an_interactive_call_comes_first_but_not_always, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(one_apps_flood_does_not_take_the_others_places, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
