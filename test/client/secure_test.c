/* What a TLS connection may do to a call: in its handshake, between its records, at its end. */
#include "client/http.h"

#include "client/peer.h"
#include "client/peer_secure.h"
#include "tls/openssl.h"

#include <dlfcn.h>

#define OK_PLAIN "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
#define HELLO OK_PLAIN "Content-Length: 5\r\n\r\nhello"

/* --- a server that may break off anywhere -------------------------------------------------- */

enum { VISITS_MAX = 512 };

struct host;

/* The whole life of a connection; it is closed afterwards. */
typedef void host_fn(struct host *host, int fd);

struct host {
    host_fn *serve;
    void *ctx;
    int listener;
    unsigned port;
    char url[64];
    pthread_t thread;
    atomic_int accepted, resumed, requests;
    atomic_size_t sent;
};

struct host_visit {
    struct host *host;
    int fd;
    pthread_t thread;
};

static void *host_serve(void *ctx) {
    struct host_visit *visit = ctx;
    visit->host->serve(visit->host, visit->fd);
    close(visit->fd);
    return NULL;
}

static void *host_accept(void *ctx) {
    struct host *host = ctx;
    struct host_visit *all = mem_zero(VISITS_MAX, sizeof(*all));
    int count = 0, fd;
    while ((fd = accept(host->listener, NULL, NULL)) >= 0) {
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        assert(count < VISITS_MAX);
        atomic_fetch_add(&host->accepted, 1);
        all[count] = (struct host_visit){.host = host, .fd = fd};
        pthread_create(&all[count].thread, NULL, host_serve, &all[count]);
        count++;
    }
    while (count--) pthread_join(all[count].thread, NULL);
    free(all);
    return NULL;
}

static void host_open(struct host *host, host_fn *serve, void *ctx) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    pthread_once(&peer_secure_once, peer_secure_load);
    *host = (struct host){.serve = serve, .ctx = ctx};
    host->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(host->listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(host->listener, 1024), 0);
    assert_int_equal(getsockname(host->listener, (struct sockaddr *)&address, &len), 0);
    host->port = ntohs(address.sin_port);
    snprintf(host->url, sizeof(host->url), "https://127.0.0.1:%u/", host->port);
    pthread_create(&host->thread, NULL, host_accept, host);
}

/* Its connections must be over. */
static void host_shut(struct host *host) {
    shutdown(host->listener, SHUT_RDWR);
    pthread_join(host->thread, NULL);
    close(host->listener);
}

static struct http_request request_of(const struct host *host) {
    return (struct http_request){.method = STR("GET"), .url = str_from(host->url)};
}

/* One call, with a pool of its own. */
static void ask_once(struct ask *ask, const struct http_request *request) {
    struct asker asker;
    asker_open(&asker);
    ask_start(ask, &asker, request);
    loop_run(asker.loop);
    asker_shut(&asker);
}

/* --- in the handshake --------------------------------------------------------------------- */

/* Until the other side ends. What it says must not be understood: it is not for us. */
static void drain(int fd) {
    char bytes[4096];
    ssize_t len;
    while ((len = recv(fd, bytes, sizeof(bytes), 0)) > 0)
        assert(str_find(str_of(bytes, (size_t)len), STR("HTTP/1.1")) == (size_t)len);
}

static void be_silent(struct host *host, int fd) {
    (void)host;
    drain(fd);
}

static void close_at_once(struct host *host, int fd) {
    (void)host;
    (void)fd;
}

static void close_after_hello(struct host *host, int fd) {
    char bytes[4096];
    (void)host;
    (void)recv(fd, bytes, sizeof(bytes), 0);
}

