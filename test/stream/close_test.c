#include "stream/close.h"

#include "helper/assert_str.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void only_the_moves_of_the_table_are_allowed(void **state) {
    (void)state;
    static const bool allowed[CLOSE_STATE_COUNT][CLOSE_STATE_COUNT] = {
        [CLOSE_OPENING] = {[CLOSE_ESTABLISHED] = true, [CLOSE_CLOSING] = true},
        [CLOSE_ESTABLISHED] = {[CLOSE_CLOSING] = true},
        [CLOSE_CLOSING] = {[CLOSE_CLOSED] = true},
    };
    for (enum close_state from = 0; from < CLOSE_STATE_COUNT; from++) {
        for (enum close_state to = 0; to < CLOSE_STATE_COUNT; to++) {
            assert_int_equal(states_allow(close_states, from, to), allowed[from][to]);
        }
    }
}

/* C1 to C10, K2, K3, K9, K20: every mode and every cause, established and not. The failure's
 * own code is NOT_FOUND in all of them. */
static const struct {
    enum close_mode mode;
    enum close_cause cause;
    enum close_frame last;
    enum err_code status, opening_status;
} endings[] = {
    /* clang-format off */
    {CLOSE_SINGLE,       CAUSE_FINISHED, FRAME_REPLY,    ERR_NONE,               ERR_NONE},
    {CLOSE_SINGLE,       CAUSE_FAILED,   FRAME_NONE,     ERR_NOT_FOUND,          ERR_NOT_FOUND},
    {CLOSE_SINGLE,       CAUSE_LEFT,     FRAME_NONE,     ERR_CANCELLED,          ERR_CANCELLED},
    {CLOSE_SINGLE,       CAUSE_DEADLINE, FRAME_NONE,     ERR_DEADLINE_EXCEEDED,  ERR_DEADLINE_EXCEEDED},
    {CLOSE_SINGLE,       CAUSE_STALLED,  FRAME_NONE,     ERR_RESOURCE_EXHAUSTED, ERR_RESOURCE_EXHAUSTED},
    {CLOSE_SINGLE,       CAUSE_STOPPING, FRAME_NONE,     ERR_CANCELLED,          ERR_CANCELLED},
    {CLOSE_DONE,         CAUSE_FINISHED, FRAME_DONE,     ERR_NONE,               ERR_NONE},
    {CLOSE_DONE,         CAUSE_FAILED,   FRAME_DONE,     ERR_NONE,               ERR_NOT_FOUND},
    {CLOSE_DONE,         CAUSE_LEFT,     FRAME_NONE,     ERR_CANCELLED,          ERR_CANCELLED},
    {CLOSE_DONE,         CAUSE_DEADLINE, FRAME_NONE,     ERR_DEADLINE_EXCEEDED,  ERR_DEADLINE_EXCEEDED},
    {CLOSE_DONE,         CAUSE_STALLED,  FRAME_NONE,     ERR_RESOURCE_EXHAUSTED, ERR_RESOURCE_EXHAUSTED},
    {CLOSE_DONE,         CAUSE_STOPPING, FRAME_NONE,     ERR_CANCELLED,          ERR_CANCELLED},
    {CLOSE_TERMINAL,     CAUSE_FINISHED, FRAME_TERMINAL, ERR_NONE,               ERR_NONE},
    {CLOSE_TERMINAL,     CAUSE_FAILED,   FRAME_TERMINAL, ERR_NONE,               ERR_NOT_FOUND},
    {CLOSE_TERMINAL,     CAUSE_LEFT,     FRAME_NONE,     ERR_CANCELLED,          ERR_CANCELLED},
    {CLOSE_TERMINAL,     CAUSE_DEADLINE, FRAME_NONE,     ERR_DEADLINE_EXCEEDED,  ERR_DEADLINE_EXCEEDED},
    {CLOSE_TERMINAL,     CAUSE_STALLED,  FRAME_NONE,     ERR_RESOURCE_EXHAUSTED, ERR_RESOURCE_EXHAUSTED},
    {CLOSE_TERMINAL,     CAUSE_STOPPING, FRAME_NONE,     ERR_CANCELLED,          ERR_CANCELLED},
    {CLOSE_EOF,          CAUSE_FINISHED, FRAME_EOF,      ERR_NONE,               ERR_NONE},
    {CLOSE_EOF,          CAUSE_FAILED,   FRAME_NONE,     ERR_NOT_FOUND,          ERR_NOT_FOUND},
    {CLOSE_EOF,          CAUSE_LEFT,     FRAME_NONE,     ERR_CANCELLED,          ERR_CANCELLED},
    {CLOSE_EOF,          CAUSE_DEADLINE, FRAME_NONE,     ERR_DEADLINE_EXCEEDED,  ERR_DEADLINE_EXCEEDED},
    {CLOSE_EOF,          CAUSE_STALLED,  FRAME_NONE,     ERR_RESOURCE_EXHAUSTED, ERR_RESOURCE_EXHAUSTED},
    {CLOSE_EOF,          CAUSE_STOPPING, FRAME_NONE,     ERR_CANCELLED,          ERR_CANCELLED},
    {CLOSE_SUBSCRIPTION, CAUSE_FINISHED, FRAME_NONE,     ERR_CANCELLED,          ERR_NONE},
    {CLOSE_SUBSCRIPTION, CAUSE_FAILED,   FRAME_NONE,     ERR_NOT_FOUND,          ERR_NOT_FOUND},
    {CLOSE_SUBSCRIPTION, CAUSE_LEFT,     FRAME_NONE,     ERR_CANCELLED,          ERR_CANCELLED},
    {CLOSE_SUBSCRIPTION, CAUSE_DEADLINE, FRAME_NONE,     ERR_DEADLINE_EXCEEDED,  ERR_DEADLINE_EXCEEDED},
    {CLOSE_SUBSCRIPTION, CAUSE_STALLED,  FRAME_NONE,     ERR_RESOURCE_EXHAUSTED, ERR_RESOURCE_EXHAUSTED},
    {CLOSE_SUBSCRIPTION, CAUSE_STOPPING, FRAME_NONE,     ERR_CANCELLED,          ERR_CANCELLED},
    /* clang-format on */
};

