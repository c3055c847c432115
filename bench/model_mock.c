/* model_mock: a model that answers at a steady pace, as OpenAI's API frames it.
 *
 *   model_mock PORTS_FILE TOKENS [PER_SECOND [CERTIFICATE KEY]]
 *
 * Each POST gets an event stream of TOKENS chunks of about 270 bytes, PER_SECOND of them
 * (100 unless said) from a random moment on, then usage and [DONE]; the connection stays open
 * for the next request. The text of a chunk is its stamp, "@<microseconds>#<number>": the
 * moment of its send on the monotonic clock, so that whoever reads it at the far end, through
 * whatever stands in between, knows how long it was under way.
 *
 * A connection that begins with HTTP/2's preface gets HTTP/2, and with a certificate so does one that
 * begins with TLS. What its streams say in a turn of the wheel leaves in one write.
 *
 * Tokens are sent by a wheel of slots of 100 microseconds. A reader that lets the socket fill
 * up is cut off: this measures what keeps pace.
 *
 * Threads  none; ends at SIGTERM.
 * Source   platform.openai.com, "Streaming": chat.completion.chunk objects.
 */
#include "mock_h2.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/units.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define SLOT_US 100u
#define SECOND_US 1000000u
#define SLOTS_MAX 10000
#define REQUEST_MAX_BYTES (64 * KIB)
#define CHUNK_MAX_BYTES 512
#define POLL_EVENTS 64

struct peer {
    int fd;
    struct mock_h2 *h2;    /* NULL: HTTP/1.1, whose one call is this: */
    struct mock_call call; /* in its slot, while it is being answered */
    struct buf in;
    struct list link;
};

struct mock {
    int epoll, listener, timer;
    unsigned tokens, slot_count;
    uint64_t start_us, turned; /* slots since the start */
    uint64_t dice;
    struct ssl_ctx_st *tls; /* NULL: without */
    struct list shared;     /* peers of HTTP/2 */
    struct list slots[SLOTS_MAX];
};

static const struct str head = STR_INIT("HTTP/1.1 200 OK\r\n"
                                        "content-type: text/event-stream\r\n"
                                        "cache-control: no-cache\r\n"
                                        "transfer-encoding: chunked\r\n\r\n");

#define CHUNK(choice)                                                                          \
    "data: {\"id\":\"chatcmpl-8Zt2mQ0fVb3yXn5cRw7uKp1sDh4gLj\","                               \
    "\"object\":\"chat.completion.chunk\",\"created\":1763800000,\"model\":\"mock-1-2026\","   \
    "\"service_tier\":\"default\",\"system_fingerprint\":\"fp_0a1b2c3d4e\",\"choices\":["      \
    "{\"index\":0," choice "}]}\n\n"

#define ENDING                                                                                 \
    CHUNK("\"delta\":{},\"finish_reason\":\"stop\"")                                           \
    "data: {\"object\":\"chat.completion.chunk\",\"choices\":[],\"usage\":"                    \
    "{\"prompt_tokens\":5,\"completion_tokens\":%u,\"total_tokens\":%u}}\n\n"                  \
    "data: [DONE]\n\n"

/* ---- peers ---- */

static void peer_close(struct peer *peer) {
    list_remove(&peer->call.link);
    list_remove(&peer->link);
    if (peer->h2)
        mock_h2_free(peer->h2);
    else
        close(peer->fd);
    buf_done(&peer->in);
    free(peer);
}

/* False: the peer is gone. */
static bool peer_send(struct peer *peer, struct str bytes) {
    ssize_t sent = send(peer->fd, bytes.at, bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent == (ssize_t)bytes.len) return true;
    peer_close(peer);
    return false;
}

/* One piece of the chunked body. */
static bool peer_say(struct peer *peer, struct str text) {
    char piece[2 * CHUNK_MAX_BYTES + 64];
    int len = snprintf(piece, sizeof(piece), "%zx\r\n" STR_FMT "\r\n", text.len, STR_ARG(text));
    assert(len > 0 && (size_t)len < sizeof(piece));
    return peer_send(peer, str_of(piece, (size_t)len));
}

static void say(struct mock_call *call, struct str text) {
    if (call->h2)
        mock_h2_say(call, text);
    else
        (void)peer_say(CONTAINER_OF(call, struct peer, call), text);
}