static void reset_after_hello(struct host *host, int fd) {
    struct linger now = {.l_onoff = 1};
    close_after_hello(host, fd);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

static void speak_plainly(struct host *host, int fd) {
    static const char text[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    close_after_hello(host, fd);
    (void)send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL);
    drain(fd);
}

/* Our flight, which is left in secure->sealed. NULL: the peer has gone. */
static struct peer_secure *make_flight(int fd) {
    char bytes[4096];
    ssize_t len = recv(fd, bytes, sizeof(bytes), 0);
    if (len <= 0) return NULL;
    peer_secure_open(fd);
    struct peer_secure *secure = peer_secures[fd];
    (void)records_receive(secure->records, str_of(bytes, (size_t)len), &secure->plain,
                          &secure->sealed);
    assert(secure->sealed.len > 200);
    return secure;
}

static void close_in_the_flight(struct host *host, int fd) {
    struct peer_secure *secure = make_flight(fd);
    (void)host;
    assert(secure);
    secure->sealed.len /= 2;
    (void)peer_secure_flush(fd);
    peer_secure_shut(fd);
}

/* The ServerHello must not be changed by anybody: the handshake is signed. */
static void change_the_flight(struct host *host, int fd) {
    struct peer_secure *secure = make_flight(fd);
    (void)host;
    assert(secure);
    secure->sealed.at[secure->sealed.len - 3] ^= 1;
    (void)peer_secure_flush(fd);
    drain(fd);
    peer_secure_shut(fd);
}

static void drip(struct host *host, int fd) {
    struct peer_secure *secure = make_flight(fd);
    (void)host;
    if (!secure) return;
    struct str left = buf_str(&secure->sealed);
    while (left.len > 20 && send(fd, left.at, 1, MSG_NOSIGNAL) == 1) {
        left = str_skip(left, 1);
        usleep(2000);
    }
    buf_clear(&secure->sealed);
    drain(fd);
    peer_secure_shut(fd);
}

static void a_handshake_that_fails_ends_the_call_and_says_how(void **state) {
    (void)state;
    static const struct {
        host_fn *serve;
        enum err_code code;
        const char *why;
    } cases[] = {
        {be_silent, ERR_DEADLINE_EXCEEDED, "has not finished the TLS handshake"},
        {drip, ERR_DEADLINE_EXCEEDED, "has not finished the TLS handshake"},
        {close_at_once, ERR_UNAVAILABLE, "TLS handshake"},
        {close_after_hello, ERR_UNAVAILABLE, "in the middle of the TLS handshake"},
        {close_in_the_flight, ERR_UNAVAILABLE, "in the middle of the TLS handshake"},
        {reset_after_hello, ERR_UNAVAILABLE, "broke in the TLS handshake (Connection reset"},
        {speak_plainly, ERR_UNAVAILABLE, "what answers there is not TLS"},
        {change_the_flight, ERR_UNAVAILABLE, "TLS fails ("},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct host host;
        struct ask ask = {0};
        host_open(&host, cases[i].serve, NULL);
        struct http_request request = request_of(&host);
        request.connect_ms = 300;
        ask_once(&ask, &request);
        if (ask.code != cases[i].code || !strstr(ask.why, cases[i].why))
            fail_msg("%zu: '%s' in: %s", i, cases[i].why, ask.why);
        assert_str(buf_str(&ask.heard), err_kinds[cases[i].code].name);
        assert_int_equal(ask.stage, HTTP_CONNECTING);
        assert_int_equal(atomic_load(&host.accepted), 1);
        host_shut(&host); /* it heard the end, too */
        ask_done(&ask);
    }
}

/* --- between records ---------------------------------------------------------------------- */

/* False: the other side has ended. */
static bool hear_request(struct host *host, int fd) {
    char text[64 * 1024];
    size_t len = 0, expected = SIZE_MAX;
    while (len < expected) {
        ssize_t got = peer_secure_recv(fd, text + len, sizeof(text) - len);
        if (got <= 0) return false;
        len += (size_t)got;
        expected = peer_request_len(str_of(text, len));
    }
    atomic_fetch_add(&host->requests, 1);
    return true;
}

static void seal(int fd, struct str bytes) {
    bool good = records_seal(peer_secures[fd]->records, bytes, &peer_secures[fd]->sealed);
    assert(good);
    (void)good;
}

/* What is sealed, in pieces. */
static void send_cut(int fd, size_t piece) {
    struct buf *sealed = &peer_secures[fd]->sealed;
    struct str left = buf_str(sealed);
    while (left.len) {
        struct str part = str_head(left, piece);
        if (send(fd, part.at, part.len, MSG_NOSIGNAL) != (ssize_t)part.len) break;
        left = str_skip(left, part.len);
    }
    buf_clear(sealed);
}

static void answer_byte_by_byte(struct host *host, int fd) {
    if (!make_flight(fd)) return;
    send_cut(fd, 1);
    if (hear_request(host, fd)) {
        seal(fd, STR(HELLO));
        send_cut(fd, 1);
        (void)hear_request(host, fd);
    }
    peer_secure_shut(fd);
}

/* Each byte in a record of its own, and empty ones between them; all in one piece. */
static void answer_in_tiny_records(struct host *host, int fd) {
    peer_secure_open(fd);
    if (hear_request(host, fd)) {
        for (size_t i = 0; i < sizeof(HELLO) - 1; i++) seal(fd, str_of(&HELLO[i], 1));
        send_cut(fd, SIZE_MAX);
        (void)hear_request(host, fd);
    }
    peer_secure_shut(fd);
}

static void records_read_the_same_however_they_are_cut(void **state) {
    (void)state;
    host_fn *const kinds[] = {answer_byte_by_byte, answer_in_tiny_records};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct host host;
        struct ask ask = {0};
        host_open(&host, kinds[i], NULL);
        struct http_request request = request_of(&host);
        ask_once(&ask, &request);
        assert_str(buf_str(&ask.heard), "200 text/plain;hello;whole");
        host_shut(&host);
        ask_done(&ask);
    }
}

