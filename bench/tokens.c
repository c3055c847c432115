#include "tokens.h"

#include "h2.h"
#include "proc.h"
#include "samples.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECOND_US 1000000u
#define WARM_US 500000u /* after the last request */
#define SILENCE_US 10000000u
#define POLL_EVENTS 64
#define READ_BYTES (64 * KIB)
#define STAMP_MAX_BYTES 40 /* "@<20 digits>#<7 digits> " and some */
#define RAMP_US 300u /* between two requests: nobody's queue of new connections overflows */

struct asked {
    struct tokens *all;
    int fd; /* -1: a stream of a shared connection */
    unsigned tokens;
    bool headed, done;
    size_t held; /* bytes of an unfinished stamp, or of the head */
    char hold[STAMP_MAX_BYTES];
};

struct tokens {
    const struct tokens_options *options;
    int epoll;
    struct asked *asked;
    size_t count, done;
    struct h2 *shared; /* options->connections of them */
    bool measuring;
    uint64_t seen, heard_us;
    struct samples delay_us;
    char room[STAMP_MAX_BYTES + READ_BYTES];
};

/* ---- stamps ---- */

/* The number at the start of `text`, which moves behind it; false without one. */
static bool take_number(struct str *text, uint64_t *ret) {
    size_t len = 0;
    while (len < text->len && text->at[len] >= '0' && text->at[len] <= '9') len++;
    if (!str_to_u64(str_head(*text, len), ret)) return false;
    *text = str_skip(*text, len);
    return true;
}

/* `stamp` begins behind the '@' and is whole. */
static bool take_stamp(struct tokens *tokens, struct asked *asked, struct str stamp,
                       uint64_t now_us, struct err *e) {
    uint64_t sent_us, number;
    if (!take_number(&stamp, &sent_us) || !str_starts(stamp, STR("#"))) return true; /* none */
    stamp = str_skip(stamp, 1);
    if (!take_number(&stamp, &number)) return true;
    if (number != asked->tokens)
        return err_set(e, ERR_DATA_LOSS, "token %u was due and %" PRIu64 " came", asked->tokens,
                       number);
    asked->tokens++;
    tokens->seen++;
    if (tokens->measuring)
        samples_add(&tokens->delay_us, (uint32_t)(now_us > sent_us ? now_us - sent_us : 0));
    return true;
}

/* The stamps of all but an unfinished end; that is kept for the next read. A server may repeat
 * the whole text at the end: behind the last token nothing is a token any more. */
static bool take_stamps(struct tokens *tokens, struct asked *asked, struct str bytes,
                        uint64_t now_us, struct err *e) {
    asked->held = 0;
    while (bytes.len && asked->tokens < tokens->options->tokens) {
        size_t at = str_find_byte(bytes, '@');
        bytes = str_skip(bytes, at);
        size_t len = str_find_byte(bytes, ' ');
        if (bytes.len == 0) return true;
        if (len == bytes.len && len < STAMP_MAX_BYTES) {
            memcpy(asked->hold, bytes.at, len);
            asked->held = len;
            return true;
        }
        if (!take_stamp(tokens, asked, str_skip(str_head(bytes, len), 1), now_us, e))
            return false;
        bytes = str_skip(bytes, 1);
    }
    return true;
}

/* ---- connections ---- */

#define BODY_END STR("\r\n0\r\n\r\n")

/* The end of the chunked body, which may come in pieces. */
static bool take_end(struct tokens *tokens, struct asked *asked, struct str bytes,
                     struct err *e) {
    if (str_ends(bytes, BODY_END)) {
        if (asked->tokens != tokens->options->tokens)
            return err_set(e, ERR_DATA_LOSS, "a turn ended after %u tokens", asked->tokens);
        asked->done = true;
        tokens->done++;
    } else if (asked->tokens == tokens->options->tokens) {
        struct str tail =
            str_skip(bytes, bytes.len > BODY_END.len ? bytes.len - BODY_END.len : 0);
        memcpy(asked->hold, tail.at, tail.len);
        asked->held = tail.len;
    }
    return true;
}

