#include "connections.h"

#include "base/mem.h"
#include "h2.h"
#include "proc.h"

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
#define SETTLE_US 1500000 /* the allocator has given back what it will */
#define ANSWER_MAX_BYTES 4096

static bool await(int fd, struct err *e) {
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    return poll(&wait, 1, ANSWER_MS) == 1 ||
           err_set(e, ERR_DEADLINE_EXCEEDED, "no answer on a connection");
}

/* ---- HTTP/2 ---- */

static bool open_http2(struct h2 *h2, int port, struct err *e) {
    bool left = false;
    if (!h2_connect(h2, port, e) || !h2_flush(h2, &left, e)) return false;
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

/* The first of each kind pays for what all share. */
bool connections_measure(const struct connections_options *options, struct err *e) {
    size_t count = options->count;
    struct proc_memory idle, http2, http1;
    struct h2 *h2 = mem_zero(count + 1, sizeof(*h2));
    int *fds = mem_zero(count + 1, sizeof(*fds));
    allow_files(2 * count + 32);
    if (!open_http2(&h2[count], options->port, e)) return false;
    if (!open_http1(&fds[count], options->port, e)) return false;
    if (!settle_and_read(options->server, &idle, e)) return false;
    for (size_t i = 0; i < count; i++)
        if (!open_http2(&h2[i], options->port, e)) return false;
    if (!settle_and_read(options->server, &http2, e)) return false;
    for (size_t i = 0; i < count; i++)
        if (!open_http1(&fds[i], options->port, e)) return false;
    if (!settle_and_read(options->server, &http1, e)) return false;

    printf("{\"mode\": \"connections\", \"connections\": %zu", count);
    print_growth("http2", &http2, &idle, count);
    print_growth("http1", &http1, &http2, count);
    printf("}\n");
    for (size_t i = 0; i <= count; i++) {
        h2_done(&h2[i]);
        close(fds[i]);
    }
    free(h2);
    free(fds);
    return true;
}