/* --- the end ------------------------------------------------------------------------------ */

enum ending { TOLD, CUT, RESET, GARBAGE, OVERLONG };

struct story {
    const char *bytes;
    enum ending ending;
    const char *heard, *why;
};

static void send_raw(int fd, struct str bytes) {
    (void)send(fd, bytes.at, bytes.len, MSG_NOSIGNAL);
}

static void tell(struct host *host, int fd) {
    const struct story *story = host->ctx;
    struct linger now = {.l_onoff = 1};
    peer_secure_open(fd);
    if (hear_request(host, fd)) {
        if (*story->bytes) seal(fd, str_from(story->bytes));
        (void)peer_secure_flush(fd);
    }
    switch (story->ending) {
    case TOLD: peer_secure_shut(fd); return;
    case CUT: break;
    case RESET: setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)); break;
    case GARBAGE:
        send_raw(fd, STR("\x17\x03\x03\x00\x20"
                         "these 32 bytes were never sealed"));
        break;
    case OVERLONG:
        send_raw(fd, STR("\x17\x03\x03\xff\xff"
                         "longer than a record may be"));
        break;
    }
    if (story->ending != RESET) {
        shutdown(fd, SHUT_WR);
        char byte;
        while (recv(fd, &byte, 1, 0) > 0) {
        }
    }
    records_free(peer_secures[fd]->records);
    buf_done(&peer_secures[fd]->plain);
    buf_done(&peer_secures[fd]->sealed);
    free(peer_secures[fd]);
    peer_secures[fd] = NULL;
}

static void an_end_counts_when_it_is_reported(void **state) {
    (void)state;
    static const struct story stories[] = {
        {OK_PLAIN "\r\nhello", TOLD, "200 text/plain;hello;whole", ""},
        {OK_PLAIN "\r\nhello", CUT, "200 text/plain;helloUNAVAILABLE",
         "cut short (the connection ended and TLS did not)"},
        {OK_PLAIN "\r\nhello", RESET, "200 text/plain;helloUNAVAILABLE", "reset"},
        {OK_PLAIN "\r\nhello", GARBAGE, "200 text/plain;helloUNAVAILABLE", "bad record mac)"},
        {OK_PLAIN "\r\nhello", OVERLONG, "200 text/plain;helloUNAVAILABLE", "TLS fails ("},
        {HELLO, TOLD, "200 text/plain;hello;whole", ""},
        {HELLO, CUT, "200 text/plain;hello;whole", ""},
        {OK_PLAIN "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", CUT,
         "200 text/plain;hello;whole", ""},
        {OK_PLAIN "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", TOLD,
         "200 text/plain;helloUNAVAILABLE", "cut short"},
        {OK_PLAIN "Content-Length: 9\r\n\r\nhello", TOLD, "200 text/plain;helloUNAVAILABLE",
         "cut short"},
        {OK_PLAIN "Content-Length: 9\r\n\r\nhello", CUT, "200 text/plain;helloUNAVAILABLE",
         "cut short"},
        {"", TOLD, "UNAVAILABLE", "without an answer"},
        {"", CUT, "UNAVAILABLE", "without an answer"},
        {"", GARBAGE, "UNAVAILABLE", "TLS fails ("},
        {OK_PLAIN, TOLD, "UNAVAILABLE", "cut short"},
        {OK_PLAIN, CUT, "UNAVAILABLE", "cut short"},
    };
    for (size_t i = 0; i < ARRAY_LEN(stories); i++) {
        struct story story = stories[i];
        struct host host;
        struct ask ask = {0};
        host_open(&host, tell, &story);
        struct http_request request = request_of(&host);
        ask_once(&ask, &request);
        if (!str_equal(buf_str(&ask.heard), str_from(story.heard)) ||
            !strstr(ask.why, story.why))
            fail_msg("%zu: '" STR_FMT "': %s", i, STR_ARG(buf_str(&ask.heard)), ask.why);
        assert_int_equal(atomic_load(&host.requests), 1);
        host_shut(&host);
        ask_done(&ask);
    }
}

