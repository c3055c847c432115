/* Addresses as people write them. */
#include "server/address.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these before it. */
#include <cmocka.h>
#include <netinet/in.h>

static void assert_reads(const char *text, const char *expected, bool loopback) {
    struct address address;
    struct err e;
    char printed[64];
    assert_true(address_parse(str_from(text), &address, &e));
    address_print(&address, printed, sizeof(printed));
    assert_string_equal(printed, expected);
    assert_int_equal(address_is_loopback(&address), loopback);
}

static void every_form_of_an_address_is_read(void **state) {
    (void)state;
    assert_reads("127.0.0.1:8080", "127.0.0.1:8080", true);
    assert_reads("127.9.9.9:0", "127.9.9.9:0", true);
    assert_reads("0.0.0.0:80", "0.0.0.0:80", false);
    assert_reads("[::1]:65535", "[::1]:65535", true);
    assert_reads("[::]:1", "[::]:1", false);
    assert_reads(":8080", "[::]:8080", false);
    assert_reads("localhost:1", "127.0.0.1:1", true);
    assert_reads("unix:/tmp/a", "unix", true);
}

static void a_malformed_address_is_refused_with_the_fix(void **state) {
    (void)state;
    static const char *const rows[] = {
        "",          "8080",          "a",          "127.0.0.1", "127.0.0.1:",
        "1.2.3.4:x", "1.2.3.4:65536", "1.2.3.4:-1", "::1:80",    "[::1]",
        "unix:",     "1.2.3.4:+1"};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct address address;
        struct err e;
        assert_false(address_parse(str_from(rows[i]), &address, &e));
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    }
    char path[300] = "unix:/";
    memset(path + 6, 'x', 200);
    struct address address;
    struct err e;
    assert_false(address_parse(str_from(path), &address, &e));
}

static void an_ipv4_peer_of_a_socket_for_both_families_looks_like_one(void **state) {
    (void)state;
    struct address address;
    struct err e;
    char printed[64];
    assert_true(address_parse(STR("[::ffff:127.0.0.1]:9"), &address, &e));
    address_print(&address, printed, sizeof(printed));
    assert_string_equal(printed, "127.0.0.1:9");
    assert_true(address_is_loopback(&address));
    assert_true(address_parse(STR("[::ffff:10.0.0.1]:9"), &address, &e));
    assert_false(address_is_loopback(&address));
}

static struct address_owner owner_of(const char *text) {
    struct address address;
    struct err e;
    assert_true(address_parse(str_from(text), &address, &e));
    return address_owner(&address);
}

static bool same_owner(const char *a, const char *b) {
    struct address_owner left = owner_of(a), right = owner_of(b);
    return left.len == right.len && memcmp(left.bytes, right.bytes, left.len) == 0;
}

static void a_peer_is_its_address_or_the_half_of_it_that_one_host_has(void **state) {
    (void)state;
    assert_true(same_owner("10.0.0.1:80", "10.0.0.1:81"));
    assert_true(same_owner("10.0.0.1:80", "[::ffff:10.0.0.1]:80"));
    assert_false(same_owner("10.0.0.1:80", "10.0.0.2:80"));
    assert_true(same_owner("[2001:db8::1]:80", "[2001:db8::2]:80"));
    assert_false(same_owner("[2001:db8::1]:80", "[2001:db8:0:1::1]:80"));
    assert_int_equal(owner_of("unix:/tmp/x").len, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_of_an_address_is_read),
        cmocka_unit_test(a_malformed_address_is_refused_with_the_fix),
        cmocka_unit_test(a_peer_is_its_address_or_the_half_of_it_that_one_host_has),
        cmocka_unit_test(an_ipv4_peer_of_a_socket_for_both_families_looks_like_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
