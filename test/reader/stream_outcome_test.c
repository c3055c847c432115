/* The table of outcomes: each row of contracts/nimi.md 7.2, then every input there is. */
#include "reader/stream_outcome.h"

#include "helper/assert_str.h"

enum { THEIRS, OURS };
enum { BARE, WITH_REASON, WITH_GOOD_REASON };

struct row {
    enum close_mode mode;
    enum stream_outcome_last last;
    enum err_code status;
    int by, reason;
    enum stream_outcome outcome;
    enum stream_outcome_repeat repeat;
    enum stream_outcome_wait wait;
    bool snapshot;
};

#define A CLOSE_DONE
#define B CLOSE_TERMINAL
#define C CLOSE_EOF
#define D CLOSE_SUBSCRIPTION

static const struct row rows[] = {
    /* clang-format off */
    {A, LAST_DONE,      ERR_NONE,               THEIRS, BARE, STREAM_COMPLETED,      REPEAT_NO,      WAIT_NONE,    false},
    {A, LAST_FAILED,    ERR_NONE,               THEIRS, WITH_REASON, STREAM_FAILED,  REPEAT_UNKNOWN, WAIT_NONE,    false},
    {A, LAST_FAILED,    ERR_NONE,               THEIRS, WITH_GOOD_REASON, STREAM_FAILED, REPEAT_UNKNOWN, WAIT_BACKOFF, false},
    {A, LAST_DONE,      ERR_UNAVAILABLE,        THEIRS, BARE, STREAM_COMPLETED,      REPEAT_NO,      WAIT_NONE,    false},
    {B, LAST_DONE,      ERR_RESOURCE_EXHAUSTED, THEIRS, BARE, STREAM_COMPLETED,      REPEAT_NO,      WAIT_NONE,    false},
    {C, LAST_DONE,      ERR_CANCELLED,          THEIRS, BARE, STREAM_COMPLETED,      REPEAT_NO,      WAIT_NONE,    false},
    {A, LAST_NOTHING,   ERR_FAILED_PRECONDITION,THEIRS, WITH_REASON, STREAM_REFUSED, REPEAT_NO,      WAIT_NONE,    false},
    {A, LAST_NOTHING,   ERR_UNAVAILABLE,        THEIRS, WITH_GOOD_REASON, STREAM_REFUSED, REPEAT_YES, WAIT_BACKOFF, false},
    {A, LAST_NOTHING,   ERR_INTERNAL,           THEIRS, BARE, STREAM_UNKNOWN,        REPEAT_UNKNOWN, WAIT_NONE,    false},
    {A, LAST_NOTHING,   ERR_UNAVAILABLE,        THEIRS, BARE, STREAM_UNKNOWN,        REPEAT_UNKNOWN, WAIT_NONE,    false},
    {A, LAST_NOTHING,   ERR_NONE,               THEIRS, BARE, STREAM_TRUNCATED,      REPEAT_UNKNOWN, WAIT_NONE,    false},
    {A, LAST_DATA,      ERR_NONE,               THEIRS, BARE, STREAM_TRUNCATED,      REPEAT_UNKNOWN, WAIT_NONE,    false},
    {A, LAST_DATA,      ERR_CANCELLED,          THEIRS, BARE, STREAM_PREEMPTED,      REPEAT_UNKNOWN, WAIT_READY,   false},
    {A, LAST_DATA,      ERR_RESOURCE_EXHAUSTED, THEIRS, BARE, STREAM_SLOW_CONSUMER,  REPEAT_UNKNOWN, WAIT_NONE,    false},
    {A, LAST_DATA,      ERR_DEADLINE_EXCEEDED,  THEIRS, BARE, STREAM_TIMED_OUT,      REPEAT_UNKNOWN, WAIT_NONE,    false},
    {A, LAST_NOTHING,   ERR_DEADLINE_EXCEEDED,  THEIRS, WITH_GOOD_REASON, STREAM_TIMED_OUT, REPEAT_UNKNOWN, WAIT_NONE, false},
    {A, LAST_DATA,      ERR_UNAVAILABLE,        THEIRS, BARE, STREAM_BROKEN,         REPEAT_UNKNOWN, WAIT_NONE,    false},
    {A, LAST_DATA,      ERR_INTERNAL,           THEIRS, BARE, STREAM_BROKEN,         REPEAT_UNKNOWN, WAIT_NONE,    false},
    {B, LAST_DONE,      ERR_NONE,               THEIRS, BARE, STREAM_COMPLETED,      REPEAT_NO,      WAIT_NONE,    false},
    {B, LAST_FAILED,    ERR_NONE,               THEIRS, BARE, STREAM_FAILED,         REPEAT_NO,      WAIT_NONE,    false},
    {B, LAST_CANCELLED, ERR_NONE,               THEIRS, BARE, STREAM_WORK_CANCELLED, REPEAT_NO,      WAIT_NONE,    false},
    {B, LAST_DATA,      ERR_NONE,               THEIRS, BARE, STREAM_TRUNCATED,      REPEAT_YES,     WAIT_BACKOFF, true},
    {B, LAST_DATA,      ERR_CANCELLED,          THEIRS, BARE, STREAM_PREEMPTED,      REPEAT_YES,     WAIT_READY,   true},
    {B, LAST_DATA,      ERR_RESOURCE_EXHAUSTED, THEIRS, BARE, STREAM_SLOW_CONSUMER,  REPEAT_YES,     WAIT_NONE,    true},
    {B, LAST_DATA,      ERR_UNAVAILABLE,        THEIRS, BARE, STREAM_BROKEN,         REPEAT_YES,     WAIT_BACKOFF, true},
    {B, LAST_DATA,      ERR_INTERNAL,           THEIRS, BARE, STREAM_BROKEN,         REPEAT_YES,     WAIT_BACKOFF, true},
    {B, LAST_NOTHING,   ERR_UNKNOWN,            THEIRS, BARE, STREAM_BROKEN,         REPEAT_YES,     WAIT_BACKOFF, true},
    {B, LAST_NOTHING,   ERR_NOT_FOUND,          THEIRS, BARE, STREAM_REFUSED,        REPEAT_NO,      WAIT_NONE,    false},
    {B, LAST_NOTHING,   ERR_PERMISSION_DENIED,  THEIRS, BARE, STREAM_REFUSED,        REPEAT_NO,      WAIT_NONE,    false},
    {C, LAST_NOTHING,   ERR_UNAUTHENTICATED,    THEIRS, BARE, STREAM_REFUSED,        REPEAT_NO,      WAIT_NONE,    false},
    {C, LAST_NOTHING,   ERR_INVALID_ARGUMENT,   THEIRS, BARE, STREAM_REFUSED,        REPEAT_NO,      WAIT_NONE,    false},
    {C, LAST_DONE,      ERR_NONE,               THEIRS, BARE, STREAM_COMPLETED,      REPEAT_NO,      WAIT_NONE,    false},
    {C, LAST_INVALID,   ERR_NONE,               THEIRS, BARE, STREAM_INCOMPLETE,     REPEAT_YES,     WAIT_NONE,    false},
    {C, LAST_DATA,      ERR_NONE,               THEIRS, BARE, STREAM_INCOMPLETE,     REPEAT_YES,     WAIT_BACKOFF, false},
    {C, LAST_NOTHING,   ERR_NONE,               THEIRS, BARE, STREAM_INCOMPLETE,     REPEAT_YES,     WAIT_BACKOFF, false},
    {C, LAST_DATA,      ERR_CANCELLED,          THEIRS, BARE, STREAM_INCOMPLETE,     REPEAT_YES,     WAIT_READY,   false},
    {D, LAST_DATA,      ERR_CANCELLED,          THEIRS, BARE, STREAM_DISCONNECTED,   REPEAT_YES,     WAIT_READY,   false},
    {D, LAST_NOTHING,   ERR_CANCELLED,          THEIRS, WITH_REASON, STREAM_DISCONNECTED, REPEAT_YES, WAIT_READY,  false},
    {D, LAST_DATA,      ERR_NONE,               THEIRS, BARE, STREAM_DISCONNECTED,   REPEAT_YES,     WAIT_READY,   false},
    {D, LAST_DATA,      ERR_RESOURCE_EXHAUSTED, THEIRS, BARE, STREAM_SLOW_CONSUMER,  REPEAT_YES,     WAIT_NONE,    true},
    {D, LAST_DATA,      ERR_UNAVAILABLE,        THEIRS, BARE, STREAM_BROKEN,         REPEAT_YES,     WAIT_BACKOFF, false},
    {D, LAST_DATA,      ERR_INTERNAL,           THEIRS, BARE, STREAM_BROKEN,         REPEAT_YES,     WAIT_BACKOFF, false},
    {D, LAST_NOTHING,   ERR_UNKNOWN,            THEIRS, BARE, STREAM_BROKEN,         REPEAT_YES,     WAIT_BACKOFF, false},
    {D, LAST_DATA,      ERR_DEADLINE_EXCEEDED,  THEIRS, BARE, STREAM_BROKEN,         REPEAT_YES,     WAIT_BACKOFF, false},
    {D, LAST_NOTHING,   ERR_UNAUTHENTICATED,    THEIRS, BARE, STREAM_REFUSED,        REPEAT_NO,      WAIT_NONE,    false},
    {D, LAST_NOTHING,   ERR_PERMISSION_DENIED,  THEIRS, BARE, STREAM_REFUSED,        REPEAT_NO,      WAIT_NONE,    false},
    {D, LAST_NOTHING,   ERR_NOT_FOUND,          THEIRS, BARE, STREAM_REFUSED,        REPEAT_NO,      WAIT_NONE,    false},
    {D, LAST_NOTHING,   ERR_INVALID_ARGUMENT,   THEIRS, BARE, STREAM_REFUSED,        REPEAT_NO,      WAIT_NONE,    false},
    {D, LAST_NOTHING,   ERR_UNIMPLEMENTED,      THEIRS, BARE, STREAM_REFUSED,        REPEAT_NO,      WAIT_NONE,    false},
    {A, LAST_DATA,      ERR_CANCELLED,          OURS,   BARE, STREAM_CANCELLED,      REPEAT_UNKNOWN, WAIT_NONE,    false},
    {B, LAST_DATA,      ERR_CANCELLED,          OURS,   BARE, STREAM_CANCELLED,      REPEAT_YES,     WAIT_NONE,    false},
    {C, LAST_DATA,      ERR_CANCELLED,          OURS,   BARE, STREAM_CANCELLED,      REPEAT_YES,     WAIT_NONE,    false},
    {D, LAST_DATA,      ERR_CANCELLED,          OURS,   BARE, STREAM_CANCELLED,      REPEAT_YES,     WAIT_NONE,    false},
    /* clang-format on */
};

