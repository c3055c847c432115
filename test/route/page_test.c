/* Which pages may send requests without a token: our own host names in every spelling, pages of
 * the same origin and of others. */
#include "route/page.h"

#include "helper/assert_str.h"

static const struct str names[] = {STR_INIT("Agent.Example"), STR_INIT("proxy.")};
static const struct str pages[] = {STR_INIT("https://studio.example"),
                                   STR_INIT("http://localhost:5173")};
static const struct page_rules none = {.any_host = false};
static const struct page_rules listed = {.hosts = {names, 2}, .origins = {pages, 2}};

#define NOT_SENT ((struct str){NULL, 0})

static enum page_verdict of_host(const struct page_rules *rules, const char *host) {
    const struct page_question asked = {.reach = REACH_LOOPBACK,
                                        .authority = str_from(host),
                                        .host = str_from(host),
                                        .origin = NOT_SENT,
                                        .site = NOT_SENT};
    return page_judge(rules, &asked);
}

static void a_loopback_listener_knows_its_own_names_in_every_spelling(void **state) {
    (void)state;
    static const char *const own[] = {
        "127.0.0.1",
        "127.0.0.1:8080",
        "127.8.9.1:1",
        "localhost",
        "localhost:8080",
        "LocalHost:65535",
        "localhost.",
        "localhost.:8080",
        "localhost:",
        "a.localhost",
        "A.B.LOCALHOST:1",
        "a.localhost.",
        "my-app.1.localhost",
        "my_app.localhost",
        "123456789012345678901234567890123456789012345678901234567890123.localhost",
        "[::1]",
        "[::1]:8080",
        "[0:0:0:0:0:0:0:1]:8080",
        "[::ffff:127.0.0.1]:80",
        "" /* HTTP/1.0 knows none */,
    };
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (of_host(&none, own[i]) != PAGE_FINE) fail_msg("'%s' is ours", own[i]);
}

static void a_name_has_253_bytes_at_most(void **state) {
    (void)state;
    char name[300];
    for (size_t len = 244; len < 264; len++) { /* labels of one byte */
        size_t at = 0;
        while (at < len - strlen("localhost")) name[at] = at % 2 ? '.' : 'a', at++;
        if (name[at - 1] != '.') continue;
        strcpy(name + at, "localhost");
        assert_int_equal(of_host(&none, name), len <= 253 ? PAGE_FINE : PAGE_FOREIGN_HOST);
    }
}

static void every_other_name_is_foreign(void **state) {
    (void)state;
    static const char *const foreign[] = {
        "evil.example",
        "evil.example:8080",
        "localhost.evil.example",
        "evil-localhost",
        ".localhost",
        "a..localhost",
        ".a.localhost",
        "-a.localhost",
        "a-.localhost",
        "evil.example/.localhost",
        "evil.example#.localhost",
        "evil.example?.localhost",
        "evil.example\\.localhost",
        "evil.example@.localhost",
        "evil.example%00.localhost",
        "evil example.localhost",
        "\xC3\xA9.localhost",
        "1234567890123456789012345678901234567890123456789012345678901234.localhost",
        "xlocalhost",
        "127.0.0.1.nip.io",
        "127.0.0.1.:80",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "128.0.0.1",
        "0.0.0.0",
        "192.168.1.2:8080",
        "%6cocalhost",
        "localhost%2e",
        "[::2]",
        "[::1%25lo]:80",
        "[::1]x:80",
        "[::]",
        "[::ffff:10.0.0.1]",
        "localhost:8080:8080",
        "localhost:99999",
        "localhost:0",
        "localhost..",
        "agent.example",
        "metadata.internal",
        "localhost:8080.evil.example",
    };
    for (size_t i = 0; i < ARRAY_LEN(foreign); i++)
        if (of_host(&none, foreign[i]) != PAGE_FOREIGN_HOST) fail_msg("'%s'", foreign[i]);
}

/* What stands before a NUL is not the name that was sent. */
static void an_address_with_a_nul_in_it_is_none(void **state) {
    (void)state;
    static const struct str hosts[] = {STR_INIT("127.0.0.1\0.evil.example"),
                                       STR_INIT("127.0.0.1\0"), STR_INIT("[::1\0]"),
                                       STR_INIT("[::1\0evil.example]:80")};
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        const struct page_question asked = {.reach = REACH_LOOPBACK,
                                            .authority = hosts[i],
                                            .host = hosts[i],
                                            .origin = NOT_SENT,
                                            .site = NOT_SENT};
        assert_int_equal(page_judge(&none, &asked), PAGE_FOREIGN_HOST);
        assert_false(page_host_ok(hosts[i]));
    }
}

