#include "socketio/origin.h"

#include "helper/assert_str.h"

static void is(const char *pattern, const char *origin, bool matches) {
    if (origin_matches(str_from(pattern), str_from(origin)) == matches) return;
    fail_msg("%s %s %s", pattern, matches ? "does not match" : "matches", origin);
}

static void a_port_may_be_any(void **state) {
    (void)state;
    is("http://localhost:*", "http://localhost", true);
    is("http://localhost:*", "http://localhost:1", true);
    is("http://localhost:*", "HTTP://LOCALHOST:65535", true);
    is("http://localhost:*", "http://localhost:", false);
    is("http://localhost:*", "http://localhost:x", false);
    is("http://localhost:*", "http://localhost:1:2", false);
    is("http://localhost:*", "http://localhost:123456", false);
    is("http://localhost:*", "http://localhost.evil.example", false);
    is("http://localhost:*", "https://localhost", false);
    is("http://localhost:*", "", false);
}

static void a_first_label_may_be_any(void **state) {
    (void)state;
    is("https://*.crawbl.com", "https://app.crawbl.com", true);
    is("https://*.crawbl.com", "https://a.b.CRAWBL.com", true);
    is("https://*.crawbl.com", "https://crawbl.com", false);
    is("https://*.crawbl.com", "https://.crawbl.com", false);
    is("https://*.crawbl.com", "https://evilcrawbl.com", false);
    is("https://*.crawbl.com", "http://app.crawbl.com", false);
    is("https://*.crawbl.com", "https://app.crawbl.com:8443", false);
    is("https://*.crawbl.com", "https://app.crawbl.com.evil.example", false);
    is("https://*.crawbl.com", "https://evil.example/.crawbl.com", false);
    is("https://*.crawbl.com", "https://evil@app.crawbl.com", false);
}

static void any_other_pattern_is_that_origin(void **state) {
    (void)state;
    is("crawbl://app", "crawbl://app", true);
    is("crawbl://app", "crawbl://application", false);
    is("crawbl://app", "crawbl://ap", false);
    is("null", "null", true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port_may_be_any),
        cmocka_unit_test(a_first_label_may_be_any),
        cmocka_unit_test(any_other_pattern_is_that_origin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
