/* The states of a subscription to a log, and what is a cursor. The way of its events is tried end
 * to end (test_nimi_memory.py, test_nimi_agents.py), where a store and several loops take part. */
#include "contract/nimi/log_subscription.h"

#include "helper/assert_str.h"
#include "helper/moves.h"

static void only_the_drawn_moves_are_allowed(void **state) {
    (void)state;
    static const char *const drawn[] = {
        "new reading",  "new over",     "reading reading", "reading full",
        "reading live", "reading over", "full over",       "full reading",
        "live reading", "live full",    "live over",
    };
    assert_moves(log_subscription_states, LOG_SUBSCRIPTION_STATE_COUNT, drawn,
                 ARRAY_LEN(drawn));
}

static void a_cursor_is_a_decimal_number(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool good, live;
        uint64_t after;
    } cases[] = {
        {"", true, true, 0},
        {"0", true, false, 0},
        {"17", true, false, 17},
        {"007", true, false, 7},
        {"9223372036854775807", true, false, INT64_MAX},
        {"18446744073709551615", true, false, INT64_MAX}, /* never reached */
        {"18446744073709551616", false, false, 0},
        {"-1", false, false, 0},
        {"+1", false, false, 0},
        {" 1", false, false, 0},
        {"1.0", false, false, 0},
        {"x", false, false, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct log_subscription_options options = {.live = true};
        struct fault fault;
        bool good = log_subscription_cursor(str_from(cases[i].text), &options, &fault);
        assert_int_equal(good, cases[i].good);
        if (!good) {
            assert_int_equal(fault.reason, NIMI_PROTOCOL_ENVELOPE_INVALID);
            continue;
        }
        assert_int_equal(options.live, cases[i].live);
        assert_true(options.after == cases[i].after);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_drawn_moves_are_allowed),
        cmocka_unit_test(a_cursor_is_a_decimal_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