/* --- links that stay ---------------------------------------------------------------------- */

static bool was_resumed(int fd) {
    return openssl_loaded()->SSL_session_reused(records_state(peer_secures[fd]->records)) == 1;
}

static void answer_and_close(struct host *host, int fd) {
    peer_secure_open(fd);
    if (hear_request(host, fd)) {
        atomic_fetch_add(&host->resumed, was_resumed(fd));
        seal(fd, STR(OK_PLAIN "Connection: close\r\nContent-Length: 5\r\n\r\nhello"));
        (void)peer_secure_flush(fd);
    }
    peer_secure_shut(fd);
}

static void a_server_is_come_back_to_with_its_ticket(void **state) {
    (void)state;
    struct host host;
    struct asker asker;
    host_open(&host, answer_and_close, NULL);
    asker_open(&asker);
    for (int i = 0; i < 10; i++) {
        struct ask ask = {0};
        struct http_request request = request_of(&host);
        ask_start(&ask, &asker, &request);
        loop_run(asker.loop);
        assert_str(buf_str(&ask.heard), "200 text/plain;hello;whole");
        assert_int_equal(atomic_load(&host.resumed), i);
        ask_done(&ask);
    }
    asker_shut(&asker);
    host_shut(&host);
}

static int (*give_ticket)(SSL *);

static void find_give_ticket(void) {
    void *library = dlopen("libssl.so.3", RTLD_NOW);
    void *found = library ? dlsym(library, "SSL_new_session_ticket") : NULL;
    assert(found);
    memcpy(&give_ticket, &found, sizeof(found));
}

/* While the link is idle: first a ticket, which says nothing, and then the end. */
static void answer_and_give_tickets(struct host *host, int fd) {
    atomic_bool *ends = host->ctx;
    peer_secure_open(fd);
    while (hear_request(host, fd)) {
        struct peer_secure *secure = peer_secures[fd];
        seal(fd, STR(HELLO));
        (void)peer_secure_flush(fd);
        usleep(10000); /* the client has it, and its link is idle */
        give_ticket(records_state(secure->records));
        (void)records_receive(secure->records, STR_EMPTY, &secure->plain, &secure->sealed);
        assert(secure->sealed.len);
        (void)peer_secure_flush(fd);
        if (atomic_load(ends)) break;
    }
    peer_secure_shut(fd);
}

struct pause {
    struct loop *loop;
    struct timer timer;
};

static void stop_loop(void *ctx) {
    loop_stop(ctx);
}

static void run_for(struct loop *loop, uint64_t ms) {
    struct timer timer;
    timer_init(&timer, loop, stop_loop, loop);
    timer_start(&timer, ms);
    loop_run(loop);
}

static void an_idle_link_takes_tickets_and_nothing_else(void **state) {
    (void)state;
    struct host host;
    struct asker asker;
    atomic_bool ends = false;
    find_give_ticket();
    host_open(&host, answer_and_give_tickets, &ends);
    asker_open(&asker);
    for (int i = 0; i < 3; i++) {
        struct ask ask = {0};
        struct http_request request = request_of(&host);
        atomic_store(&ends, i == 1);
        ask_start(&ask, &asker, &request);
        loop_run(asker.loop);
        assert_str(buf_str(&ask.heard), "200 text/plain;hello;whole");
        assert_int_equal(atomic_load(&host.accepted), i == 2 ? 2 : 1);
        ask_done(&ask);
        run_for(asker.loop, 60);
    }
    asker_shut(&asker);
    host_shut(&host);
}

/* --- cancelling --------------------------------------------------------------------------- */

static void answer_half(struct host *host, int fd) {
    peer_secure_open(fd);
    if (hear_request(host, fd)) {
        seal(fd, STR(OK_PLAIN "Content-Length: 9\r\n\r\nhello"));
        (void)peer_secure_flush(fd);
        (void)hear_request(host, fd);
    }
    peer_secure_shut(fd);
}

