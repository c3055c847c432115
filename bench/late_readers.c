/* late_readers: many readers of one run's events at once, each on a connection of its own.
 *
 *   late_readers PORT RUN COUNT          until the run's last event has reached all of them
 *
 * It prints one line of JSON: how long all took, the first byte of the slowest reader, events and
 * bytes, and the latency of GET /health on the same server meanwhile. Every reader must receive
 * as many bytes as the first one, or it fails.
 *
 * /health is asked by a process of its own, so that an answer does not wait until this one has
 * read what came for the readers before it. It goes ahead of the readers on their core where it
 * may (SCHED_FIFO); the JSON says whether it did. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HEALTH_MAX 100000
#define HEALTH_EVERY_NS 5000000ull

struct reader {
    int fd;
    uint64_t first_ns, bytes, events;
};

/* What the process that asks /health has measured, in memory of both. */
struct healths {
    volatile int begun, over; /* the readers have asked; they are done */
    int first;                /* it ran ahead of the readers */
    size_t count;
    uint64_t ns[HEALTH_MAX];
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

static void ask_health(int port, struct healths *healths) {
    static const char ask[] = "GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n";
    static const struct sched_param param = {.sched_priority = 5};
    char room[4096];
    int fd = dial(port);
    fcntl(fd, F_SETFL, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    healths->first = sched_setscheduler(0, SCHED_FIFO, &param) == 0;
    while (!healths->begun) nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    while (!healths->over && healths->count < HEALTH_MAX) {
        uint64_t asked = now_ns();
        if (write(fd, ask, sizeof(ask) - 1) != sizeof(ask) - 1) fail("health");
        if (read(fd, room, sizeof(room)) <= 0) fail("health");
        uint64_t took = now_ns() - asked;
        healths->ns[healths->count++] = took;
        uint64_t wait = took < HEALTH_EVERY_NS ? HEALTH_EVERY_NS - took : 0;
        nanosleep(&(struct timespec){.tv_nsec = (long)wait}, NULL);
    }
}

/* Before the readers are dialled: a copy of their sockets would stay in the epoll set. */
static pid_t start_health(int port, struct healths *healths) {
    pid_t child = fork();
    if (child < 0) fail("fork");
    if (child) return child;
    ask_health(port, healths);
    _exit(0);
}

static void end_health(pid_t child, struct healths *healths) {
    int status;
    healths->over = 1;
    if (waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "the process that asks /health failed\n");
        exit(1);
    }
    qsort(healths->ns, healths->count, sizeof(*healths->ns), by_size);
}

static double health_ms(const struct healths *healths, size_t of_100) {
    size_t at = healths->count * of_100 / 100;
    if (!healths->count) return 0;
    return (double)healths->ns[at < healths->count ? at : healths->count - 1] / 1e6;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    int port = atoi(argv[1]);
    size_t count = (size_t)atol(argv[3]), left = count;
    struct reader *readers = calloc(count, sizeof(*readers));
    struct healths *healths =
        mmap(NULL, sizeof(*healths), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (healths == MAP_FAILED) fail("mmap");
    static char room[256 * 1024];
    char request[256];
    pid_t child = start_health(port, healths);
    int epoll = epoll_create1(0);
    for (size_t i = 0; i < count; i++) readers[i].fd = dial(port);
    struct epoll_event event = {.events = EPOLLIN};
    int len =
        snprintf(request, sizeof(request),
                 "GET /weir/v1/runs/%s/events HTTP/1.0\r\nhost: localhost\r\n\r\n", argv[2]);
    uint64_t begin = now_ns();
    healths->begun = 1;
    for (size_t i = 0; i < count; i++) {
        event.data.u64 = i;
        epoll_ctl(epoll, EPOLL_CTL_ADD, readers[i].fd, &event);
        if (write(readers[i].fd, request, (size_t)len) != len) fail("write");
    }
    while (left) {
        struct epoll_event ready[256];
        int n = epoll_wait(epoll, ready, 256, -1);
        for (int i = 0; i < n; i++) {
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
    end_health(child, healths);
    for (size_t i = 0; i < count; i++) {
        if (readers[i].first_ns > first_ns) first_ns = readers[i].first_ns;
        bytes += readers[i].bytes;
        if (readers[i].bytes != readers[0].bytes) {
            fprintf(stderr, "reader %zu got %llu bytes, not %llu\n", i,
                    (unsigned long long)readers[i].bytes, (unsigned long long)readers[0].bytes);
            return 1;
        }
    }
    double s = (double)all_ns / 1e9;
    printf(
        "{\"readers\": %zu, \"seconds\": %.3f, \"first_byte_ms\": %.1f, \"bytes_each\": %llu, "
        "\"mb_s\": %.0f, \"events_each\": %llu, \"health_p50_ms\": %.2f, \"health_p99_ms\": "
        "%.2f, "
        "\"health_worst_ms\": %.2f, \"health_calls\": %zu, \"health_goes_first\": %s}\n",
        count, s, (double)first_ns / 1e6, (unsigned long long)readers[0].bytes,
        (double)bytes / 1e6 / s, (unsigned long long)readers[0].events, health_ms(healths, 50),
        health_ms(healths, 99), health_ms(healths, 100), healths->count,
        healths->first ? "true" : "false");
    return 0;
}