static void an_established_stream_ends_as_its_mode_promises(void **state) {
    (void)state;
    assert_int_equal(ARRAY_LEN(endings), CLOSE_MODE_COUNT * CAUSE_COUNT);
    for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
        struct close close;
        close_init(&close, endings[i].mode);
        close_establish(&close);
        struct close_ending ending = close_decide(&close, endings[i].cause, ERR_NOT_FOUND);
        assert_int_equal(ending.last, endings[i].last);
        assert_int_equal(ending.status, endings[i].status);
        if (ending.last != FRAME_NONE) close_frame(&close, ending.last);
        close_end(&close);
        assert_int_equal(close.state, CLOSE_CLOSED);
    }
}

static void before_it_is_established_a_failure_is_a_status(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
        if (endings[i].cause == CAUSE_FINISHED) continue;
        struct close close;
        close_init(&close, endings[i].mode);
        struct close_ending ending = close_decide(&close, endings[i].cause, ERR_NOT_FOUND);
        assert_int_equal(ending.last, FRAME_NONE);
        assert_int_equal(ending.status, endings[i].opening_status);
        close_end(&close);
    }
}

static void a_failure_without_a_code_is_still_no_success(void **state) {
    (void)state;
    struct close close;
    close_init(&close, CLOSE_EOF);
    close_establish(&close);
    assert_int_equal(close_decide(&close, CAUSE_FAILED, ERR_NONE).status, ERR_UNKNOWN);
}

static void only_the_first_decision_counts(void **state) {
    (void)state;
    struct close close;
    close_init(&close, CLOSE_DONE);
    close_establish(&close);
    close_decide(&close, CAUSE_FINISHED, ERR_NONE);
    struct close_ending ending = close_decide(&close, CAUSE_STOPPING, ERR_NONE);
    assert_int_equal(ending.last, FRAME_DONE);
    assert_int_equal(ending.status, ERR_NONE);
}

