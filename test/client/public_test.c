/* Untrusted URLs are only requested from public addresses (checks.md X1, X3). */
#include "client/http.h"

#include "client/ours.h"
#include "client/peer.h"

static bool have_ours;

static bool greet(struct peer *peer, int fd, struct str request) {
    (void)request;
    return peer_say(peer, fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
}

/* Listens on one loopback address of IPv6, when the machine has it. */
static int listen_6(unsigned *ret_port) {
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0);
    bool good = fd >= 0 && bind(fd, (struct sockaddr *)&address, len) == 0 &&
                listen(fd, 16) == 0 && getsockname(fd, (struct sockaddr *)&address, &len) == 0;
    *ret_port = good ? ntohs(address.sin6_port) : 1;
    return fd;
}

static void ask_one(const char *url, struct ask *ask) {
    struct asker asker;
    asker_open(&asker);
    ask_start(ask, &asker,
              &(struct http_request){.method = STR("GET"),
                                     .url = str_from(url),
                                     .connect_ms = 2000,
                                     .redirects_max = 5,
                                     .reach = HTTP_PUBLIC_ONLY});
    loop_run(asker.loop);
    asker_shut(&asker);
}

/* However it is spelled: %u is the port of a listener that must not hear of it. */
static const char *const spellings[] = {
    "http://127.0.0.1:%u/",
    "http://localhost:%u/",
    "http://LocalHost:%u/",
    "http://127.1:%u/",
    "http://2130706433:%u/",
    "http://0x7f000001:%u/",
    "http://0177.0.0.1:%u/",
    "http://127.255.0.9:%u/",
    "http://0.0.0.0:%u/",
    "http://0:%u/",
    "http://[::1]:%u/",
    "http://[::]:%u/",
    "http://[::ffff:127.0.0.1]:%u/",
    "http://[::ffff:7f00:1]:%u/",
    "http://[::127.0.0.1]:%u/",
    "http://[64:ff9b::127.0.0.1]:%u/",
    "http://[2002:7f00:1::]:%u/",
    "http://[fe80::1]:%u/",
    "http://[fd00::1]:%u/",
    "http://10.0.0.1:%u/",
    "http://172.16.0.1:%u/",
    "http://192.168.0.1:%u/",
    "http://169.254.169.254:%u/",
    "http://100.64.0.1:%u/",
    "http://224.0.0.1:%u/",
    "http://255.255.255.255:%u/",
    "https://127.0.0.1:%u/",
};

static void no_spelling_of_a_private_address_is_connected_to(void **state) {
    (void)state;
    struct peer peer;
    unsigned port_6;
    int six = listen_6(&port_6);
    peer_start(&peer, greet, NULL);
    for (size_t i = 0; i < 2 * ARRAY_LEN(spellings); i++) {
        char url[128];
        struct ask ask = {0};
        unsigned port = i % 2 ? port_6 : peer.port;
        /* NOLINTNEXTLINE(clang-diagnostic-format-nonliteral): of the table above */
        snprintf(url, sizeof(url), spellings[i / 2], port);
        ask_one(url, &ask);
        if (ask.code != ERR_PERMISSION_DENIED || ask.stage != HTTP_CONNECTING)
            fail_msg("%s: " STR_FMT " %s", url, STR_ARG(buf_str(&ask.heard)), ask.why);
        ask_done(&ask);
    }
    assert_int_equal(atomic_load(&peer.accepted), 0);
    assert_int_equal(accept(six, NULL, NULL), -1);
    close(six);
    peer_stop(&peer);
}

static void a_proxy_of_the_environment_is_not_asked_instead(void **state) {
    (void)state;
    struct peer peer;
    char url[64];
    struct ask ask = {0};
    peer_start(&peer, greet, NULL);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", peer.port);
    setenv("http_proxy", url, 1);
    setenv("ALL_PROXY", url, 1);
    ask_one(url, &ask);
    unsetenv("http_proxy");
    unsetenv("ALL_PROXY");
    assert_str(buf_str(&ask.heard), "PERMISSION_DENIED");
    assert_int_equal(atomic_load(&peer.accepted), 0);
    ask_done(&ask);
    peer_stop(&peer);
}

static void a_user_name_in_the_url_is_refused(void **state) {
    (void)state;
    struct peer peer;
    char url[64];
    struct ask ask = {0};
    peer_start(&peer, greet, NULL);
    snprintf(url, sizeof(url), "http://me:secret@127.0.0.1:%u/", peer.port);
    ask_one(url, &ask);
    assert_str(buf_str(&ask.heard), "PERMISSION_DENIED");
    assert_null(strstr(ask.why, "secret"));
    assert_int_equal(atomic_load(&peer.accepted), 0);
    ask_done(&ask);
    peer_stop(&peer);
}

static void an_idle_connection_of_another_call_is_not_used(void **state) {
    (void)state;
    struct peer peer;
    struct asker asker;
    char url[64];
    struct ask open = {0}, strict = {0};
    peer_start(&peer, greet, NULL);
    asker_open(&asker);
    struct http_request request = get_request(url, sizeof(url), &peer, "/");
    ask_start(&open, &asker, &request);
    loop_run(asker.loop);
    assert_str(buf_str(&open.heard), "200 ;hello;whole");
    request.reach = HTTP_PUBLIC_ONLY;
    ask_start(&strict, &asker, &request);
    loop_run(asker.loop);
    assert_str(buf_str(&strict.heard), "PERMISSION_DENIED");
    assert_int_equal(atomic_load(&peer.accepted), 1);
    ask_done(&open);
    ask_done(&strict);
    asker_shut(&asker);
    peer_stop(&peer);
}

