/* Which addresses untrusted URLs may name (checks.md X1). */
#include "client/http.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* Both ends of every range that is refused, and its neighbours outside. */
static const struct {
    const char *address;
    bool is_public;
} cases[] = {
    {"0.0.0.0", false},
    {"0.255.255.255", false},
    {"1.0.0.0", true},
    {"9.255.255.255", true},
    {"10.0.0.0", false},
    {"10.255.255.255", false},
    {"11.0.0.0", true},
    {"100.63.255.255", true},
    {"100.64.0.0", false},
    {"100.127.255.255", false},
    {"100.128.0.0", true},
    {"126.255.255.255", true},
    {"127.0.0.0", false},
    {"127.0.0.1", false},
    {"127.255.255.255", false},
    {"128.0.0.0", true},
    {"168.63.129.15", true},
    {"168.63.129.16", false},
    {"168.63.129.17", true},
    {"169.253.255.255", true},
    {"169.254.0.0", false},
    {"169.254.169.254", false},
    {"169.254.255.255", false},
    {"169.255.0.0", true},
    {"172.15.255.255", true},
    {"172.16.0.0", false},
    {"172.31.255.255", false},
    {"172.32.0.0", true},
    {"191.255.255.255", true},
    {"192.0.0.0", false},
    {"192.0.0.255", false},
    {"192.0.1.0", true},
    {"192.0.1.255", true},
    {"192.0.2.0", false},
    {"192.0.2.255", false},
    {"192.0.3.0", true},
    {"192.88.98.255", true},
    {"192.88.99.0", false},
    {"192.88.99.255", false},
    {"192.88.100.0", true},
    {"192.167.255.255", true},
    {"192.168.0.0", false},
    {"192.168.255.255", false},
    {"192.169.0.0", true},
    {"198.17.255.255", true},
    {"198.18.0.0", false},
    {"198.19.255.255", false},
    {"198.20.0.0", true},
    {"198.51.99.255", true},
    {"198.51.100.0", false},
    {"198.51.100.255", false},
    {"198.51.101.0", true},
    {"203.0.112.255", true},
    {"203.0.113.0", false},
    {"203.0.113.255", false},
    {"203.0.114.0", true},
    {"223.255.255.255", true},
    {"224.0.0.0", false},
    {"239.255.255.255", false},
    {"240.0.0.0", false},
    {"255.255.255.255", false},
    {"8.8.8.8", true},

    {"::", false},
    {"::1", false},
    {"::7f00:1", false},
    {"::808:808", false},
    {"::ffff:127.0.0.1", false},
    {"::ffff:10.0.0.1", false},
    {"::ffff:8.8.8.8", false},
    {"::ffff:0:127.0.0.1", false},
    {"64:ff9b::7f00:1", false},
    {"64:ff9b::808:808", false},
    {"64:ff9b:1::1", false},
    {"100::1", false},
    {"1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false},
    {"2000::", true},
    {"2000:ffff::", true},
    {"2001::", false},
    {"2001:0:4136:e378:8000:63bf:3fff:fdd2", false},
    {"2001:2::1", false},
    {"2001:10::1", false},
    {"2001:20::1", false},
    {"2001:1ff:ffff::", false},
    {"2001:200::", true},
    {"2001:db7:ffff::", true},
    {"2001:db8::", false},
    {"2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", false},
    {"2001:db9::", true},
    {"2001:ffff::", true},
    {"2002::", false},
    {"2002:7f00:1::", false},
    {"2002:808:808::", false},
    {"2002:ffff::", false},
    {"2003::", true},
    {"2001:4860:4860::8888", true},
    {"2606:4700::6810:84e5", true},
    {"3ffe:ffff::", true},
    {"3fff::", false},
    {"3fff:fff:ffff::", false},
    {"3fff:1000::", true},
    {"3fff:ffff::", true},
    {"4000::", false},
    {"5f00::1", false},
    {"fbff::", false},
    {"fc00::", false},
    {"fd00::1", false},
    {"fdff:ffff::", false},
    {"fe80::1", false},
    {"febf::1", false},
    {"fec0::1", false},
    {"ff02::1", false},
    {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false},
};

static void only_addresses_of_the_internet_itself_are_public(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        unsigned char bytes[16];
        bool six = strchr(cases[i].address, ':') != NULL;
        assert_int_equal(inet_pton(six ? AF_INET6 : AF_INET, cases[i].address, bytes), 1);
        if (http_address_is_public(bytes, six ? 16 : 4) != cases[i].is_public)
            fail_msg("%s is judged wrongly", cases[i].address);
    }
}

