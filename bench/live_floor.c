/* live_floor: the least that a server of one event for many readers could do.
 *
 *   live_floor PORTS_FILE EVENTS_A_SECOND
 *
 * Whoever asks for anything but /health becomes a reader, and gets each event by one send() of
 * the same bytes, which are prepared once an event. It parses no request, sets no timer and
 * keeps nothing for a reader but its descriptor. One that does not take an event is waited for.
 *
 * Threads  none; ends at SIGTERM.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define READERS_MAX 65536
#define EVENTS 256

static int readers[READERS_MAX], queue;
static size_t reader_count;
static char event_bytes[1024];

static void die(const char *what) {
    perror(what);
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

static void send_all(int fd, const char *bytes, size_t len) {
    while (len > 0) {
        ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EAGAIN) {
            struct pollfd writable = {.fd = fd, .events = POLLOUT};
            poll(&writable, 1, -1);
            continue;
        }
        if (sent < 0) return;
        bytes += sent;
        len -= (size_t)sent;
    }
}

static int listen_any(const char *ports_file) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(listener, SOMAXCONN) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) < 0)
        die("live_floor: listen");
    FILE *file = fopen(ports_file, "we");
    if (!file) die(ports_file);
    fprintf(file, "{\"http\": %d}\n", ntohs(address.sin_port));
    fclose(file);
    return listener;
}

static void watch(int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (epoll_ctl(queue, EPOLL_CTL_ADD, fd, &event) < 0) die("live_floor: epoll_ctl");
}

static void answer(int fd) {
    static const char health[] = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    static const char head[] = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                               "transfer-encoding: chunked\r\n\r\n";
    char request[4096];
    ssize_t got = recv(fd, request, sizeof(request), MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
        for (size_t i = 0; i < reader_count; i++)
            if (readers[i] == fd) readers[i--] = readers[--reader_count];
        close(fd);
        return;
    }
    bool is_health = got > 7 && memcmp(request, "GET /he", 7) == 0;
    send_all(fd, is_health ? health : head, (is_health ? sizeof(health) : sizeof(head)) - 1);
    if (!is_health && reader_count < READERS_MAX) readers[reader_count++] = fd;
}

#define PAD 43 /* so that it is as long as weir's, which has a time and ids */

static void publish(uint64_t seq) {
    char event[512];
    int len =
        snprintf(event, sizeof(event),
                 "event: text\nid: 1-%llu\ndata: {\"seq\":%llu,\"text\":\"%08llu the water "
                 "goes on over the weir, to the mill, to sea...%.*s\"}\n\n",
                 (unsigned long long)seq, (unsigned long long)seq, (unsigned long long)seq, PAD,
                 "................................................................"
                 "................................");
    int whole =
        snprintf(event_bytes, sizeof(event_bytes), "%x\r\n%s\r\n", (unsigned)len, event);
    for (size_t i = 0; i < reader_count; i++) send_all(readers[i], event_bytes, (size_t)whole);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "live_floor: PORTS_FILE EVENTS_A_SECOND\n");
        return 2;
    }
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    queue = epoll_create1(EPOLL_CLOEXEC);
    if (queue < 0) die("live_floor: epoll_create1");
    int listener = listen_any(argv[1]);
    watch(listener);
    uint64_t every = 1000000000u / (uint64_t)atoi(argv[2]), due = now_ns() + every, seq = 0;
    for (;;) {
        struct epoll_event events[EVENTS];
        uint64_t now = now_ns();
        int wait = now >= due ? 0 : (int)((due - now) / 1000000u) + 1;
        int count = epoll_wait(queue, events, EVENTS, wait);
        if (count < 0 && errno != EINTR) die("live_floor: epoll_wait");
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd != listener) {
                answer(fd);
                continue;
            }
            while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
                watch(fd);
                break;
            }
        }
        if (now_ns() < due) continue;
        publish(++seq);
        due += every;
    }
}