struct cancel {
    struct ask *ask;
    struct timer timer;
};

static void cancel_now(void *ctx) {
    struct cancel *cancel = ctx;
    http_cancel(cancel->ask->call);
    ask_over(cancel->ask);
}

/* However far it came: with the first turns OpenSSL is not loaded yet, then there is no
 * connection, then no answer. */
static void a_call_is_cancelled_at_any_moment(void **state) {
    (void)state;
    host_fn *const kinds[] = {be_silent, drip, answer_half};
    for (size_t i = 0; i < ARRAY_LEN(kinds) * 12; i++) {
        struct host host;
        struct asker asker;
        struct ask ask = {0};
        struct cancel cancel = {.ask = &ask};
        host_open(&host, kinds[i % ARRAY_LEN(kinds)], NULL);
        asker_open(&asker);
        struct http_request request = request_of(&host);
        ask_start(&ask, &asker, &request);
        timer_init(&cancel.timer, asker.loop, cancel_now, &cancel);
        timer_start(&cancel.timer, i / ARRAY_LEN(kinds));
        loop_run(asker.loop);
        assert_int_equal(ask.ends, 0);
        asker_shut(&asker); /* perhaps while the authorities are read */
        host_shut(&host);
        ask_done(&ask);
    }
}

/* Paused before there is a connection: the handshake goes on, and the request leaves. The head
 * is heard, as over http:, and the body waits. */
static void a_call_may_be_paused_before_its_handshake(void **state) {
    (void)state;
    struct host host;
    struct asker asker;
    struct ask ask = {0};
    host_open(&host, answer_half, NULL);
    asker_open(&asker);
    struct http_request request = request_of(&host);
    request.connect_ms = 5000;
    ask_start(&ask, &asker, &request);
    http_pause(ask.call);
    while (atomic_load(&host.requests) == 0) run_for(asker.loop, 5);
    run_for(asker.loop, 30);
    assert_int_equal(ask.bytes, 0);
    ask.cancels = AT_BODY;
    http_resume(ask.call);
    loop_run(asker.loop);
    assert_str(buf_str(&ask.heard), "200 text/plain;hello");
    asker_shut(&asker);
    host_shut(&host);
    ask_done(&ask);
}

/* A pause holds what the server answers, not that there is no server to trust. */
static void a_paused_call_hears_that_its_handshake_failed(void **state) {
    (void)state;
    struct host host;
    struct asker asker;
    struct ask ask = {0};
    host_open(&host, speak_plainly, NULL);
    asker_open(&asker);
    struct http_request request = request_of(&host);
    ask_start(&ask, &asker, &request);
    http_pause(ask.call);
    loop_run(asker.loop);
    assert_str(buf_str(&ask.heard), "UNAVAILABLE");
    assert_non_null(strstr(ask.why, "what answers there is not TLS"));
    asker_shut(&asker);
    host_shut(&host);
    ask_done(&ask);
}

/* --- a long request ----------------------------------------------------------------------- */

enum { UPLOAD_BYTES = 5 * 1024 * 1024 };

struct upload {
    size_t bytes;
    uint32_t sum;
};

static uint32_t add(uint32_t sum, struct str bytes) {
    for (size_t i = 0; i < bytes.len; i++) sum = sum * 31 + (unsigned char)bytes.at[i];
    return sum;
}

static void take_upload(struct host *host, int fd) {
    struct upload *upload = host->ctx;
    char bytes[64 * 1024];
    size_t len = 0, head = 0;
    peer_secure_open(fd);
    while (head == 0) {
        len += (size_t)peer_secure_recv(fd, bytes + len, sizeof(bytes) - len);
        size_t end = str_find(str_of(bytes, len), STR("\r\n\r\n"));
        if (end < len) head = end + 4;
    }
    struct str part = str_of(bytes + head, len - head);
    for (;;) {
        upload->bytes += part.len;
        upload->sum = add(upload->sum, part);
        if (upload->bytes >= UPLOAD_BYTES) break;
        ssize_t got = peer_secure_recv(fd, bytes, sizeof(bytes));
        assert(got > 0);
        part = str_of(bytes, (size_t)got);
    }
    seal(fd, STR(HELLO));
    (void)peer_secure_flush(fd);
    (void)peer_secure_recv(fd, bytes, 1);
    peer_secure_shut(fd);
}

