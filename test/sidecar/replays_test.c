#include "sidecar/replays.h"

#include "base/mem.h"
#include "helper/assert_str.h"

#include <stdio.h>

struct waits {
    struct replay_waiter waiter;
    int called;
    bool gave_back;
    char body[32];
};

static void on_answer(const struct replay_answer *answer, void *ctx) {
    struct waits *waits = ctx;
    waits->called++;
    waits->gave_back = !answer;
    if (answer) snprintf(waits->body, sizeof(waits->body), STR_FMT, STR_ARG(answer->body));
}

static void init(struct waits *waits) {
    *waits = (struct waits){.called = 0};
    replay_waiter_init(&waits->waiter);
    waits->waiter.on_answer = on_answer;
    waits->waiter.ctx = waits;
}

static const struct replay_answer fine = {200, STR_INIT("application/json"), STR_INIT("t"),
                                          STR_INIT("{}")};

static void the_second_waits_and_the_third_gets_it_again(void **state) {
    (void)state;
    struct replays *replays = replays_new(1000);
    struct replay *run = NULL;
    struct replay_answer answer;
    struct waits first, second;
    init(&first);
    init(&second);
    assert_int_equal(
        replays_claim(replays, STR("k"), STR("r"), 0, &first.waiter, &run, &answer),
        REPLAY_RUN);
    assert_int_equal(
        replays_claim(replays, STR("k"), STR("r"), 0, &second.waiter, &run, &answer),
        REPLAY_WAIT);
    assert_int_equal(
        replays_claim(replays, STR("k"), STR("other"), 0, &second.waiter, &run, &answer),
        REPLAY_CONFLICT);
    replays_end(replays, run, &fine, 10);
    assert_int_equal(first.called, 0);
    assert_int_equal(second.called, 1);
    assert_string_equal(second.body, "{}");
    assert_int_equal(
        replays_claim(replays, STR("k"), STR("r"), 1009, &second.waiter, &run, &answer),
        REPLAY_ANSWERED);
    assert_int_equal(answer.status, 200);
    assert_str(answer.trace_id, "t");
    assert_int_equal(
        replays_claim(replays, STR("k"), STR("r"), 1010, &second.waiter, &run, &answer),
        REPLAY_RUN);
    replays_end(replays, run, NULL, 1010);
    replays_free(replays);
}

static void a_key_that_is_given_back_can_be_claimed(void **state) {
    (void)state;
    struct replays *replays = replays_new(1000);
    struct replay *run = NULL;
    struct replay_answer answer;
    struct waits stays, leaves;
    init(&stays);
    init(&leaves);
    assert_int_equal(
        replays_claim(replays, STR("k"), STR("r"), 0, &stays.waiter, &run, &answer),
        REPLAY_RUN);
    assert_int_equal(
        replays_claim(replays, STR("k"), STR("r"), 0, &stays.waiter, &run, &answer),
        REPLAY_WAIT);
    assert_int_equal(
        replays_claim(replays, STR("k"), STR("r"), 0, &leaves.waiter, &run, &answer),
        REPLAY_WAIT);
    replay_waiter_leave(&leaves.waiter);
    replays_end(replays, run, NULL, 0);
    assert_true(stays.called == 1 && stays.gave_back);
    assert_int_equal(leaves.called, 0);
    assert_int_equal(
        replays_claim(replays, STR("k"), STR("new"), 0, &leaves.waiter, &run, &answer),
        REPLAY_RUN);
    replays_end(replays, run, &fine, 0);
    replays_free(replays);
}

static void answers_are_bounded_and_the_oldest_goes_first(void **state) {
    (void)state;
    struct replays *replays = replays_new(1000000);
    struct replay *run = NULL;
    struct replay_answer answer, large = fine;
    struct waits waits;
    char *body = mem_zero(1, 10 * MIB);
    char key[8];
    init(&waits);
    memset(body, 'x', 10 * MIB);
    large.body = str_of(body, 10 * MIB);
    for (int i = 0; i < 8; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        assert_int_equal(
            replays_claim(replays, str_from(key), STR("r"), 0, &waits.waiter, &run, &answer),
            REPLAY_RUN);
        replays_end(replays, run, &large, 0);
    }
    assert_int_equal(
        replays_claim(replays, STR("k7"), STR("r"), 0, &waits.waiter, &run, &answer),
        REPLAY_ANSWERED);
    assert_int_equal(
        replays_claim(replays, STR("k0"), STR("r"), 0, &waits.waiter, &run, &answer),
        REPLAY_RUN);
    replays_end(replays, run, NULL, 0);
    replays_free(replays);
    free(body);
}

static void keys_have_a_grammar(void **state) {
    (void)state;
    struct err e;
    char longest[REPLAYS_KEY_MAX_BYTES + 1];
    memset(longest, 'k', sizeof(longest));
    assert_true(replays_check_key(STR("a b~"), &e));
    assert_true(replays_check_key(str_of(longest, REPLAYS_KEY_MAX_BYTES), &e));
    assert_false(replays_check_key(str_of(longest, REPLAYS_KEY_MAX_BYTES + 1), &e));
    assert_false(replays_check_key(STR(""), &e));
    assert_false(replays_check_key(STR("a\tb"), &e));
    assert_false(replays_check_key(STR("\xc3\xa9"), &e));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_second_waits_and_the_third_gets_it_again),
        cmocka_unit_test(a_key_that_is_given_back_can_be_claimed),
        cmocka_unit_test(answers_are_bounded_and_the_oldest_goes_first),
        cmocka_unit_test(keys_have_a_grammar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