static void say_last(struct mock_call *call, struct str text) {
    struct peer *peer = CONTAINER_OF(call, struct peer, call);
    list_remove(&call->link);
    if (call->h2)
        mock_h2_end(call, text);
    else if (peer_say(peer, text))
        (void)peer_send(peer, STR("0\r\n\r\n"));
}

/* A call without a window waits for its next turn. */
static void call_next(const struct mock *mock, struct mock_call *call) {
    char text[2 * CHUNK_MAX_BYTES];
    int len;
    if (call->h2 && !mock_h2_has_room(call, sizeof(text))) return;
    if (call->said < mock->tokens) {
        len = snprintf(text, sizeof(text),
                       CHUNK("\"delta\":{\"content\":\"@%llu#%u \"},\"logprobs\":null,"
                             "\"finish_reason\":null"),
                       (unsigned long long)clock_mono_us(), call->said);
        call->said++;
        say(call, str_of(text, (size_t)len));
        return;
    }
    len = snprintf(text, sizeof(text), ENDING, mock->tokens, mock->tokens + 5);
    say_last(call, str_of(text, (size_t)len));
}

/* ---- requests ---- */

/* A whole POST at the start of `in`; its length, or 0 while it is not whole. */
static size_t request_len(struct str in) {
    struct str rest;
    uint64_t body = 0;
    size_t end = str_find(in, STR("\r\n\r\n"));
    size_t named = str_find_nocase(str_head(in, end), STR("\r\ncontent-length:"));
    if (end == in.len) return 0;
    struct str value = str_split(str_skip(in, named + 17), '\r', &rest);
    if (named < end && !str_to_u64(str_trim(value), &body)) return 0;
    return in.len >= end + 4 + body ? end + 4 + (size_t)body : 0;
}

static void schedule(struct mock *mock, struct mock_call *call) {
    mock->dice ^= mock->dice << 13;
    mock->dice ^= mock->dice >> 7;
    mock->dice ^= mock->dice << 17;
    call->said = 0;
    list_append(&mock->slots[mock->dice % mock->slot_count], &call->link);
}

static void on_ask(struct mock_call *call, void *ctx) {
    mock_h2_begin(call);
    schedule(ctx, call);
}

/* Whether the peer has begun to speak HTTP/2, or TLS, in which it is spoken. */
static bool is_shared(const struct mock *mock, const struct peer *peer, bool *ret_tls) {
    char first[4];
    if (recv(peer->fd, first, sizeof(first), MSG_PEEK | MSG_DONTWAIT) < (ssize_t)sizeof(first))
        return false;
    *ret_tls = mock->tls && first[0] == 0x16;
    return *ret_tls || memcmp(first, "PRI ", 4) == 0;
}

static void read_peer(struct mock *mock, struct peer *peer) {
    bool tls;
    if (!peer->h2 && !peer->in.len && is_shared(mock, peer, &tls)) {
        peer->h2 = mock_h2_new(peer->fd, tls ? mock->tls : NULL, on_ask, mock);
        list_append(&mock->shared, &peer->link);
    }
    if (peer->h2) {
        if (!mock_h2_read(peer->h2)) peer_close(peer);
        return;
    }
    char *room = buf_room(&peer->in, 4 * KIB);
    ssize_t got = room ? recv(peer->fd, room, 4 * KIB, MSG_DONTWAIT) : 0;
    if (got <= 0) {
        peer_close(peer);
        return;
    }
    buf_grew(&peer->in, (size_t)got);
    size_t len = request_len(buf_str(&peer->in));
    if (len == 0 || list_linked(&peer->call.link)) return;
    buf_drop(&peer->in, len);
    if (peer->in.len == 0) buf_release(&peer->in);
    if (peer_send(peer, head)) schedule(mock, &peer->call);
}

