/* The parts of a URL, and where redirects lead. */
#include "client/url.h"

#include "helper/assert_str.h"

static void a_url_has_its_parts(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum url_kind kind;
        const char *host, *authority, *target;
        unsigned port;
        bool secure, user;
    } cases[] = {
        {"http://a", URL_FINE, "a", "a", "/", 80, false, false},
        {"HTTPS://A.b:8443/x?y#z", URL_FINE, "A.b", "A.b:8443", "/x?y", 8443, true, false},
        {"http://a:/x", URL_FINE, "a", "a", "/x", 80, false, false},
        {"http://[::1]:9/", URL_FINE, "::1", "[::1]:9", "/", 9, false, false},
        {"http://u:p@a/", URL_FINE, "a", "a", "/", 80, false, true},
        {"http://u@v@a?q", URL_FINE, "a", "a", "/?q", 80, false, true},
        {"http://a/b/../c/./d", URL_FINE, "a", "a", "/c/d", 80, false, false},
        {"http://a/../..", URL_FINE, "a", "a", "/", 80, false, false},
        {"http://", URL_BROKEN, "", "", "", 0, false, false},
        {"http:///x", URL_BROKEN, "", "", "", 0, false, false},
        {"http://a:0/", URL_BROKEN, "", "", "", 0, false, false},
        {"http://a:65536/", URL_BROKEN, "", "", "", 0, false, false},
        {"http://a:b/", URL_BROKEN, "", "", "", 0, false, false},
        {"http://[::1", URL_BROKEN, "", "", "", 0, false, false},
        {"http://a b/", URL_BROKEN, "", "", "", 0, false, false},
        {"http://a/ b", URL_RARE, "", "", "", 0, false, false},
        {"http://\xc3\xa4/", URL_RARE, "", "", "", 0, false, false},
        {"http://[fe80::1%25eth0]/", URL_RARE, "", "", "", 0, false, false},
        {"ftp://a/", URL_OTHER_SCHEME, "", "", "", 0, false, false},
        {"file:///etc/passwd", URL_OTHER_SCHEME, "", "", "", 0, false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct url url;
        struct buf target;
        enum url_kind kind = url_read(str_from(cases[i].text), &url);
        if (kind != cases[i].kind) fail_msg("%s: kind %d", cases[i].text, (int)kind);
        if (kind != URL_FINE) continue;
        buf_init(&target, KIB);
        url_append_target(&url, &target);
        assert_str(url.host, cases[i].host);
        assert_str(url.authority, cases[i].authority);
        assert_str(buf_str(&target), cases[i].target);
        assert_int_equal(url.port, cases[i].port);
        assert_int_equal(url.secure, cases[i].secure);
        assert_int_equal(url.user.at != NULL, cases[i].user);
        buf_done(&target);
    }
}

/* RFC 3986 5.4, and what servers send beside it. */
static void a_redirect_leads_where_its_reference_says(void **state) {
    (void)state;
    static const struct {
        const char *reference, *target;
    } cases[] = {
        {"g", "http://a/b/c/g"},
        {"./g", "http://a/b/c/g"},
        {"g/", "http://a/b/c/g/"},
        {"/g", "http://a/g"},
        {"//g", "http://g"},
        {"?y", "http://a/b/c/d;p?y"},
        {"g?y", "http://a/b/c/g?y"},
        {"#s", "http://a/b/c/d;p?q"},
        {"g#s", "http://a/b/c/g"},
        {"..", "http://a/b/"},
        {"../g", "http://a/b/g"},
        {"../../../g", "http://a/g"},
        {"/./g", "http://a/g"},
        {"/../g", "http://a/g"},
        {"https://h/x", "https://h/x"},
        {"a b", "http://a/b/c/a%20b"},
        {"/\xc3\xa4", "http://a/%C3%A4"},
    };
    struct url base;
    assert_int_equal(url_read(STR("http://a/b/c/d;p?q"), &base), URL_FINE);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf next;
        buf_init(&next, KIB);
        assert_true(url_follow(&base, str_from(cases[i].reference), &next));
        assert_str(buf_str(&next), cases[i].target);
        buf_done(&next);
    }
}

static void a_redirect_that_is_too_long_is_refused(void **state) {
    (void)state;
    struct url base;
    struct buf next;
    assert_int_equal(url_read(STR("http://a/"), &base), URL_FINE);
    buf_init(&next, 16);
    assert_true(url_follow(&base, STR("12345"), &next));
    assert_false(url_follow(&base, STR("12345678"), &next));
    buf_done(&next);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_has_its_parts),
        cmocka_unit_test(a_redirect_leads_where_its_reference_says),
        cmocka_unit_test(a_redirect_that_is_too_long_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