static void bytes_that_are_no_address_are_not_public(void **state) {
    (void)state;
    static const unsigned char bytes[32] = {8, 8, 8, 8, 8, 8, 8, 8};
    for (size_t len = 0; len <= sizeof(bytes); len++) {
        if (len != 4) assert_false(http_address_is_public(bytes, len));
    }
}

/* Both ends of each range, its neighbours, and the IPv6 forms of an IPv4 address. */
static void addresses_that_hold_credentials_are_recognised(void **state) {
    (void)state;
    static const struct {
        const char *address;
        bool link_local;
    } rows[] = {
        {"169.253.255.255", false},
        {"169.254.0.0", true},
        {"169.254.169.254", true},
        {"169.254.255.255", true},
        {"169.255.0.0", false},
        {"100.100.100.199", false},
        {"100.100.100.200", true},
        {"100.100.100.201", false},
        {"168.63.129.15", false},
        {"168.63.129.16", true},
        {"168.63.129.17", false},
        {"192.0.0.192", true},
        {"192.0.0.193", false},
        {"127.0.0.1", false},
        {"10.0.0.1", false},
        {"192.168.0.1", false},
        {"8.8.8.8", false},
        {"fe7f:ffff::", false},
        {"fe80::", true},
        {"fe80::1", true},
        {"febf:ffff::", true},
        {"fec0::", false},
        {"fbff:ffff::", false},
        {"fc00::", true},
        {"fd00:ec2::254", true},
        {"fdff:ffff::", true},
        {"fe00::", false},
        {"::1", false},
        {"2001:4860::8888", false},
        {"::ffff:169.254.169.254", true},
        {"::ffff:8.8.8.8", false},
        {"::169.254.169.254", true},
        {"::ffff:0:169.254.169.254", true},
        {"64:ff9b::169.254.169.254", true},
        {"64:ff9b:1::169.254.169.254", true},
        {"64:ff9b::8.8.8.8", false},
        {"2002:a9fe:a9fe::1", true},
        {"2002:0808:0808::1", false},
        {"::ffff:100.100.100.200", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        unsigned char bytes[16];
        bool six = strchr(rows[i].address, ':') != NULL;
        size_t len = six ? 16 : 4;
        assert_int_equal(inet_pton(six ? AF_INET6 : AF_INET, rows[i].address, bytes), 1);
        if (http_address_is_link_local(bytes, len) != rows[i].link_local ||
            http_address_is_in_reach(HTTP_NOT_LINK_LOCAL, bytes, len) == rows[i].link_local ||
            !http_address_is_in_reach(HTTP_ANYWHERE, bytes, len))
            fail_msg("%s is judged wrongly", rows[i].address);
        /* The public are a part of those that may be asked. */
        if (http_address_is_in_reach(HTTP_PUBLIC_ONLY, bytes, len) && rows[i].link_local)
            fail_msg("%s is public and link-local", rows[i].address);
    }
}

static void the_text_of_a_url_may_say_that_it_is_out_of_reach(void **state) {
    (void)state;
    static const struct {
        const char *url;
        bool is_public, is_anywhere;
    } rows[] = {
        {"https://a.example/x", true, true},
        {"http://93.184.216.34/", true, true},
        {"http://localhost/", false, true},
        {"http://LOCALHOST:8080/", false, true},
        {"http://a.localhost/", false, true},
        {"http://127.0.0.1/", false, true},
        {"http://2130706433/", false, true},
        {"http://0x7f.1/", false, true},
        {"http://10.1.2.3/", false, true},
        {"http://169.254.169.254/", false, true},
        {"http://[::1]:80/", false, true},
        {"http://[::ffff:10.0.0.1]/", false, true},
        {"https://user@a.example/", false, true},
        {"ftp://a.example/", false, false},
        {"", false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct str url = str_from(rows[i].url);
        if (http_url_is_in_reach(HTTP_PUBLIC_ONLY, url) != rows[i].is_public ||
            http_url_is_in_reach(HTTP_ANYWHERE, url) != rows[i].is_anywhere)
            fail_msg("%s", rows[i].url);
    }
    assert_false(http_url_is_in_reach(HTTP_NOT_LINK_LOCAL, STR("http://169.254.169.254/")));
    assert_true(http_url_is_in_reach(HTTP_NOT_LINK_LOCAL, STR("http://localhost/")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_addresses_of_the_internet_itself_are_public),
        cmocka_unit_test(bytes_that_are_no_address_are_not_public),
        cmocka_unit_test(the_text_of_a_url_may_say_that_it_is_out_of_reach),
        cmocka_unit_test(addresses_that_hold_credentials_are_recognised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
