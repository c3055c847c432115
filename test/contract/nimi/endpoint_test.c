/* Which endpoints of providers are allowed. */
#include "contract/nimi/endpoint.h"

#include "helper/assert_str.h"

static void an_endpoint_is_https_or_near_and_never_link_local(void **state) {
    (void)state;
    static const struct {
        const char *url;
        bool far, near; /* safe without loopback, and with it */
    } rows[] = {
        {"https://api.vendor.example/v1", true, true},
        {"HTTPS://api.vendor.example", true, true},
        {"http://api.vendor.example/v1", false, false},
        {"ftp://api.vendor.example", false, false},
        {"api.vendor.example", false, false},
        {"https://", false, false},
        {"https:///v1", false, false},
        {"", false, false},
        {"http://localhost:11434/v1", false, true},
        {"http://LOCALHOST", false, true},
        {"http://127.0.0.1:8080", false, true},
        {"http://127.9.9.9/", false, true},
        {"http://[::1]:8080/v1", false, true},
        {"http://[::ffff:127.0.0.1]/", false, true},
        {"https://127.0.0.1/", true, true},
        {"http://127.vendor.example/", false, false}, /* a name, not an address */
        {"http://localhost.vendor.example/", false, false},
        {"http://localhost@vendor.example/", false, false},
        {"http://127.0.0.1@vendor.example/", false, false},
        {"http://vendor.example#@127.0.0.1/", false, false},
        {"http://vendor.example\\@127.0.0.1/", false, false},
        {"https://169.254.169.254/latest", false, false},
        {"https://user@169.254.169.254/", false, false},
        {"https://a@b@169.254.169.254:443/", false, false},
        {"http://169.254.1.1/", false, false},
        {"https://[fe80::1]/", false, false},
        {"https://[FE80::1%25eth0]/", false, false},
        {"https://[Febf::1]/", false, false},
        {"https://[fc00::1]/", false, false},
        {"https://[fdAB::1]:8443/", false, false},
        {"https://[::ffff:169.254.169.254]/", false, false},
        {"https://2852039166/v1", false, false}, /* 169.254.169.254 as one number */
        {"https://0xa9fea9fe/", false, false},
        {"https://0xA9.0xFE.0xA9.0xFE/", false, false},
        {"https://025177524776/", false, false},
        {"https://169.254.43518/", false, false},
        {"https://0251.0376.0251.0376:443/", false, false},
        {"https://[::ffff:a9fe:a9fe]/", false, false},
        {"https://[::a9fe:a9fe]/", false, false},
        {"https://[64:ff9b::a9fe:a9fe]/", false, false},
        {"https://[2002:a9fe:a9fe::1]/", false, false},
        {"https://[fd00:ec2::254]/", false, false},
        {"https://100.100.100.200/", false, false},
        {"https://168.63.129.16/", false, false},
        {"https://100.100.100.201/", true, true},
        {"https://169.253.255.255/", true, true},
        {"http://2130706433/", false, true}, /* 127.0.0.1 */
        {"http://127.1:8080/", false, true},
        {"https://[2001:db8::1]/", true, true},
        {"https://10.0.0.5/", true, true}, /* RFC 1918 is not in the contract's list */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct str url = str_from(rows[i].url);
        if (endpoint_is_safe(url, ENDPOINT_FAR_ONLY) != rows[i].far ||
            endpoint_is_safe(url, ENDPOINT_LOOPBACK_TOO) != rows[i].near)
            fail_msg("%s", rows[i].url);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_endpoint_is_https_or_near_and_never_link_local),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
