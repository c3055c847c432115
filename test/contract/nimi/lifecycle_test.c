/* What the runtime may do in each state, and which states may follow. */
#include "contract/nimi/lifecycle.h"

#include "helper/assert_str.h"

static const struct {
    enum lifecycle from, to;
} legal[] = {
    {LIFE_STOPPED, LIFE_STARTING},  {LIFE_STARTING, LIFE_READY},
    {LIFE_STARTING, LIFE_STOPPED},  {LIFE_READY, LIFE_DEGRADED},
    {LIFE_READY, LIFE_STOPPING},    {LIFE_DEGRADED, LIFE_READY},
    {LIFE_DEGRADED, LIFE_STOPPING}, {LIFE_STOPPING, LIFE_STOPPED},
};

static bool is_legal(enum lifecycle from, enum lifecycle to) {
    for (size_t i = 0; i < ARRAY_LEN(legal); i++) {
        if (legal[i].from == from && legal[i].to == to) return true;
    }
    return false;
}

static void only_the_drawn_moves_are_allowed(void **state) {
    (void)state;
    for (int from = LIFE_STOPPED; from < LIFE_COUNT; from++) {
        for (int to = LIFE_STOPPED; to < LIFE_COUNT; to++)
            assert_int_equal(states_allow(lifecycle_states, (unsigned)from, (unsigned)to),
                             is_legal((enum lifecycle)from, (enum lifecycle)to));
    }
}

static void while_it_stops_only_what_reads_is_let_in(void **state) {
    (void)state;
    assert_true(lifecycle_admits(LIFE_READY, false));
    assert_true(lifecycle_admits(LIFE_DEGRADED, false));
    assert_true(lifecycle_admits(LIFE_STOPPING, true));
    assert_false(lifecycle_admits(LIFE_STOPPING, false));
    assert_false(lifecycle_admits(LIFE_STOPPED, true));
}

static void names_are_those_of_the_protocol(void **state) {
    (void)state;
    assert_str(lifecycle_name(LIFE_READY), "READY");
    assert_str(lifecycle_name(LIFE_DEGRADED), "DEGRADED");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_drawn_moves_are_allowed),
        cmocka_unit_test(while_it_stops_only_what_reads_is_let_in),
        cmocka_unit_test(names_are_those_of_the_protocol),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
