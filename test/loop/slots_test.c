#include "loop/slots.h"

#include "helper/assert_str.h"

struct user {
    struct slot slot;
    unsigned notified;
};

static struct loop *loop;

static void on_granted(void *ctx) {
    struct user *user = ctx;
    user->notified++;
}

static int setup(void **state) {
    (void)state;
    loop = loop_new_fake();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    loop_turn(loop);
    loop_free(loop);
    return 0;
}

static enum slots_answer enter_of(struct slots *slots, const char *key, size_t max,
                                  struct user *user) {
    *user = (struct user){.slot = {.loop = loop, .granted = on_granted, .ctx = user}};
    return slots_enter(slots, str_from(key), max, &user->slot);
}

static enum slots_answer enter(struct slots *slots, const char *key, struct user *user) {
    return enter_of(slots, key, 1, user);
}

static struct slots *open_slots(size_t all, size_t queue_max) {
    return slots_new(&(struct slots_limits){.all = all, .queue_max = queue_max});
}

/* --- states ------------------------------------------------------------------------------- */

static void only_the_drawn_moves_are_allowed(void **state) {
    (void)state;
    static const bool drawn[SLOT_STATE_COUNT][SLOT_STATE_COUNT] = {
        [SLOT_NONE] = {[SLOT_WAITING] = true, [SLOT_TAKEN] = true},
        [SLOT_WAITING] = {[SLOT_NONE] = true, [SLOT_GRANTED] = true},
        [SLOT_GRANTED] = {[SLOT_TAKEN] = true, [SLOT_RETURNED] = true},
        [SLOT_TAKEN] = {[SLOT_NONE] = true},
        [SLOT_RETURNED] = {[SLOT_NONE] = true},
    };
    for (unsigned from = 0; from < SLOT_STATE_COUNT; from++) {
        assert_true(states_name(slot_states, (enum slot_state)from).len > 0);
        for (unsigned to = 0; to < SLOT_STATE_COUNT; to++)
            assert_int_equal(
                states_allow(slot_states, (enum slot_state)from, (enum slot_state)to),
                drawn[from][to]);
    }
}

/* --- one key ------------------------------------------------------------------------------ */

static void the_longest_waiting_comes_next_and_is_notified_later(void **state) {
    (void)state;
    struct slots *slots = open_slots(SLOTS_NO_LIMIT, SIZE_MAX);
    struct user a, b, c;
    assert_int_equal(enter(slots, "w", &a), SLOTS_TAKEN);
    assert_int_equal(enter(slots, "w", &b), SLOTS_WAITING);
    assert_int_equal(enter(slots, "w", &c), SLOTS_WAITING);
    assert_true(slots_leave(&a.slot));
    assert_int_equal(b.slot.state, SLOT_GRANTED);
    assert_int_equal(b.notified, 0); /* never from inside */
    loop_turn(loop);
    assert_int_equal(b.notified, 1);
    assert_int_equal(b.slot.state, SLOT_TAKEN);
    assert_int_equal(c.slot.state, SLOT_WAITING);
    slots_leave(&b.slot);
    loop_turn(loop);
    assert_int_equal(c.notified, 1);
    slots_leave(&c.slot);
    slots_free(slots);
}

static void a_later_turn_does_not_overtake_waiting_ones(void **state) {
    (void)state;
    struct slots *slots = open_slots(SLOTS_NO_LIMIT, SIZE_MAX);
    struct user a, b, c;
    assert_int_equal(enter(slots, "w", &a), SLOTS_TAKEN);
    assert_int_equal(enter(slots, "w", &b), SLOTS_WAITING);
    assert_int_equal(enter_of(slots, "w", 3, &c), SLOTS_WAITING); /* there would be room */
    slots_leave(&a.slot);
    loop_turn(loop);
    assert_int_equal(b.notified + c.notified, 2); /* the newest limit counts for all */
    slots_leave(&b.slot);
    slots_leave(&c.slot);
    slots_free(slots);
}

static void a_withdrawn_ticket_has_no_callback(void **state) {
    (void)state;
    struct slots *slots = open_slots(SLOTS_NO_LIMIT, SIZE_MAX);
    struct user a, b, never = {.notified = 0};
    assert_int_equal(enter(slots, "w", &a), SLOTS_TAKEN);
    assert_int_equal(enter(slots, "w", &b), SLOTS_WAITING);
    assert_true(slots_withdraw(&b.slot));
    assert_false(slots_withdraw(&b.slot));
    assert_false(slots_withdraw(&a.slot));
    assert_false(slots_withdraw(&never.slot));
    assert_true(slots_leave(&never.slot));
    assert_true(slots_leave(&a.slot));
    assert_true(slots_leave(&a.slot)); /* nothing is left to leave */
    loop_turn(loop);
    assert_int_equal(b.notified, 0);
    slots_free(slots);
}

