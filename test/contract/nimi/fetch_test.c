/* Which part of an artifact is requested, and under which host it is found. */
#include "contract/nimi/fetch.h"

#include "helper/assert_str.h"

#include <stdio.h>

static void assert_range(const char *header, uint64_t size, const char *expected) {
    static const char *const kinds[] = {"whole", "part", "outside"};
    uint64_t first = 0, last = 0;
    char seen[64];
    struct str asked = header ? str_from(header) : (struct str){NULL, 0};
    enum fetch_range range = fetch_range(asked, size, &first, &last);
    snprintf(seen, sizeof(seen), "%s %d-%d", kinds[range], (int)first, (int)last);
    assert_string_equal(seen, expected);
}

static void one_range_is_read_and_what_is_no_such_form_is_the_whole(void **state) {
    (void)state;
    assert_range("bytes=0-0", 10, "part 0-0");
    assert_range("bytes=2-4", 10, "part 2-4");
    assert_range("Bytes=2-", 10, "part 2-9");
    assert_range("bytes=2-99", 10, "part 2-9");
    assert_range("bytes=-3", 10, "part 7-9");
    assert_range("bytes=-99", 10, "part 0-9");
    assert_range("bytes=9-18446744073709551615", 10, "part 9-9");
    assert_range("bytes=10-", 10, "outside 0-0");
    assert_range("bytes=-0", 10, "outside 0-0");
    assert_range("bytes=0-", 0, "outside 0-0");
    static const char *const others[] = {NULL,
                                         "",
                                         "bytes",
                                         "bytes=",
                                         "bytes=-",
                                         "bytes=3",
                                         "bytes=4-3",
                                         "bytes=1-2,4-5",
                                         "bytes=a-b",
                                         "bytes=--3",
                                         "bytes=+1-2",
                                         "bytes=1-+2",
                                         "items=1-2",
                                         "bytes=1-2-3",
                                         "bytes=99999999999999999999-"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) assert_range(others[i], 10, "whole 0-0");
}

static void a_host_is_one_that_may_stand_in_an_address(void **state) {
    (void)state;
    assert_str(fetch_host(STR("127.0.0.1:46372")), "127.0.0.1");
    assert_str(fetch_host(STR("example.org")), "example.org");
    assert_str(fetch_host(STR("[::1]:80")), "[::1]");
    assert_str(fetch_host(STR(":46372")), "");
    static const char *const others[] = {"",    "a b:1", "[]:1",     "[::1",          "a/b",
                                         "a@b", "\"",    "a\r\nb:1", "[fe80::1%25]:1"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_str(fetch_host(str_from(others[i])), "");
}

static void no_two_tokens_are_alike(void **state) {
    (void)state;
    char one[ARTIFACT_TOKEN_BYTES], other[ARTIFACT_TOKEN_BYTES];
    fetch_token(one);
    fetch_token(other);
    assert_memory_not_equal(one, other, sizeof(one));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_range_is_read_and_what_is_no_such_form_is_the_whole),
        cmocka_unit_test(a_host_is_one_that_may_stand_in_an_address),
        cmocka_unit_test(no_two_tokens_are_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