/* --- not link-local ----------------------------------------------------------------------- */

/* However they are spelled: these addresses belong to no one here and are never connected to. */
static void no_spelling_of_a_link_local_address_is_connected_to(void **state) {
    (void)state;
    static const char *const urls[] = {
        "https://169.254.169.254/",
        "https://2852039166/",
        "http://2852039166:8080/",
        "http://0xa9fea9fe/",
        "http://0251.0376.0251.0376",
        "http://169.254.43518/",
        "http://[::ffff:169.254.1.1]/",
        "http://[::ffff:a9fe:101]/",
        "http://[fe80::1]/",
        "http://[fd00:ec2::254]/latest",
        "http://[2002:a9fe:a9fe::]/",
        "http://[64:ff9b::a9fe:1]/",
        "http://100.100.100.200/",
        "http://168.63.129.16/",
    };
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        struct asker asker;
        struct ask ask = {0};
        asker_open(&asker);
        ask_start(&ask, &asker,
                  &(struct http_request){.method = STR("GET"),
                                         .url = str_from(urls[i]),
                                         .connect_ms = 2000,
                                         .reach = HTTP_NOT_LINK_LOCAL});
        loop_run(asker.loop);
        if (ask.code != ERR_PERMISSION_DENIED || ask.stage != HTTP_CONNECTING)
            fail_msg("%s: " STR_FMT " %s", urls[i], STR_ARG(buf_str(&ask.heard)), ask.why);
        ask_done(&ask);
        asker_shut(&asker);
    }
}

/* A connection serves the calls of its own rule and of a weaker one. */
static void an_idle_connection_serves_calls_of_its_rule(void **state) {
    (void)state;
    static const struct {
        enum http_reach reach;
        int accepted; /* so far */
    } calls[] = {
        {HTTP_ANYWHERE, 1},       {HTTP_ANYWHERE, 1}, /* the first is used again */
        {HTTP_NOT_LINK_LOCAL, 2},                     /* its target was not checked */
        {HTTP_NOT_LINK_LOCAL, 2}, {HTTP_ANYWHERE, 2},
    };
    struct peer peer;
    struct asker asker;
    char url[64];
    peer_start(&peer, greet, NULL);
    asker_open(&asker);
    struct http_request request = get_request(url, sizeof(url), &peer, "/");
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        struct ask ask = {0};
        request.reach = calls[i].reach;
        ask_start(&ask, &asker, &request);
        loop_run(asker.loop);
        assert_str(buf_str(&ask.heard), "200 ;hello;whole");
        assert_int_equal(atomic_load(&peer.accepted), calls[i].accepted);
        ask_done(&ask);
    }
    asker_shut(&asker);
    peer_stop(&peer);
}

struct signpost {
    char head[128];
};

static bool redirect(struct peer *peer, int fd, struct str request) {
    struct signpost *signpost = peer->ctx;
    (void)request;
    return peer_say(peer, fd, signpost->head);
}

static void a_redirect_from_a_public_server_to_a_private_one_is_refused(void **state) {
    (void)state;
    static const char *const targets[] = {"http://127.0.0.1:%u/", "http://[::1]:%u/",
                                          "http://localhost:%u/", "http://0x7f.1:%u/"};
    if (!have_ours) skip();
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        struct peer private, public;
        struct signpost signpost;
        char url[64], target[64];
        struct ask ask = {0};
        peer_start(&private, greet, NULL);
        /* NOLINTNEXTLINE(clang-diagnostic-format-nonliteral): of the table above */
        snprintf(target, sizeof(target), targets[i], private.port);
        snprintf(signpost.head, sizeof(signpost.head),
                 "HTTP/1.1 302 F\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", target);
        peer_start_at(&public, OURS, redirect, &signpost);
        snprintf(url, sizeof(url), "http://" OURS ":%u/", public.port);
        ask_one(url, &ask);
        assert_str(buf_str(&ask.heard), "PERMISSION_DENIED");
        assert_int_equal(atomic_load(&public.accepted), 1);
        assert_int_equal(atomic_load(&private.accepted), 0);
        ask_done(&ask);
        peer_stop(&public);
        peer_stop(&private);
    }
}

static void a_public_server_is_asked_on_a_connection_of_its_own(void **state) {
    (void)state;
    if (!have_ours) skip();
    struct peer peer;
    char url[64];
    peer_start_at(&peer, OURS, greet, NULL);
    snprintf(url, sizeof(url), "http://" OURS ":%u/", peer.port);
    for (int i = 1; i <= 3; i++) {
        struct ask ask = {0};
        ask_one(url, &ask);
        assert_str(buf_str(&ask.heard), "200 ;hello;whole");
        assert_int_equal(atomic_load(&peer.accepted), i);
        ask_done(&ask);
    }
    peer_stop(&peer);
}

int main(void) {
    /* Before there are threads. A machine that forbids it skips what needs it. */
    have_ours = ours_enter();
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    unsetenv("ALL_PROXY");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_spelling_of_a_private_address_is_connected_to),
        cmocka_unit_test(a_proxy_of_the_environment_is_not_asked_instead),
        cmocka_unit_test(a_user_name_in_the_url_is_refused),
        cmocka_unit_test(an_idle_connection_of_another_call_is_not_used),
        cmocka_unit_test(no_spelling_of_a_link_local_address_is_connected_to),
        cmocka_unit_test(an_idle_connection_serves_calls_of_its_rule),
        cmocka_unit_test(a_redirect_from_a_public_server_to_a_private_one_is_refused),
        cmocka_unit_test(a_public_server_is_asked_on_a_connection_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
