/* A resolver that lies (checks.md X3): mixed answers, another answer the next time. Whatever it
 * says, nobody is connected to who is not public.
 *
 * This program's own getaddrinfo() is the resolver, and its own connect() keeps the book: both
 * come before the C library's, also for libcurl. */
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
} lies;

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
static void ask_liar(const struct town *town, const char *expected) {
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
                                     .public_only = true});
    loop_run(asker.loop);
    assert_str(buf_str(&ask.heard), expected);
    ask_done(&ask);
    asker_shut(&asker);
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
        cmocka_unit_test(another_answer_the_next_time_changes_nothing),
        cmocka_unit_test(a_redirect_is_looked_up_and_judged_like_the_first_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
