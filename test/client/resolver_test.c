/* A resolver that lies (checks.md X3): mixed answers, and different answers each time. Whatever
 * it answers, only public addresses are connected to.
 *
 * This program's getaddrinfo() is the resolver, and its connect() records the attempts. Both
 * override those of the C library, also for libcurl. */
#include "client/http.h"

#include "client/ours.h"
#include "client/peer.h"

#include <dlfcn.h>
#include <netdb.h>

#define ANSWERS_MAX 4
#define LOOKUPS_MAX 4

/* --- the resolver ------------------------------------------------------------------------- */

/* What each look-up is answered, one after the other; the last one again and again. */
static struct {
    const char *answers[LOOKUPS_MAX][ANSWERS_MAX + 1];
    size_t count;
    atomic_size_t asked;
    atomic_bool held; /* no query is answered until this is over */
    atomic_int inside, inside_max;
} lies;

/* As a name server that does not answer: the thread waits. */
static void wait_for_the_server(void) {
    int inside = atomic_fetch_add(&lies.inside, 1) + 1, max = atomic_load(&lies.inside_max);
    while (inside > max && !atomic_compare_exchange_weak(&lies.inside_max, &max, inside)) {
    }
    while (atomic_load(&lies.held)) usleep(500);
    atomic_fetch_sub(&lies.inside, 1);
}

static void lie(size_t count, const char *const answers[][ANSWERS_MAX + 1]) {
    assert_true(count <= LOOKUPS_MAX);
    memcpy(lies.answers, answers, count * sizeof(*answers));
    lies.count = count;
    atomic_store(&lies.asked, 0);
}

struct answer {
    struct addrinfo info;
    struct sockaddr_storage address;
};

static struct addrinfo *make(const char *ip, const char *service,
                             const struct addrinfo *hints) {
    struct answer *answer = MEM_NEW(struct answer);
    bool six = strchr(ip, ':') != NULL;
    uint16_t port = htons((uint16_t)atoi(service ? service : "0"));
    answer->info = (struct addrinfo){.ai_family = six ? AF_INET6 : AF_INET,
                                     .ai_socktype = SOCK_STREAM,
                                     .ai_protocol = IPPROTO_TCP,
                                     .ai_addr = (struct sockaddr *)&answer->address};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = port};
    struct sockaddr_in6 wide = {.sin6_family = AF_INET6, .sin6_port = port};
    void *bytes = six ? (void *)&wide.sin6_addr : (void *)&four.sin_addr;
    assert(inet_pton(answer->info.ai_family, ip, bytes) == 1);
    memcpy(&answer->address, six ? (void *)&wide : (void *)&four,
           six ? sizeof(wide) : sizeof(four));
    answer->info.ai_addrlen = six ? sizeof(wide) : sizeof(four);
    bool wanted =
        !hints || hints->ai_family == AF_UNSPEC || hints->ai_family == answer->info.ai_family;
    if (wanted) return &answer->info;
    free(answer);
    return NULL;
}

__attribute__((visibility("default"))) int getaddrinfo(const char *node, const char *service,
                                                       const struct addrinfo *hints,
                                                       struct addrinfo **ret) {
    (void)node;
    size_t asked = atomic_fetch_add(&lies.asked, 1);
    wait_for_the_server();
    const char *const *answers = lies.answers[asked < lies.count ? asked : lies.count - 1];
    struct addrinfo *first = NULL, **last = &first;
    for (; *answers; answers++) {
        *last = make(*answers, service, hints);
        if (*last) last = &(*last)->ai_next;
    }
    *ret = first;
    return first ? 0 : EAI_NONAME;
}

__attribute__((visibility("default"))) void freeaddrinfo(struct addrinfo *info) {
    while (info) {
        struct addrinfo *next = info->ai_next;
        free(CONTAINER_OF(info, struct answer, info));
        info = next;
    }
}

/* --- the book ----------------------------------------------------------------------------- */

static atomic_size_t connects, private_connects;

