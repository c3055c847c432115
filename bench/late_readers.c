/* late_readers: many readers of one run's events at once, each on a connection of its own.
 *
 *   late_readers PORT RUN COUNT          until the run's last event has reached all of them
 *
 * It prints one line of JSON: how long all took, the first byte of the slowest reader, events and
 * bytes, and the latency of GET /health on the same server meanwhile. Every reader must receive
 * as many bytes as the first one, or it fails. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HEALTH_MAX 100000
#define HEALTH_EVERY_NS 5000000ull

struct reader {
    int fd;
    uint64_t first_ns, bytes, events;
};

static uint64_t now_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int dial(int port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to))) fail("connect");
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

/* Events are counted by "\nid:"; one that two reads cut in there is not counted. */
static void take(struct reader *reader, const char *at, size_t len) {
    reader->bytes += len;
    for (const char *p = at; (p = memmem(p, len - (size_t)(p - at), "\nid:", 4)); p++)
        reader->events++;
}

static int by_size(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    int port = atoi(argv[1]);
    size_t count = (size_t)atol(argv[3]), left = count, healths = 0;
    struct reader *readers = calloc(count, sizeof(*readers));
    uint64_t *health_ns = calloc(HEALTH_MAX, sizeof(*health_ns));
    static char room[256 * 1024];
    char request[256];
    int epoll = epoll_create1(0);
    for (size_t i = 0; i < count; i++) readers[i].fd = dial(port);
    int health = dial(port);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = count};
    epoll_ctl(epoll, EPOLL_CTL_ADD, health, &event);
    int len =
        snprintf(request, sizeof(request),
                 "GET /weir/v1/runs/%s/events HTTP/1.0\r\nhost: localhost\r\n\r\n", argv[2]);
    uint64_t begin = now_ns(), asked = 0, next = begin;
    for (size_t i = 0; i < count; i++) {
        event.data.u64 = i;
        epoll_ctl(epoll, EPOLL_CTL_ADD, readers[i].fd, &event);
        if (write(readers[i].fd, request, (size_t)len) != len) fail("write");
    }
    while (left) {
        struct epoll_event ready[256];
        if (!asked && now_ns() >= next) {
            static const char ask[] = "GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n";
            asked = now_ns();
            if (write(health, ask, sizeof(ask) - 1) < 0) fail("health");
        }
        int n = epoll_wait(epoll, ready, 256, 1);
        for (int i = 0; i < n; i++) {
            if (ready[i].data.u64 == count) {
                if (read(health, room, sizeof(room)) <= 0) fail("health");
                if (healths < HEALTH_MAX) health_ns[healths++] = now_ns() - asked;
                next = asked + HEALTH_EVERY_NS;
                asked = 0;
                continue;
            }
            struct reader *reader = &readers[ready[i].data.u64];
            ssize_t got = read(reader->fd, room, sizeof(room));
            if (got < 0 && errno == EAGAIN) continue;
            if (got < 0) fail("read");
            if (got == 0) {
                close(reader->fd);
                left--;
                continue;
            }
            if (!reader->first_ns) reader->first_ns = now_ns() - begin;
            take(reader, room, (size_t)got);
        }
    }
    uint64_t all_ns = now_ns() - begin, first_ns = 0, bytes = 0;
    for (size_t i = 0; i < count; i++) {
        if (readers[i].first_ns > first_ns) first_ns = readers[i].first_ns;
        bytes += readers[i].bytes;
        if (readers[i].bytes != readers[0].bytes) {
            fprintf(stderr, "reader %zu got %llu bytes, not %llu\n", i,
                    (unsigned long long)readers[i].bytes, (unsigned long long)readers[0].bytes);
            return 1;
        }
    }
    qsort(health_ns, healths, sizeof(*health_ns), by_size);
    double s = (double)all_ns / 1e9;
    printf(
        "{\"readers\": %zu, \"seconds\": %.3f, \"first_byte_ms\": %.1f, \"bytes_each\": %llu, "
        "\"mb_s\": %.0f, \"events_each\": %llu, \"health_p50_ms\": %.2f, \"health_p99_ms\": "
        "%.2f, "
        "\"health_worst_ms\": %.2f}\n",
        count, s, (double)first_ns / 1e6, (unsigned long long)readers[0].bytes,
        (double)bytes / 1e6 / s, (unsigned long long)readers[0].events,
        healths ? (double)health_ns[healths / 2] / 1e6 : 0,
        healths ? (double)health_ns[healths * 99 / 100] / 1e6 : 0,
        healths ? (double)health_ns[healths - 1] / 1e6 : 0);
    return 0;
}