static void accept_all(struct mock *mock) {
    int fd, yes = 1;
    while ((fd = accept4(mock->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct peer *peer = MEM_NEW(struct peer);
        struct epoll_event want = {.events = EPOLLIN, .data.ptr = peer};
        peer->fd = fd;
        list_init(&peer->link);
        list_init(&peer->call.link);
        buf_init(&peer->in, REQUEST_MAX_BYTES);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
        if (epoll_ctl(mock->epoll, EPOLL_CTL_ADD, fd, &want) < 0) peer_close(peer);
    }
}

/* ---- time ---- */

/* What was missed while others had the core is made up for: the pace stands. */
static void turn_wheel(struct mock *mock) {
    uint64_t due = (clock_mono_us() - mock->start_us) / SLOT_US;
    uint64_t expired;
    (void)!read(mock->timer, &expired, sizeof(expired));
    for (; mock->turned < due; mock->turned++) {
        struct list *slot = &mock->slots[mock->turned % mock->slot_count];
        LIST_EACH(slot, link) call_next(mock, CONTAINER_OF(link, struct mock_call, link));
    }
    LIST_EACH(&mock->shared, link) {
        struct peer *peer = CONTAINER_OF(link, struct peer, link);
        if (!mock_h2_flush(peer->h2)) peer_close(peer);
    }
}

static void serve(struct mock *mock) {
    struct epoll_event ready[POLL_EVENTS];
    for (;;) {
        int count = epoll_wait(mock->epoll, ready, POLL_EVENTS, -1);
        /* Requests first: the wheel may end a peer that stands further down in `ready`. */
        bool ticked = false;
        for (int i = 0; i < count; i++) {
            if (ready[i].data.ptr == &mock->timer) {
                ticked = true;
            } else if (ready[i].data.ptr == &mock->listener) {
                accept_all(mock);
            } else {
                read_peer(mock, ready[i].data.ptr);
            }
        }
        if (ticked) turn_wheel(mock);
    }
}

/* ---- start ---- */

static int listen_anywhere(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 4096) < 0) {
        perror("model_mock: listen");
        exit(1);
    }
    return fd;
}

static void tell_port(int listener, const char *path) {
    struct sockaddr_in at;
    socklen_t len = sizeof(at);
    FILE *file = fopen(path, "we");
    if (!file || getsockname(listener, (struct sockaddr *)&at, &len) < 0) {
        perror("model_mock: ports file");
        exit(1);
    }
    fprintf(file, "{\"http\": %d}\n", ntohs(at.sin_port));
    fclose(file);
}

static void watch(const struct mock *mock, int fd, void *what) {
    struct epoll_event want = {.events = EPOLLIN, .data.ptr = what};
    if (epoll_ctl(mock->epoll, EPOLL_CTL_ADD, fd, &want) == 0) return;
    perror("model_mock: epoll_ctl");
    exit(1);
}

static bool arguments(int argc, char **argv, struct mock *mock) {
    uint64_t tokens, per_second = 100;
    if (argc < 3 || argc == 5 || argc > 6 || !str_to_u64(str_from(argv[2]), &tokens))
        return false;
    if (argc > 3 && !str_to_u64(str_from(argv[3]), &per_second)) return false;
    if (argc == 6 && !(mock->tls = mock_h2_tls(argv[4], argv[5]))) return false;
    if (per_second < 1 || per_second > SECOND_US / SLOT_US || tokens > SECOND_US) return false;
    mock->tokens = (unsigned)tokens;
    mock->slot_count = SECOND_US / SLOT_US / (unsigned)per_second;
    return true;
}

int main(int argc, char **argv) {
    struct mock *mock = MEM_NEW(struct mock);
    const struct itimerspec each = {{0, SLOT_US * 1000}, {0, SLOT_US * 1000}};
    if (!arguments(argc, argv, mock)) {
        fprintf(stderr, "model_mock: the usage stands at the top of bench/model_mock.c\n");
        return 2;
    }
    for (unsigned i = 0; i < mock->slot_count; i++) list_init(&mock->slots[i]);
    list_init(&mock->shared);
    mock->dice = UINT64_C(88172645463325252);
    mock->start_us = clock_mono_us();
    mock->epoll = epoll_create1(EPOLL_CLOEXEC);
    mock->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    mock->listener = listen_anywhere();
    timerfd_settime(mock->timer, 0, &each, NULL);
    watch(mock, mock->timer, &mock->timer);
    watch(mock, mock->listener, &mock->listener);
    tell_port(mock->listener, argv[1]);
    serve(mock);
}
