#include "connections.h"

#include "base/mem.h"
#include "h2.h"
#include "proc.h"
#include "turn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MS 5000
#define SETTLE_US 7000000 /* connections rest, and the allocator has given back what it will */
#define ANSWER_MAX_BYTES 4096

static bool await(int fd, struct err *e) {
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    return poll(&wait, 1, ANSWER_MS) == 1 ||
           err_set(e, ERR_DEADLINE_EXCEEDED, "no answer on a connection");
}

/* ---- calls ---- */

struct call {
    struct turn turn;
    bool is_turn;
};

static bool on_message(struct h2_stream *stream, struct str message, struct err *e) {
    struct call *call = stream->user;
    enum turn_event event;
    return !call->is_turn || turn_take(&call->turn, message, &event, e);
}

static bool on_end(struct h2_stream *stream, struct err *e) {
    const struct call *call = stream->user;
    return (stream->grpc_status == 0 && (!call->is_turn || call->turn.done)) ||
           err_set(e, ERR_UNAVAILABLE, "a call ended with status %d: %s", stream->grpc_status,
                   stream->grpc_message);
}

/* Until the answer is complete, or for a stream until its turn is. */
static bool read_call(struct h2 *h2, struct h2_stream *stream, struct err *e) {
    struct call *call = stream->user;
    bool left = false;
    while (!stream->ended) {
        if (call->is_turn && call->turn.done) h2_half_close(h2, stream);
        if (!h2_flush(h2, &left, e) || !await(h2->fd, e) || !h2_read(h2, e)) return false;
    }
    return h2_flush(h2, &left, e);
}

static bool check_health(struct h2 *h2, struct err *e) {
    struct call call = {.is_turn = false};
    struct h2_stream *stream = h2_open(h2, STR("/grpc.health.v1.Health/Check"), STR_EMPTY);
    stream->user = &call;
    h2_send(h2, stream, STR_EMPTY);
    h2_half_close(h2, stream);
    return read_call(h2, stream, e);
}

static bool take_turn(struct h2 *h2, size_t index, struct str key, struct err *e) {
    struct call call = {.is_turn = true};
    struct turn_asker asker;
    snprintf(asker.user, sizeof(asker.user), "user-%05zu", index);
    snprintf(asker.workspace, sizeof(asker.workspace), "workspace-%05zu", index);
    snprintf(asker.session, sizeof(asker.session), "connection-%05zu", index);
    struct buf text;
    buf_init(&text, KIB);
    turn_bearer(&asker, key, &text);
    struct h2_stream *stream =
        h2_open(h2, STR("/crawbl.agentruntime.v1.AgentRuntime/Converse"), buf_str(&text));
    stream->user = &call;
    buf_clear(&text);
    turn_begin(&call.turn, 0);
    turn_request(&asker, 0, &text);
    h2_send(h2, stream, buf_str(&text));
    buf_done(&text);
    return read_call(h2, stream, e);
}

/* ---- HTTP/2 ---- */

static bool open_http2(struct h2 *h2, int port, struct err *e) {
    bool left = false;
    if (!h2_connect(h2, port, e) || !h2_flush(h2, &left, e)) return false;
    h2->on_message = on_message;
    h2->on_end = on_end;
    while (!h2->settled)
        if (!await(h2->fd, e) || !h2_read(h2, e)) return false;
    return h2_flush(h2, &left, e); /* our acknowledgement of its SETTINGS */
}

/* ---- HTTP/1.1 ---- */

static bool read_answer(int fd, struct err *e) {
    char answer[ANSWER_MAX_BYTES + 1];
    size_t len = 0, wanted = 0;
    while (wanted == 0 || len < wanted) {
        if (!await(fd, e)) return false;
        ssize_t got = recv(fd, answer + len, ANSWER_MAX_BYTES - len, 0);
        if (got <= 0) return err_set(e, ERR_UNAVAILABLE, "the server closed a connection");
        len += (size_t)got;
        answer[len] = '\0';
        const char *end = strstr(answer, "\r\n\r\n");
        const char *body = strcasestr(answer, "content-length:");
        if (end && body && body < end)
            wanted = (size_t)(end + 4 - answer) + strtoul(body + 15, NULL, 10);
    }
    return strncmp(answer, "HTTP/1.1 200 ", 13) == 0 ||
           err_set(e, ERR_UNAVAILABLE, "GET /health: %.40s", answer);
}