static void each_row_of_the_contract_has_its_outcome(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *row = &rows[i];
        const struct stream_outcome_close close = {.mode = row->mode,
                                                   .last = row->last,
                                                   .status = row->status,
                                                   .by_us = row->by == OURS,
                                                   .reasoned = row->reason != BARE,
                                                   .can_help = row->reason == WITH_GOOD_REASON};
        struct stream_outcome_advice advice = stream_outcome_decide(&close);
        bool same = advice.outcome == row->outcome && advice.repeat == row->repeat &&
                    advice.wait == row->wait && advice.snapshot == row->snapshot;
        if (!same)
            fail_msg("row %zu: " STR_FMT ", repeat " STR_FMT ", wait " STR_FMT, i,
                     STR_ARG(stream_outcome_name(advice.outcome)),
                     STR_ARG(stream_outcome_repeat_name(advice.repeat)),
                     STR_ARG(stream_outcome_wait_name(advice.wait)));
    }
}

/* What must hold of any input, whatever the rows say. */
static void check_any(const struct stream_outcome_close *close) {
    struct stream_outcome_advice advice = stream_outcome_decide(close);
    bool whole = close->last == LAST_DONE && close->mode != CLOSE_SUBSCRIPTION;
    assert_int_equal(advice.outcome == STREAM_COMPLETED, whole);
    if (advice.outcome == STREAM_DISCONNECTED) assert_int_equal(close->mode, D);
    if (advice.outcome == STREAM_INCOMPLETE) assert_int_equal(close->mode, C);
    /* An execution is repeated without asking only if it provably did not happen. */
    if (close->mode == A && advice.repeat == REPEAT_YES)
        assert_true(close->last == LAST_NOTHING && (close->never_seen || close->reasoned));
    /* Where events may have been missed there is something to fetch. */
    if (advice.snapshot) assert_true(close->mode == B || close->mode == D);
}