static void a_peer_that_left_needs_no_last_frame(void **state) {
    (void)state;
    struct close close;
    close_init(&close, CLOSE_DONE);
    close_establish(&close);
    close_decide(&close, CAUSE_FINISHED, ERR_NONE);
    assert_int_equal(close_decide(&close, CAUSE_LEFT, ERR_NONE).last, FRAME_NONE);
    close_end(&close);
}

/* --- what must never be ------------------------------------------------------------------- */

struct attempt {
    enum close_mode mode;
    enum close_state at; /* reached with CAUSE_FINISHED */
    enum close_frame frame;
};

static void try_frame(const struct attempt *attempt) {
    struct close close;
    close_init(&close, attempt->mode);
    if (attempt->at > CLOSE_OPENING) close_establish(&close);
    if (attempt->at > CLOSE_ESTABLISHED) {
        struct close_ending ending = close_decide(&close, CAUSE_FINISHED, ERR_NONE);
        if (attempt->at > CLOSE_CLOSING) {
            if (ending.last != FRAME_NONE) close_frame(&close, ending.last);
            close_end(&close);
        }
    }
    close_frame(&close, attempt->frame);
}

static void close_too_early(const struct attempt *attempt) {
    struct close close;
    close_init(&close, attempt->mode);
    close_establish(&close);
    close_decide(&close, CAUSE_FINISHED, ERR_NONE);
    close_end(&close);
}

static void establish_twice(const struct attempt *attempt) {
    struct close close;
    close_init(&close, attempt->mode);
    close_establish(&close);
    close_establish(&close);
}

static void finish_before_the_beginning(const struct attempt *attempt) {
    struct close close;
    close_init(&close, attempt->mode);
    close_decide(&close, CAUSE_FINISHED, ERR_NONE);
}

/* Whether an assert stops `act`, in a process of its own. */
static bool aborts(void (*act)(const struct attempt *attempt), const struct attempt *attempt) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        if (!freopen("/dev/null", "w", stderr)) _exit(2);
        act(attempt);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static bool is_legal(const struct attempt *attempt) {
    static const enum close_frame finished[CLOSE_MODE_COUNT] = {
        FRAME_REPLY, FRAME_DONE, FRAME_TERMINAL, FRAME_EOF, FRAME_NONE};
    if (attempt->frame == FRAME_DATA) {
        return attempt->at == CLOSE_ESTABLISHED && attempt->mode != CLOSE_SINGLE;
    }
    return attempt->at == CLOSE_CLOSING && attempt->frame != FRAME_NONE &&
           attempt->frame == finished[attempt->mode];
}

static void a_frame_out_of_place_is_our_own_mistake(void **state) {
    (void)state;
    struct attempt attempt;
    for (attempt.mode = 0; attempt.mode < CLOSE_MODE_COUNT; attempt.mode++) {
        for (attempt.at = 0; attempt.at < CLOSE_STATE_COUNT; attempt.at++) {
            for (attempt.frame = 0; attempt.frame < FRAME_COUNT; attempt.frame++) {
                assert_int_equal(aborts(try_frame, &attempt), !is_legal(&attempt));
            }
        }
    }
}

static void a_close_out_of_place_is_our_own_mistake(void **state) {
    (void)state;
    struct attempt attempt = {.mode = CLOSE_DONE};
    assert_true(aborts(close_too_early, &attempt));
    assert_true(aborts(establish_twice, &attempt));
    assert_true(aborts(finish_before_the_beginning, &attempt));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_moves_of_the_table_are_allowed),
        cmocka_unit_test(an_established_stream_ends_as_its_mode_promises),
        cmocka_unit_test(before_it_is_established_a_failure_is_a_status),
        cmocka_unit_test(a_failure_without_a_code_is_still_no_success),
        cmocka_unit_test(only_the_first_decision_counts),
        cmocka_unit_test(a_peer_that_left_needs_no_last_frame),
        cmocka_unit_test(a_frame_out_of_place_is_our_own_mistake),
        cmocka_unit_test(a_close_out_of_place_is_our_own_mistake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