static void names_of_the_settings_are_ours_too(void **state) {
    (void)state;
    static const char *const own[] = {"agent.example", "AGENT.example:443", "agent.example.",
                                      "proxy",         "proxy.:80",         "localhost"};
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        assert_int_equal(of_host(&listed, own[i]), PAGE_FINE);
    assert_int_equal(of_host(&listed, "x.agent.example"), PAGE_FOREIGN_HOST);
}

static void the_host_rule_is_for_loopback_listeners_without_a_sidecar(void **state) {
    (void)state;
    const struct page_rules sidecar = {.any_host = true};
    struct page_question asked = {.reach = REACH_LOOPBACK,
                                  .authority = STR("agent.example"),
                                  .host = STR("agent.example"),
                                  .origin = NOT_SENT,
                                  .site = NOT_SENT};
    assert_int_equal(page_judge(&none, &asked), PAGE_FOREIGN_HOST);
    assert_int_equal(page_judge(&sidecar, &asked), PAGE_FINE);
    asked.reach = REACH_NET;
    assert_int_equal(page_judge(&none, &asked), PAGE_FINE);
}

static void both_names_of_an_absolute_target_must_be_ours(void **state) {
    (void)state;
    struct page_question asked = {.reach = REACH_LOOPBACK,
                                  .authority = STR("localhost"),
                                  .host = STR("evil.example"),
                                  .origin = NOT_SENT,
                                  .site = NOT_SENT};
    assert_int_equal(page_judge(&none, &asked), PAGE_FOREIGN_HOST);
    asked.authority = STR("evil.example");
    asked.host = STR("localhost");
    assert_int_equal(page_judge(&none, &asked), PAGE_FOREIGN_HOST);
    asked.authority = STR("[::1]:80");
    assert_int_equal(page_judge(&none, &asked), PAGE_FINE);
}

static enum page_verdict of_page(const struct page_rules *rules, const char *authority,
                                 const char *origin, const char *site) {
    const struct page_question asked = {.reach = REACH_NET,
                                        .authority = str_from(authority),
                                        .host = str_from(authority),
                                        .origin = origin ? str_from(origin) : NOT_SENT,
                                        .site = site ? str_from(site) : NOT_SENT};
    return page_judge(rules, &asked);
}

static void a_page_of_the_same_place_may_ask_and_no_other(void **state) {
    (void)state;
    static const struct {
        const char *authority, *origin, *site;
        enum page_verdict verdict;
    } rows[] = {
        /* clang-format off */
        {"localhost:8080",  NULL,                      NULL,          PAGE_FINE},
        {"localhost:8080",  NULL,                      "same-origin", PAGE_FINE},
        {"localhost:8080",  NULL,                      "none",        PAGE_FINE},
        {"localhost:8080",  NULL,                      "cross-site",  PAGE_FOREIGN_ORIGIN},
        {"localhost:8080",  NULL,                      "Cross-Site",  PAGE_FOREIGN_ORIGIN},
        {"localhost:8080",  "http://localhost:8080",   "same-origin", PAGE_FINE},
        {"LOCALHOST:8080",  "HTTP://localhost:8080",   NULL,          PAGE_FINE},
        {"[::1]:8080",      "http://[::1]:8080",       NULL,          PAGE_FINE},
        {"agent.example",   "https://agent.example",   NULL,          PAGE_FINE},
        {"agent.example",   "http://agent.example",    NULL,          PAGE_FINE},
        {"agent.example:443", "https://agent.example", NULL,          PAGE_FINE},
        {"agent.example:80", "http://agent.example",   NULL,          PAGE_FINE},
        {"localhost:8080",  "http://localhost:8080",   "cross-site",  PAGE_FOREIGN_ORIGIN},
        {"localhost:8080",  "http://localhost:3000",   NULL,          PAGE_FOREIGN_ORIGIN},
        {"localhost:8080",  "http://localhost",        NULL,          PAGE_FOREIGN_ORIGIN},
        {"localhost",       "http://localhost:8080",   NULL,          PAGE_FOREIGN_ORIGIN},
        {"localhost:8080",  "http://127.0.0.1:8080",   NULL,          PAGE_FOREIGN_ORIGIN},
        {"localhost:8080",  "http://evil.example",     NULL,          PAGE_FOREIGN_ORIGIN},
        {"localhost:8080",  "http://evil.example:8080", NULL,         PAGE_FOREIGN_ORIGIN},
        {"localhost:8080",  "http://localhost:8080.evil.example", NULL, PAGE_FOREIGN_ORIGIN},
        {"localhost:8080",  "http://localhost:8080@evil.example", NULL, PAGE_FOREIGN_ORIGIN},
        {"localhost:8080",  "null",                    NULL,          PAGE_FOREIGN_ORIGIN},
        {"localhost:8080",  "",                        NULL,          PAGE_FOREIGN_ORIGIN},
        {"localhost:8080",  "file://",                 NULL,          PAGE_FOREIGN_ORIGIN},
        {"localhost:8080",  "localhost:8080",          NULL,          PAGE_FOREIGN_ORIGIN},
        {"localhost:8080",  "chrome-extension://abc",  NULL,          PAGE_FOREIGN_ORIGIN},
        {"",                "http://localhost:8080",   NULL,          PAGE_FOREIGN_ORIGIN},
        /* clang-format on */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (of_page(&none, rows[i].authority, rows[i].origin, rows[i].site) != rows[i].verdict)
            fail_msg("row %zu: %s asks %s", i, rows[i].origin, rows[i].authority);
    }
}