static void a_ticket_released_before_its_notice_passes_the_slot_on(void **state) {
    (void)state;
    struct slots *slots = open_slots(SLOTS_NO_LIMIT, SIZE_MAX);
    struct user a, b, c;
    assert_int_equal(enter(slots, "w", &a), SLOTS_TAKEN);
    assert_int_equal(enter(slots, "w", &b), SLOTS_WAITING);
    assert_int_equal(enter(slots, "w", &c), SLOTS_WAITING);
    slots_leave(&a.slot);
    assert_false(slots_withdraw(&b.slot)); /* too late */
    assert_false(slots_leave(&b.slot));    /* its memory is still needed */
    assert_int_equal(b.slot.state, SLOT_RETURNED);
    assert_int_equal(c.slot.state, SLOT_GRANTED);
    loop_turn(loop);
    assert_int_equal(b.notified, 1);
    assert_int_equal(b.slot.state, SLOT_NONE);
    assert_int_equal(c.notified, 1);
    slots_leave(&c.slot);
    slots_free(slots);
}

/* --- many --------------------------------------------------------------------------------- */

static void a_key_without_room_holds_up_no_other(void **state) {
    (void)state;
    struct slots *slots = open_slots(2, SIZE_MAX);
    struct user a1, a2, b1, b2;
    assert_int_equal(enter(slots, "a", &a1), SLOTS_TAKEN);
    assert_int_equal(enter(slots, "a", &a2), SLOTS_WAITING);
    assert_int_equal(enter(slots, "b", &b1), SLOTS_TAKEN);
    assert_int_equal(enter(slots, "b", &b2), SLOTS_WAITING);
    struct slots_use use = slots_used(slots, STR("a"));
    assert_int_equal(use.used, 2);
    assert_int_equal(use.key_used, 1);
    assert_int_equal(use.waiting, 2);
    slots_leave(&b1.slot);
    loop_turn(loop);
    assert_int_equal(a2.notified, 0); /* it waited longer, but its key has no room */
    assert_int_equal(b2.notified, 1);
    slots_leave(&a1.slot);
    loop_turn(loop);
    assert_int_equal(a2.notified, 1);
    slots_leave(&a2.slot);
    slots_leave(&b2.slot);
    slots_free(slots);
}

static void the_limit_in_all_is_one_for_every_key(void **state) {
    (void)state;
    struct slots *slots = open_slots(1, SIZE_MAX);
    struct user a, b, c;
    assert_int_equal(enter(slots, "a", &a), SLOTS_TAKEN);
    assert_int_equal(enter(slots, "b", &b), SLOTS_WAITING);
    assert_int_equal(enter(slots, "c", &c), SLOTS_WAITING);
    slots_leave(&a.slot);
    loop_turn(loop);
    assert_int_equal(b.notified, 1);
    assert_int_equal(c.notified, 0);
    assert_false(slots_leave(&c.slot)); /* it waits: there is nothing to give back */
    assert_int_equal(c.slot.state, SLOT_WAITING);
    slots_leave(&b.slot);
    assert_int_equal(c.slot.state, SLOT_GRANTED);
    loop_turn(loop);
    slots_leave(&c.slot);
    slots_free(slots);
}

static void a_full_queue_refuses_and_forgets(void **state) {
    (void)state;
    struct slots *slots = open_slots(1, 1);
    struct user a, b, c;
    assert_int_equal(enter(slots, "a", &a), SLOTS_TAKEN);
    assert_int_equal(enter(slots, "b", &b), SLOTS_WAITING);
    assert_int_equal(enter(slots, "c", &c), SLOTS_FULL);
    assert_int_equal(c.slot.state, SLOT_NONE);
    assert_true(slots_leave(&c.slot));
    assert_true(slots_withdraw(&b.slot));
    slots_leave(&a.slot);
    assert_int_equal(slots_used(slots, STR("a")).used, 0);
    slots_free(slots); /* which says that no key is left */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_drawn_moves_are_allowed),
        cmocka_unit_test_setup_teardown(the_longest_waiting_comes_next_and_is_notified_later,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_later_turn_does_not_overtake_waiting_ones, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_withdrawn_ticket_has_no_callback, setup, teardown),
        cmocka_unit_test_setup_teardown(a_ticket_released_before_its_notice_passes_the_slot_on,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_key_without_room_holds_up_no_other, setup, teardown),
        cmocka_unit_test_setup_teardown(the_limit_in_all_is_one_for_every_key, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_queue_refuses_and_forgets, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