static void a_long_body_arrives_as_it_is(void **state) {
    (void)state;
    struct host host;
    struct upload upload = {0};
    struct ask ask = {0};
    char *body = mem_alloc(UPLOAD_BYTES);
    for (size_t i = 0; i < UPLOAD_BYTES; i++) body[i] = (char)(i * 2654435761u >> 24);
    host_open(&host, take_upload, &upload);
    struct http_request request = request_of(&host);
    request.method = STR("POST");
    request.body = str_of(body, UPLOAD_BYTES);
    ask_once(&ask, &request);
    host_shut(&host);
    assert_str(buf_str(&ask.heard), "200 text/plain;hello;whole");
    assert_int_equal(upload.bytes, UPLOAD_BYTES);
    assert_int_equal(upload.sum, add(0, request.body));
    ask_done(&ask);
    free(body);
}

/* --- whom we trust ------------------------------------------------------------------------ */

/* Nothing of a failure stays: what is mended counts for the next call. */
static void authorities_that_fail_are_read_again(void **state) {
    (void)state;
    struct host host;
    struct asker asker;
    struct ask before[3] = {0}, after = {0};
    host_open(&host, answer_and_close, NULL);
    asker_open(&asker);
    struct http_request request = request_of(&host);
    setenv("SSL_CERT_FILE", certificates_path("gone", "pem"), 1);
    for (size_t i = 0; i < ARRAY_LEN(before); i++) ask_start(&before[i], &asker, &request);
    loop_run(asker.loop);
    for (size_t i = 0; i < ARRAY_LEN(before); i++) {
        assert_str(buf_str(&before[i].heard), "UNAVAILABLE");
        assert_non_null(strstr(before[i].why, "gone.pem' (No such file or directory)"));
        assert_int_equal(before[i].stage, HTTP_CONNECTING);
        ask_done(&before[i]);
    }
    setenv("SSL_CERT_FILE", certificates_path("root", "pem"), 1);
    ask_start(&after, &asker, &request);
    loop_run(asker.loop);
    assert_str(buf_str(&after.heard), "200 text/plain;hello;whole");
    ask_done(&after);
    asker_shut(&asker);
    host_shut(&host);
}

/* Over what the environment says. */
static void a_setting_names_a_file_or_a_folder(void **state) {
    (void)state;
    struct host host;
    char folder[128];
    snprintf(folder, sizeof(folder), "%s/trusted", certificates_folder);
    host_open(&host, answer_and_close, NULL);
    assert_int_equal(certificates_run("mkdir trusted && cp root.pem trusted/any"), 0);
    const struct {
        const char *path, *heard;
    } cases[] = {
        {certificates_path("root", "pem"), "200 text/plain;hello;whole"},
        {folder, "200 text/plain;hello;whole"},
        {certificates_path("gone", "pem"), "UNAVAILABLE"},
        {"", "UNAVAILABLE"}, /* as the environment says */
    };
    setenv("SSL_CERT_FILE", certificates_path("peer", "key"), 1);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct asker asker;
        struct ask ask = {0};
        asker_open(&asker);
        http_pool_trust(asker.pool, str_from(cases[i].path));
        struct http_request request = request_of(&host);
        ask_start(&ask, &asker, &request);
        loop_run(asker.loop);
        assert_str(buf_str(&ask.heard), cases[i].heard);
        assert_true(ask.code == ERR_NONE || strstr(ask.why, "tls.trust or SSL_CERT_FILE"));
        ask_done(&ask);
        asker_shut(&asker);
    }
    setenv("SSL_CERT_FILE", certificates_path("root", "pem"), 1);
    host_shut(&host);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_handshake_that_fails_ends_the_call_and_says_how),
        cmocka_unit_test(records_read_the_same_however_they_are_cut),
        cmocka_unit_test(an_end_counts_when_it_is_reported),
        cmocka_unit_test(a_server_is_come_back_to_with_its_ticket),
        cmocka_unit_test(an_idle_link_takes_tickets_and_nothing_else),
        cmocka_unit_test(a_call_is_cancelled_at_any_moment),
        cmocka_unit_test(a_call_may_be_paused_before_its_handshake),
        cmocka_unit_test(a_paused_call_hears_that_its_handshake_failed),
        cmocka_unit_test(a_long_body_arrives_as_it_is),
        cmocka_unit_test(authorities_that_fail_are_read_again),
        cmocka_unit_test(a_setting_names_a_file_or_a_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