static bool take_bytes(struct tokens *tokens, struct asked *asked, struct str bytes,
                       struct err *e) {
    uint64_t now_us = clock_mono_us();
    if (!asked->headed) {
        struct str said = str_head(bytes, str_find_byte(bytes, '\r'));
        if (!str_starts(said, STR("HTTP/1.1 200")))
            return err_set(e, ERR_UNAVAILABLE, "the answer is '" STR_FMT "'", STR_ARG(said));
        asked->headed = true;
    }
    return take_stamps(tokens, asked, bytes, now_us, e) && take_end(tokens, asked, bytes, e);
}

static bool read_asked(struct tokens *tokens, struct asked *asked, struct err *e) {
    memcpy(tokens->room, asked->hold, asked->held);
    ssize_t got = recv(asked->fd, tokens->room + asked->held, READ_BYTES, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got > 0)
        return take_bytes(tokens, asked, str_of(tokens->room, asked->held + (size_t)got), e);
    return err_set(e, ERR_UNAVAILABLE, "the server closed a connection after %u tokens",
                   asked->tokens);
}

#define BODY_MAX_BYTES 512

/* Its length. Every contract finds its own members in it, and passes over those of the others. */
static int write_body(char *body, size_t room, size_t index) {
    char name[64];
    snprintf(name, sizeof(name), "turn-%zu-%" PRId64, index, clock_unix_ms());
    return snprintf(
        body, room,
        "{\"input\":\"go\",\"session_id\":\"%s\",\"model\":\"mock-1\",\"stream\":true,"
        "\"messages\":[{\"id\":\"1\",\"role\":\"user\",\"content\":\"hello\"}],"
        "\"max_tokens\":1000000,\"threadId\":\"%s\",\"runId\":\"1\",\"message\":{\"messageId\":"
        "\"%s\","
        "\"contextId\":\"%s\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"hello\"}]}}",
        name, name, name, name);
}

static bool send_request(const struct tokens_options *options, size_t index, int fd,
                         struct err *e) {
    char body[BODY_MAX_BYTES], request[2 * BODY_MAX_BYTES];
    int len = write_body(body, sizeof(body), index);
    len = snprintf(request, sizeof(request),
                   "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                   "Content-Length: %d\r\n\r\n%s",
                   options->path, len, body);
    return send(fd, request, (size_t)len, MSG_NOSIGNAL) == len ||
           err_set(e, ERR_UNAVAILABLE, "send: %s", strerror(errno));
}

/* ---- shared connections ---- */

static bool on_stream_bytes(struct h2_stream *stream, struct str bytes, struct err *e) {
    struct asked *asked = stream->user;
    struct tokens *tokens = asked->all;
    if (stream->http_status != 200)
        return err_set(e, ERR_UNAVAILABLE, "the answer is %d", stream->http_status);
    for (uint64_t now_us = clock_mono_us(); bytes.len;) {
        struct str part = str_head(bytes, READ_BYTES);
        bytes = str_skip(bytes, part.len);
        memcpy(tokens->room, asked->hold, asked->held);
        memcpy(tokens->room + asked->held, part.at, part.len);
        struct str whole = str_of(tokens->room, asked->held + part.len);
        if (!take_stamps(tokens, asked, whole, now_us, e)) return false;
    }
    return true;
}

static bool on_stream_end(struct h2_stream *stream, struct err *e) {
    struct asked *asked = stream->user;
    if (asked->tokens != asked->all->options->tokens)
        return err_set(e, ERR_DATA_LOSS, "a turn ended after %u tokens", asked->tokens);
    asked->done = true;
    asked->all->done++;
    return true;
}

static bool flush(struct h2 *h2, struct err *e) {
    bool left;
    if (!h2_flush(h2, &left, e)) return false;
    return !left || err_set(e, ERR_UNAVAILABLE, "the server does not read");
}

static bool read_shared(struct h2 *h2, struct err *e) {
    return h2_read(h2, e) && flush(h2, e);
}

