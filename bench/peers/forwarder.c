/* forwarder: the least that anything with a socket for each stream can do.
 *
 *   forwarder PORTS_FILE UPSTREAM_PORT
 *
 * Each connection gets one of its own to the upstream, and what one side sends is sent to the
 * other: epoll, recv, send, and nothing is read into it. A peer that takes nothing is waited for
 * (the answers of a model are small), so it is no proxy to put anywhere: it is the floor of
 * bench/model.sh.
 *
 * Threads  none; ends at SIGTERM.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define DESCRIPTORS_MAX 65536
#define READ_BYTES 65536
#define EVENTS 256

static int other[DESCRIPTORS_MAX]; /* by descriptor; 0: none */
static int upstream_port, queue;

static struct sockaddr_in loopback(int port) {
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void watch(int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (epoll_ctl(queue, EPOLL_CTL_ADD, fd, &event) < 0) die("forwarder: epoll_ctl");
}

static void pair_close(int fd) {
    int peer = other[fd];
    other[fd] = other[peer] = 0;
    close(fd);
    close(peer);
}

static void accept_one(int listener) {
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) return;
    struct sockaddr_in to = loopback(upstream_port);
    int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (peer < 0 || fd >= DESCRIPTORS_MAX || peer >= DESCRIPTORS_MAX ||
        connect(peer, (struct sockaddr *)&to, sizeof(to)) < 0)
        die("forwarder: connect");
    other[fd] = peer;
    other[peer] = fd;
    watch(fd);
    watch(peer);
}

static bool send_all(int fd, const char *bytes, size_t len) {
    while (len > 0) {
        ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EAGAIN) {
            struct pollfd writable = {.fd = fd, .events = POLLOUT};
            poll(&writable, 1, -1);
            continue;
        }
        if (sent < 0) return false;
        bytes += sent;
        len -= (size_t)sent;
    }
    return true;
}

static void pass_on(int fd) {
    static char bytes[READ_BYTES];
    if (!other[fd]) return; /* closed in this round */
    ssize_t got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0 || !send_all(other[fd], bytes, (size_t)got)) pair_close(fd);
}

static int listen_any(const char *ports_file) {
    struct sockaddr_in address = loopback(0);
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(listener, SOMAXCONN) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) < 0)
        die("forwarder: listen");
    FILE *file = fopen(ports_file, "we");
    if (!file) die(ports_file);
    fprintf(file, "{\"http\": %d}\n", ntohs(address.sin_port));
    fclose(file);
    return listener;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "forwarder: PORTS_FILE UPSTREAM_PORT\n");
        return 2;
    }
    upstream_port = atoi(argv[2]);
    queue = epoll_create1(EPOLL_CLOEXEC);
    if (queue < 0) die("forwarder: epoll_create1");
    int listener = listen_any(argv[1]);
    watch(listener);
    for (;;) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(queue, events, EVENTS, -1);
        if (count < 0 && errno != EINTR) die("forwarder: epoll_wait");
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == listener)
                accept_one(listener);
            else
                pass_on(events[i].data.fd);
        }
    }
}