static void note(const struct sockaddr *address) {
    const struct sockaddr_in *four = (const void *)address;
    const struct sockaddr_in6 *six = (const void *)address;
    bool public = true;
    if (address->sa_family == AF_INET)
    public = http_address_is_public((const void *)&four->sin_addr, 4);
    if (address->sa_family == AF_INET6)
    public = http_address_is_public((const void *)&six->sin6_addr, 16);
    atomic_fetch_add(&connects, 1);
    if (!public) atomic_fetch_add(&private_connects, 1);
}

__attribute__((visibility("default"))) int connect(int fd, const struct sockaddr *address,
                                                   socklen_t len) {
    static int (*real)(int, const struct sockaddr *, socklen_t);
    if (!real) {
        void *found = dlsym(RTLD_NEXT, "connect");
        memcpy(&real, &found, sizeof(real));
    }
    note(address);
    return real(fd, address, len);
}

/* --- who asks ----------------------------------------------------------------------------- */

static bool have_ours;

/* A public server and a private one on the same port, as only a name can tell them apart. */
struct town {
    struct peer public, private;
    atomic_bool named; /* the request said who is asked */
};

static bool greet_public(struct peer *peer, int fd, struct str request) {
    struct town *town = peer->ctx;
    if (str_find(request, STR("Host: liar.test:")) < request.len)
        atomic_store(&town->named, true);
    return peer_say(peer, fd, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npublic");
}

static bool greet_private(struct peer *peer, int fd, struct str request) {
    (void)request;
    return peer_say(peer, fd, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nprivate");
}

static void town_open(struct town *town, peer_fn *answer) {
    *town = (struct town){.named = false};
    peer_start_at(&town->public, OURS, answer, town);
    peer_start_on(&town->private, "127.0.0.1", town->public.port, greet_private, town);
    atomic_store(&connects, 0);
    atomic_store(&private_connects, 0);
}

static void town_close(struct town *town) {
    assert_int_equal(atomic_load(&town->private.accepted), 0);
    assert_int_equal(atomic_load(&private_connects), 0);
    peer_stop(&town->public);
    peer_stop(&town->private);
}

/* Ask under the liar's name, on a loop of its own each time: nothing is remembered. */
static void ask_liar_in(enum http_reach reach, const struct town *town, const char *expected) {
    struct asker asker;
    struct ask ask = {0};
    char url[64];
    asker_open(&asker);
    snprintf(url, sizeof(url), "http://liar.test:%u/", town->public.port);
    ask_start(&ask, &asker,
              &(struct http_request){.method = STR("GET"),
                                     .url = str_from(url),
                                     .connect_ms = 2000,
                                     .redirects_max = 5,
                                     .reach = reach});
    loop_run(asker.loop);
    assert_str(buf_str(&ask.heard), expected);
    ask_done(&ask);
    asker_shut(&asker);
}

static void ask_liar(const struct town *town, const char *expected) {
    ask_liar_in(HTTP_PUBLIC_ONLY, town, expected);
}

#define LIE(...)                                                                               \
    do {                                                                                       \
        static const char *const answers_[][ANSWERS_MAX + 1] = {__VA_ARGS__};                  \
        lie(ARRAY_LEN(answers_), answers_);                                                    \
    } while (0)

static void of_mixed_answers_only_the_public_ones_are_tried(void **state) {
    (void)state;
    struct town town;
    if (!have_ours) skip();
    town_open(&town, greet_public);
    LIE({"127.0.0.1", "10.0.0.1", OURS, NULL});
    ask_liar(&town, "200 ;public;whole");
    assert_true(atomic_load(&town.named));
    LIE({OURS, "127.0.0.1", NULL});
    ask_liar(&town, "200 ;public;whole");
    LIE({"::1", "::ffff:127.0.0.1", OURS, NULL});
    ask_liar(&town, "200 ;public;whole");
    assert_true(atomic_load(&connects) >= 3);
    town_close(&town);
}

static void where_the_public_one_does_not_answer_no_private_one_takes_its_place(void **state) {
    (void)state;
    struct town town;
    if (!have_ours) skip();
    town_open(&town, greet_public);
    peer_stop(&town.public); /* now its port is closed, and the private one's is not */
    LIE({OURS, "127.0.0.1", NULL});
    ask_liar(&town, "UNAVAILABLE");
    LIE({"127.0.0.1", OURS, "127.0.0.1", NULL});
    ask_liar(&town, "UNAVAILABLE");
    peer_start_on(&town.public, OURS, town.private.port, greet_public, &town);
    town_close(&town);
}

static void answers_that_are_all_private_are_refused(void **state) {
    (void)state;
    struct town town;
    if (!have_ours) skip();
    town_open(&town, greet_public);
    LIE({"127.0.0.1", "169.254.169.254", "192.168.0.1", NULL});
    ask_liar(&town, "PERMISSION_DENIED");
    LIE({"::1", "fd00::1", "64:ff9b::7f00:1", NULL});
    ask_liar(&town, "PERMISSION_DENIED");
    assert_int_equal(atomic_load(&connects), 0);
    town_close(&town);
}

/* The name is harmless; only the address that it leads to is not. */
static void a_name_that_leads_to_credentials_is_refused(void **state) {
    (void)state;
    struct town town;
    if (!have_ours) skip();
    town_open(&town, greet_public);
    LIE({"169.254.169.254", "fd00:ec2::254", "100.100.100.200", "fe80::1", NULL});
    ask_liar_in(HTTP_NOT_LINK_LOCAL, &town, "PERMISSION_DENIED");
    assert_int_equal(atomic_load(&connects), 0);
    LIE({"169.254.169.254", OURS, NULL});
    ask_liar_in(HTTP_NOT_LINK_LOCAL, &town, "200 ;public;whole");
    assert_int_equal(atomic_load(&connects), 1);
    town_close(&town);
}

static void another_answer_the_next_time_changes_nothing(void **state) {
    (void)state;
    struct town town;
    if (!have_ours) skip();
    town_open(&town, greet_public);
    LIE({OURS, NULL}, {"127.0.0.1", NULL}, {OURS, NULL}, {"127.0.0.1", NULL});
    ask_liar(&town, "200 ;public;whole");
    ask_liar(&town, "PERMISSION_DENIED");
    ask_liar(&town, "200 ;public;whole");
    ask_liar(&town, "PERMISSION_DENIED");
    assert_int_equal(atomic_load(&lies.asked), 4);
    town_close(&town);
}

static bool send_on(struct peer *peer, int fd, struct str request) {
    char head[160];
    bool first = str_starts(request, STR("GET / "));
    if (!first) return greet_public(peer, fd, request);
    snprintf(head, sizeof(head),
             "HTTP/1.1 302 F\r\nLocation: http://other.test:%u/x\r\nContent-Length: 0\r\n\r\n",
             peer->port);
    return peer_say(peer, fd, head);
}

static void a_redirect_is_looked_up_and_judged_like_the_first_address(void **state) {
    (void)state;
    struct town town;
    if (!have_ours) skip();
    town_open(&town, send_on);
    LIE({OURS, NULL}, {"127.0.0.1", NULL});
    ask_liar(&town, "PERMISSION_DENIED");
    LIE({OURS, NULL}, {"127.0.0.1", OURS, NULL});
    ask_liar(&town, "200 ;public;whole");
    town_close(&town);
}

/* --- many names --- */

enum { CALLERS = 60 };

static bool greet_anybody(struct peer *peer, int fd, struct str request) {
    (void)request;
    return peer_say(peer, fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
}

struct crowd {
    struct peer peer;
    struct asker asker;
    struct ask asks[CALLERS];
    struct timer timer;
};

static struct crowd *crowd_open(void) {
    struct crowd *crowd = MEM_NEW(struct crowd);
    LIE({"127.0.0.1", NULL});
    atomic_store(&lies.inside_max, 0);
    atomic_store(&lies.held, true);
    peer_start(&crowd->peer, greet_anybody, NULL);
    asker_open(&crowd->asker);
    return crowd;
}

/* Caller i asks for the name of i, of so many. */
static void crowd_ask(struct crowd *crowd, unsigned i, unsigned names) {
    char url[64];
    snprintf(url, sizeof(url), "http://name%u.test:%u/", i % names, crowd->peer.port);
    ask_start(&crowd->asks[i], &crowd->asker,
              &(struct http_request){.method = STR("GET"), .url = str_from(url)});
}

static void crowd_shut(struct crowd *crowd) {
    for (unsigned i = 0; i < CALLERS; i++) ask_done(&crowd->asks[i]);
    asker_shut(&crowd->asker);
    peer_stop(&crowd->peer);
    free(crowd);
}

static void let_go(void *ctx) {
    (void)ctx;
    atomic_store(&lies.held, false);
}

/* Everyone hears; the server is asked once for each name, by a few threads. */
static void hear_all(unsigned names, int threads) {
    struct crowd *crowd = crowd_open();
    for (unsigned i = 0; i < CALLERS; i++) crowd_ask(crowd, i, names);
    timer_init(&crowd->timer, crowd->asker.loop, let_go, NULL);
    timer_start(&crowd->timer, 100);
    loop_run(crowd->asker.loop);
    for (unsigned i = 0; i < CALLERS; i++)
        assert_str(buf_str(&crowd->asks[i].heard), "200 ;hello;whole");
    assert_int_equal(atomic_load(&lies.asked), names);
    assert_int_equal(atomic_load(&lies.inside_max), threads);
    crowd_shut(crowd);
}

static void callers_of_one_name_share_a_look_up(void **state) {
    (void)state;
    hear_all(1, 1);
    hear_all(3, 3);
}

static void many_names_take_turns(void **state) {
    (void)state;
    hear_all(CALLERS, 16);
}

static void cancel_half(void *ctx) {
    struct crowd *crowd = ctx;
    for (unsigned i = 0; i < CALLERS; i += 2) {
        http_cancel(crowd->asks[i].call);
        ask_over(&crowd->asks[i]);
    }
    atomic_store(&lies.held, false);
}

/* Half of those who share a look-up, and half of those who wait for a thread. */
static void a_waiter_that_leaves_takes_nothing_from_the_others(void **state) {
    (void)state;
    const unsigned names[] = {1, 7, CALLERS};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct crowd *crowd = crowd_open();
        for (unsigned j = 0; j < CALLERS; j++) crowd_ask(crowd, j, names[i]);
        timer_init(&crowd->timer, crowd->asker.loop, cancel_half, crowd);
        timer_start(&crowd->timer, 50);
        loop_run(crowd->asker.loop);
        for (unsigned j = 1; j < CALLERS; j += 2)
            assert_str(buf_str(&crowd->asks[j].heard), "200 ;hello;whole");
        for (unsigned j = 0; j < CALLERS; j += 2) assert_int_equal(crowd->asks[j].heard.len, 0);
        crowd_shut(crowd);
    }
}

static void cancel_all(void *ctx) {
    struct crowd *crowd = ctx;
    for (unsigned i = 0; i < CALLERS; i++) {
        http_cancel(crowd->asks[i].call);
        ask_over(&crowd->asks[i]);
    }
}

/* The loop ends while the server is silent, and its threads hear of it later. */
static void a_loop_ends_without_its_look_ups(void **state) {
    (void)state;
    struct crowd *crowd = crowd_open();
    for (unsigned i = 0; i < CALLERS; i++) crowd_ask(crowd, i, CALLERS);
    timer_init(&crowd->timer, crowd->asker.loop, cancel_all, crowd);
    timer_start(&crowd->timer, 50);
    loop_run(crowd->asker.loop);
    crowd_shut(crowd);
    atomic_store(&lies.held, false);
    while (atomic_load(&lies.inside)) usleep(500);
    assert_int_equal(atomic_load(&lies.asked), 16);
}

int main(void) {
    /* Before there are threads. A machine that forbids it skips what needs it. */
    have_ours = ours_enter();
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    unsetenv("ALL_PROXY");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_mixed_answers_only_the_public_ones_are_tried),
        cmocka_unit_test(where_the_public_one_does_not_answer_no_private_one_takes_its_place),
        cmocka_unit_test(answers_that_are_all_private_are_refused),
        cmocka_unit_test(a_name_that_leads_to_credentials_is_refused),
        cmocka_unit_test(another_answer_the_next_time_changes_nothing),
        cmocka_unit_test(a_redirect_is_looked_up_and_judged_like_the_first_address),
        cmocka_unit_test(callers_of_one_name_share_a_look_up),
        cmocka_unit_test(many_names_take_turns),
        cmocka_unit_test(a_waiter_that_leaves_takes_nothing_from_the_others),
        cmocka_unit_test(a_loop_ends_without_its_look_ups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
