/* Ids that sort by the time of their creation. */
#include "contract/nimi/ulid.h"

#include "base/clock.h"
#include "helper/assert_str.h"

#include <stdlib.h>

#define DIGITS "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

static int value_of(char digit) {
    const char *at = strchr(DIGITS, digit);
    assert_non_null(at);
    return (int)(at - DIGITS);
}

/* The first ten digits are the milliseconds. */
static int64_t time_of(const char *ulid) {
    int64_t time = 0;
    for (size_t i = 0; i < 10; i++) time = time * 32 + value_of(ulid[i]);
    return time;
}

static void an_id_says_when_it_was_made(void **state) {
    (void)state;
    for (int i = 0; i < 1000; i++) {
        char ulid[ULID_LEN + 1];
        int64_t before = clock_unix_ms();
        ulid_new(ulid);
        int64_t after = clock_unix_ms();
        assert_int_equal(strlen(ulid), ULID_LEN);
        for (size_t d = 0; d < ULID_LEN; d++) assert_in_range(value_of(ulid[d]), 0, 31);
        assert_in_range(time_of(ulid), before, after);
        assert_true(ulid[0] <= '7'); /* 128 bits in 26 digits of five */
    }
}

static int compare(const void *a, const void *b) {
    return memcmp(a, b, ULID_LEN);
}

static void no_two_are_the_same_and_all_digits_occur(void **state) {
    (void)state;
    enum { COUNT = 20000 };
    static char ids[COUNT][ULID_LEN + 1];
    bool seen[ULID_LEN][32] = {{false}};
    for (int i = 0; i < COUNT; i++) {
        ulid_new(ids[i]);
        for (size_t d = 0; d < ULID_LEN; d++) seen[d][value_of(ids[i][d])] = true;
    }
    for (size_t d = 10; d < ULID_LEN; d++) {
        for (int v = 0; v < 32; v++) assert_true(seen[d][v]);
    }
    qsort(ids, COUNT, sizeof(ids[0]), compare);
    for (int i = 1; i < COUNT; i++) assert_true(compare(ids[i - 1], ids[i]) != 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_says_when_it_was_made),
        cmocka_unit_test(no_two_are_the_same_and_all_digits_occur),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