static bool connect_shared(struct tokens *tokens, struct err *e) {
    size_t count = tokens->options->connections;
    tokens->shared = count ? mem_zero(count, sizeof(struct h2)) : NULL;
    for (size_t i = 0; i < count; i++) {
        struct h2 *h2 = &tokens->shared[i];
        struct epoll_event want = {.events = EPOLLIN, .data.ptr = h2};
        if (!h2_connect(h2, tokens->options->port, e)) return false;
        h2->on_bytes = on_stream_bytes;
        h2->on_end = on_stream_end;
        if (epoll_ctl(tokens->epoll, EPOLL_CTL_ADD, h2->fd, &want) < 0)
            return err_set(e, ERR_INTERNAL, "epoll_ctl: %s", strerror(errno));
        if (!flush(h2, e)) return false;
    }
    return true;
}

static bool ask_shared(struct tokens *tokens, struct err *e) {
    struct h2 *h2 = &tokens->shared[tokens->count % tokens->options->connections];
    struct asked *asked = &tokens->asked[tokens->count];
    char body[BODY_MAX_BYTES];
    int len = write_body(body, sizeof(body), tokens->count++);
    struct h2_stream *stream = h2_post(h2, str_from(tokens->options->path));
    *asked = (struct asked){.all = tokens, .fd = -1};
    stream->user = asked;
    h2_send_bytes(h2, stream, str_of(body, (size_t)len));
    h2_half_close(h2, stream);
    return flush(h2, e);
}

/* ---- all ---- */

static bool ask(struct tokens *tokens, struct err *e) {
    if (tokens->shared) return ask_shared(tokens, e);
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)tokens->options->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct asked *asked = &tokens->asked[tokens->count];
    struct epoll_event want = {.events = EPOLLIN, .data.ptr = asked};
    int yes = 1;
    asked->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (asked->fd < 0 || connect(asked->fd, (struct sockaddr *)&at, sizeof(at)) < 0)
        return err_set(e, ERR_UNAVAILABLE, "connect: %s", strerror(errno));
    (void)setsockopt(asked->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    if (epoll_ctl(tokens->epoll, EPOLL_CTL_ADD, asked->fd, &want) < 0)
        return err_set(e, ERR_INTERNAL, "epoll_ctl: %s", strerror(errno));
    return send_request(tokens->options, tokens->count++, asked->fd, e);
}

static bool poll_until(struct tokens *tokens, uint64_t until_us, struct err *e) {
    struct epoll_event ready[POLL_EVENTS];
    for (uint64_t now_us; (now_us = clock_mono_us()) < until_us;) {
        uint64_t wait_us = until_us - now_us;
        struct timespec wait = {(time_t)(wait_us / SECOND_US),
                                (long)(wait_us % SECOND_US) * 1000};
        int count = epoll_pwait2(tokens->epoll, ready, POLL_EVENTS, &wait, NULL);
        if (count < 0 && errno != EINTR)
            return err_set(e, ERR_INTERNAL, "epoll_pwait2: %s", strerror(errno));
        if (count > 0) tokens->heard_us = clock_mono_us();
        for (int i = 0; i < count; i++)
            if (!(tokens->shared ? read_shared(ready[i].data.ptr, e)
                                 : read_asked(tokens, ready[i].data.ptr, e)))
                return false;
        if (tokens->count && clock_mono_us() - tokens->heard_us > SILENCE_US)
            return err_set(e, ERR_UNAVAILABLE, "nothing came for 10 s");
    }
    return true;
}

/* ---- the measured part ---- */

struct reading {
    uint64_t now_us, server_ns, driver_ns, machine_ns, seen;
    struct proc_memory memory;
};

static bool reading_take(const struct tokens *tokens, struct reading *ret, struct err *e) {
    pid_t server = tokens->options->server;
    *ret = (struct reading){.now_us = clock_mono_us(), .seen = tokens->seen};
    if (server && !proc_cpu_ns(server, &ret->server_ns, NULL, e)) return false;
    if (server && !proc_memory(server, &ret->memory, e)) return false;
    return proc_cpu_ns(getpid(), &ret->driver_ns, NULL, e) &&
           proc_machine_busy_ns(&ret->machine_ns, e);
}

