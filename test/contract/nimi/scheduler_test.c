/* Which call gets a slot, and which waits. */
#include "contract/nimi/scheduler.h"

#include "helper/assert_str.h"

static struct loop *loop;
static struct scheduler *scheduler;
static unsigned granted;

static void on_granted(void *ctx) {
    (void)ctx;
    granted++;
}

static int setup(void **state) {
    (void)state;
    const struct scheduler_limits limits = {3, 2, 4};
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

static enum ticket_state take(const char *app, struct ticket **ret) {
    return scheduler_take(scheduler, str_from(app), loop, on_granted, NULL, ret);
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
            scheduler_take(scheduler, names[i], loop, on_granted, NULL, &tickets[i]);
            assert_int_equal(scheduler_occupancy(scheduler, names[i]).app_used, i < 3);
        }
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
            scheduler_release(tickets[i]);
            loop_turn(loop);
            assert_int_equal(scheduler_occupancy(scheduler, names[i]).app_used, 0);
        }
    }
}

static void who_waited_half_a_minute_is_starved(void **state) {
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

static void one_that_gave_up_while_it_was_told_passes_its_slot_on(void **state) {
    (void)state;
    struct ticket *held[2], *first, *second;
    take("a", &held[0]);
    take("a", &held[1]);
    take("a", &first);
    take("a", &second);
    scheduler_release(held[0]); /* the first is told, later */
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_app_has_two_slots_and_leaves_the_others_theirs,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(an_app_may_have_any_bytes_as_its_name, setup, teardown),
        cmocka_unit_test_setup_teardown(who_waited_half_a_minute_is_starved, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_gave_up_while_it_was_told_passes_its_slot_on,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_queue_refuses, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