static void every_input_has_an_outcome_and_none_is_completed_without_its_frame(void **state) {
    (void)state;
    struct stream_outcome_close close = {0};
    for (unsigned mode = CLOSE_DONE; mode < CLOSE_MODE_COUNT; mode++) {
        for (unsigned last = 0; last < LAST_COUNT; last++) {
            for (unsigned status = 0; status <= ERR_UNAUTHENTICATED; status++) {
                for (unsigned facts = 0; facts < 16; facts++) {
                    close =
                        (struct stream_outcome_close){.mode = (enum close_mode)mode,
                                                      .last = (enum stream_outcome_last)last,
                                                      .status = (enum err_code)status,
                                                      .by_us = facts & 1,
                                                      .reasoned = facts & 2,
                                                      .never_seen = facts & 4,
                                                      .can_help = facts & 8};
                    check_any(&close);
                }
            }
        }
    }
}

static void missing_trailers_are_unavailable(void **state) {
    (void)state;
    assert_int_equal(stream_outcome_status(ERR_CANCELLED, true), ERR_CANCELLED);
    assert_int_equal(stream_outcome_status(ERR_CANCELLED, false), ERR_UNAVAILABLE);
    assert_int_equal(stream_outcome_status(ERR_INTERNAL, false), ERR_UNAVAILABLE);
    assert_int_equal(stream_outcome_status(ERR_TOO_LARGE, false), ERR_UNAVAILABLE);
    assert_int_equal(stream_outcome_status(ERR_RESOURCE_EXHAUSTED, false), ERR_UNAVAILABLE);
    assert_int_equal(stream_outcome_status(ERR_DEADLINE_EXCEEDED, false),
                     ERR_DEADLINE_EXCEEDED);
    assert_int_equal(stream_outcome_status(ERR_UNAUTHENTICATED, false), ERR_UNAUTHENTICATED);
    assert_int_equal(stream_outcome_status(ERR_NONE, false), ERR_NONE);
}

static void the_back_off_doubles_to_its_limit_and_is_shortened_by_less_than_half(void **state) {
    (void)state;
    static const uint64_t full[] = {200, 400, 800, 1600, 3000, 3000};
    for (unsigned i = 0; i < ARRAY_LEN(full); i++) {
        assert_int_equal(stream_outcome_backoff_ms(i + 1, 0), full[i]);
        for (uint64_t random = 1; random < 5000; random += 7) {
            uint64_t ms = stream_outcome_backoff_ms(i + 1, random);
            assert_true(ms <= full[i] && ms > full[i] / 2);
        }
    }
    assert_int_equal(stream_outcome_backoff_ms(UINT32_MAX, 0), STREAM_OUTCOME_BACKOFF_MAX_MS);
    assert_int_equal(stream_outcome_backoff_ms(0, 0), STREAM_OUTCOME_BACKOFF_FIRST_MS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_of_the_contract_has_its_outcome),
        cmocka_unit_test(every_input_has_an_outcome_and_none_is_completed_without_its_frame),
        cmocka_unit_test(missing_trailers_are_unavailable),
        cmocka_unit_test(the_back_off_doubles_to_its_limit_and_is_shortened_by_less_than_half),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