static double held_kib(uint64_t now_kb, uint64_t idle_kb, size_t turns) {
    return ((double)now_kb - (double)idle_kb) / (double)turns;
}

static void print_measured(struct tokens *tokens, const struct reading *idle,
                           const struct reading *from, const struct reading *to) {
    const struct tokens_options *options = tokens->options;
    double seconds = (double)(to->now_us - from->now_us) / SECOND_US;
    double count = (double)(to->seen - from->seen);
    struct samples *delay = &tokens->delay_us;
    samples_sort(delay);
    printf("{\"mode\": \"tokens\", \"turns\": %zu, \"seconds\": %.3f, "
           "\"tokens_per_second\": %.0f, ",
           options->turns, seconds, count / seconds);
    printf("\"delay_us\": {\"p50\": %u, \"p99\": %u, \"p999\": %u, \"max\": %u}, ",
           samples_at(delay, 500), samples_at(delay, 990), samples_at(delay, 999),
           samples_at(delay, 1000));
    if (options->server)
        printf("\"cpu_us_per_token\": %.3f, \"server_cpu\": %.3f, "
               "\"rss_kib_per_turn\": %.1f, \"pss_kib_per_turn\": %.1f, ",
               (double)(to->server_ns - from->server_ns) / 1000 / count,
               (double)(to->server_ns - from->server_ns) / 1e9 / seconds,
               held_kib(to->memory.rss_kb, idle->memory.rss_kb, options->turns),
               held_kib(to->memory.pss_kb, idle->memory.pss_kb, options->turns));
    printf("\"driver_cpu\": %.3f, \"machine_cpu\": %.3f}\n",
           (double)(to->driver_ns - from->driver_ns) / 1e9 / seconds,
           (double)(to->machine_ns - from->machine_ns) / 1e9 / seconds);
}

static bool measure(struct tokens *tokens, struct err *e) {
    const struct tokens_options *options = tokens->options;
    struct reading idle, from, to;
    if (!reading_take(tokens, &idle, e) || !connect_shared(tokens, e)) return false;
    tokens->heard_us = clock_mono_us();
    while (tokens->count < options->turns)
        if (!ask(tokens, e) || !poll_until(tokens, clock_mono_us() + RAMP_US, e)) return false;
    if (!poll_until(tokens, clock_mono_us() + WARM_US, e)) return false;
    if (!reading_take(tokens, &from, e)) return false;
    tokens->measuring = true;
    if (!poll_until(tokens, from.now_us + (uint64_t)options->seconds * SECOND_US, e))
        return false;
    tokens->measuring = false;
    if (!reading_take(tokens, &to, e)) return false;
    if (tokens->done)
        return err_set(e, ERR_INVALID_ARGUMENT, "the turns are too short for a steady part");
    while (tokens->done < tokens->count)
        if (!poll_until(tokens, clock_mono_us() + SECOND_US / 10, e)) return false;
    print_measured(tokens, &idle, &from, &to);
    return true;
}

bool tokens_measure(const struct tokens_options *options, struct err *e) {
    struct tokens *tokens = MEM_NEW(struct tokens);
    tokens->options = options;
    tokens->epoll = epoll_create1(EPOLL_CLOEXEC);
    tokens->asked = mem_zero(options->turns, sizeof(struct asked));
    bool ok = measure(tokens, e);
    for (size_t i = 0; i < tokens->count; i++)
        if (tokens->asked[i].fd >= 0) close(tokens->asked[i].fd);
    for (size_t i = 0; tokens->shared && i < options->connections; i++)
        if (tokens->shared[i].deflater) h2_done(&tokens->shared[i]);
    free(tokens->shared);
    close(tokens->epoll);
    samples_done(&tokens->delay_us);
    free(tokens->asked);
    free(tokens);
    return ok;
}