static bool open_http1(int *ret_fd, int port, struct err *e) {
    static const char request[] = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
        return err_set(e, ERR_UNAVAILABLE, "connect: %s", strerror(errno));
    *ret_fd = fd;
    if (send(fd, request, sizeof(request) - 1, 0) != sizeof(request) - 1)
        return err_set(e, ERR_UNAVAILABLE, "send: %s", strerror(errno));
    return read_answer(fd, e);
}

/* ---- both ---- */

static bool settle_and_read(pid_t server, struct proc_memory *ret, struct err *e) {
    usleep(SETTLE_US);
    return proc_memory(server, ret, e);
}

static void allow_files(size_t count) {
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur >= count) return;
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) < 0) perror("driver: setrlimit");
}

static void print_growth(const char *name, const struct proc_memory *now,
                         const struct proc_memory *before, size_t count) {
    double rss_kb = (double)now->rss_kb - (double)before->rss_kb;
    double pss_kb = (double)now->pss_kb - (double)before->pss_kb;
    printf(", \"%s\": {\"rss_bytes\": %.0f, \"pss_bytes\": %.0f}", name,
           rss_kb * 1024 / (double)count, pss_kb * 1024 / (double)count);
}

/* Read what the server says unasked: a ping that is not answered ends a connection. */
static bool tend(struct h2 *h2, size_t count, struct err *e) {
    bool left = false;
    for (size_t i = 0; i < count; i++)
        if (!h2_read(&h2[i], e) || !h2_flush(&h2[i], &left, e)) return false;
    return true;
}

/* A server may have closed those that asked nothing, and would seem to hold little for each. */
static bool check_alive(struct h2 *h2, size_t count, struct err *e) {
    return tend(h2, count, e) ||
           err_add(e,
                   "connections without a request: weir allows one peer a quarter of "
                   "limits.connections of them; set that limit to %zu",
                   4 * (count + 2));
}

#define CALLS_BETWEEN 1000

static bool measure_calls(struct h2 *h2, const struct connections_options *options,
                          const struct proc_memory *opened, struct err *e) {
    struct proc_memory called, turned;
    for (size_t i = 0; i < options->count; i++) {
        if (i % CALLS_BETWEEN == 0 && !tend(h2, options->count, e)) return false;
        if (!check_health(&h2[i], e)) return false;
    }
    if (!settle_and_read(options->server, &called, e)) return false;
    for (size_t i = 0; i < options->count; i++) {
        if (i % CALLS_BETWEEN == 0 && !tend(h2, options->count, e)) return false;
        if (!take_turn(&h2[i], i, options->key, e)) return false;
    }
    if (!settle_and_read(options->server, &turned, e)) return false;
    print_growth("called", &called, opened, options->count);
    print_growth("turned", &turned, &called, options->count);
    return true;
}

static bool measure_http1(int *fds, const struct connections_options *options,
                          const struct proc_memory *opened, struct err *e) {
    struct proc_memory http1;
    for (size_t i = 0; i < options->count; i++)
        if (!open_http1(&fds[i], options->port, e)) return false;
    if (!settle_and_read(options->server, &http1, e)) return false;
    print_growth("http1", &http1, opened, options->count);
    return true;
}

/* The first of each kind pays for what all share. */
static bool open_first(struct h2 *h2, int *fd, const struct connections_options *options,
                       struct err *e) {
    if (!open_http2(h2, options->port, e)) return false;
    if (!options->calls) return open_http1(fd, options->port, e);
    return check_health(h2, e) && take_turn(h2, options->count, options->key, e);
}

bool connections_measure(const struct connections_options *options, struct err *e) {
    size_t count = options->count;
    struct proc_memory idle, http2;
    struct h2 *h2 = mem_zero(count + 1, sizeof(*h2));
    int *fds = mem_zero(count + 1, sizeof(*fds));
    allow_files(2 * count + 32);
    if (!open_first(&h2[count], &fds[count], options, e)) return false;
    if (!settle_and_read(options->server, &idle, e)) return false;
    for (size_t i = 0; i < count; i++)
        if (!open_http2(&h2[i], options->port, e)) return false;
    if (!settle_and_read(options->server, &http2, e) || !check_alive(h2, count, e))
        return false;

    printf("{\"mode\": \"connections\", \"connections\": %zu", count);
    print_growth("http2", &http2, &idle, count);
    bool good = options->calls ? measure_calls(h2, options, &http2, e)
                               : measure_http1(fds, options, &http2, e);
    if (!good) return false;
    printf("}\n");
    for (size_t i = 0; i <= count; i++) {
        h2_done(&h2[i]);
        if (!options->calls) close(fds[i]);
    }
    free(h2);
    free(fds);
    return true;
}