static void listed_pages_may_ask_from_wherever_they_are(void **state) {
    (void)state;
    static const char *const fine[] = {"https://studio.example", "https://Studio.example:443",
                                       "http://localhost:5173"};
    static const char *const foreign[] = {
        "http://studio.example", "https://studio.example:8443", "https://x.studio.example",
        "http://localhost:5174", "null"};
    for (size_t i = 0; i < ARRAY_LEN(fine); i++)
        assert_int_equal(of_page(&listed, "localhost:8080", fine[i], "cross-site"), PAGE_FINE);
    for (size_t i = 0; i < ARRAY_LEN(foreign); i++)
        assert_int_equal(of_page(&listed, "localhost:8080", foreign[i], NULL),
                         PAGE_FOREIGN_ORIGIN);

    const struct str nothing = STR("null");
    const struct page_rules sandbox = {.origins = {&nothing, 1}};
    assert_int_equal(of_page(&sandbox, "localhost:8080", "null", "cross-site"), PAGE_FINE);
}

static void a_unix_socket_is_no_place_of_a_browser(void **state) {
    (void)state;
    const struct page_question asked = {.reach = REACH_LOCAL,
                                        .authority = STR("evil.example"),
                                        .host = STR("evil.example"),
                                        .origin = STR("null"),
                                        .site = STR("cross-site")};
    assert_int_equal(page_judge(&none, &asked), PAGE_FINE);
}

static void settings_take_names_and_origins_and_nothing_else(void **state) {
    (void)state;
    static const char *const hosts[] = {"agent.example", "my_pod-1", "[fd00::1]", "10.0.0.7"};
    static const char *const no_hosts[] = {
        "", "agent.example:80", "http://agent.example", "*", "[fd00::1", "a b", "[]"};
    static const char *const origins[] = {"https://studio.example", "http://localhost:5173",
                                          "http://[::1]:80", "null"};
    static const char *const no_origins[] = {
        "",           "*",           "studio.example",  "https://",
        "https://a/", "https://a:0", "https://a:99999", "ftp://a",
        "https://u@a"};
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) assert_true(page_host_ok(str_from(hosts[i])));
    for (size_t i = 0; i < ARRAY_LEN(no_hosts); i++)
        assert_false(page_host_ok(str_from(no_hosts[i])));
    for (size_t i = 0; i < ARRAY_LEN(origins); i++)
        assert_true(page_origin_ok(str_from(origins[i])));
    for (size_t i = 0; i < ARRAY_LEN(no_origins); i++)
        assert_false(page_origin_ok(str_from(no_origins[i])));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loopback_listener_knows_its_own_names_in_every_spelling),
        cmocka_unit_test(a_name_has_253_bytes_at_most),
        cmocka_unit_test(every_other_name_is_foreign),
        cmocka_unit_test(an_address_with_a_nul_in_it_is_none),
        cmocka_unit_test(names_of_the_settings_are_ours_too),
        cmocka_unit_test(the_host_rule_is_for_loopback_listeners_without_a_sidecar),
        cmocka_unit_test(both_names_of_an_absolute_target_must_be_ours),
        cmocka_unit_test(a_page_of_the_same_place_may_ask_and_no_other),
        cmocka_unit_test(listed_pages_may_ask_from_wherever_they_are),
        cmocka_unit_test(a_unix_socket_is_no_place_of_a_browser),
        cmocka_unit_test(settings_take_names_and_origins_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
