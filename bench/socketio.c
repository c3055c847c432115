/* socketio: many clients of one Socket.IO server, and what reaches them.
 *
 *   socketio PORT PID CLIENTS SECONDS ROOMS
 *
 * Each client opens a WebSocket to the server of test/socketio/, connects to "/v1" and joins the
 * room "bench:<its number modulo ROOMS>". The server sends events to these rooms that carry the time of their
 * sending, by the monotonic clock that both share. After a second of warm-up the time until each
 * event was read here is kept for SECONDS. With SECONDS 0 only the server's memory is measured.
 *
 * It prints one line of JSON: clients, the server's memory for each, events, and percentiles of
 * the time in microseconds. A connection that ends is an error. */
#include "base/mem.h"
#include "proc.h"
#include "samples.h"
#include "wire/websocket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define READ_BYTES (64 * KIB)
#define EVENTS_AT_ONCE 256
#define MESSAGE_MAX_BYTES (1 * MIB)
#define WARM_NS 1000000000ULL
#define PATIENCE_NS 60000000000ULL

static const struct str request =
    STR_INIT("GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: localhost\r\n"
             "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");

struct client {
    int fd;
    struct websocket *reader;
    unsigned head_seen; /* bytes of the empty line that ends the head */
    bool joined;
};

static struct client *clients;
static size_t client_count, joined_count, room_count;
static int epoll;
static uint64_t keep_from_ns;
static uint64_t event_count;
static struct samples samples;

static void fail(const char *what) {
    fprintf(stderr, "socketio: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* --- messages ------------------------------------------------------------------------------ */

static void say(const struct client *client, struct str text) {
    struct buf frame;
    buf_init(&frame, 4 * KIB);
    websocket_append(&frame, WEBSOCKET_CLIENT, WEBSOCKET_TEXT, text);
    if (write(client->fd, frame.at, frame.len) != (ssize_t)frame.len) fail("write");
    buf_done(&frame);
}

/* 42/v1,["message.chunk",{"at":123,...}] */
static void take_event(struct str text) {
    struct str key = STR("\"at\":");
    struct str rest = str_skip(text, str_find(text, key) + key.len), after;
    uint64_t at, now = now_ns();
    if (!str_to_u64(str_split(rest, ',', &after), &at)) return;
    event_count++;
    if (keep_from_ns && at >= keep_from_ns)
        samples_add(&samples, (uint32_t)((now - at) / 1000));
}

static void on_message(const struct websocket_message *message, void *ctx) {
    struct client *client = ctx;
    if (message->kind != WEBSOCKET_TEXT) fail("a message that is no text");
    struct str text = message->data;
    if (str_equal(text, STR("2"))) {
        say(client, STR("3"));
    } else if (str_starts(text, STR("43/v1,"))) {
        joined_count += !client->joined;
        client->joined = true;
    } else if (str_starts(text, STR("42/v1,"))) {
        take_event(text);
    }
}

/* --- connections --------------------------------------------------------------------------- */

static void open_client(struct client *client, size_t index, uint16_t port) {
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(port)};
    char join[64];
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    client->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (client->fd < 0) fail("socket");
    if (connect(client->fd, (struct sockaddr *)&place, sizeof(place)) != 0) fail("connect");
    client->reader = websocket_new(WEBSOCKET_CLIENT, MESSAGE_MAX_BYTES, on_message, client);
    if (write(client->fd, request.at, request.len) != (ssize_t)request.len) fail("write");
    int len =
        snprintf(join, sizeof(join), "42/v1,1[\"join\",\"bench:%zu\"]", index % room_count);
    say(client, STR("40/v1,{\"token\":\"good\"}"));
    say(client, str_of(join, (size_t)len));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, client->fd, &event) != 0) fail("epoll_ctl");
}

/* What follows the head of the answer. */
static struct str skip_head(struct client *client, struct str bytes) {
    static const char end[] = "\r\n\r\n";
    size_t at = 0;
    for (; at < bytes.len && client->head_seen < 4; at++) {
        bool same = bytes.at[at] == end[client->head_seen];
        client->head_seen = same ? client->head_seen + 1 : bytes.at[at] == '\r';
    }
    return str_skip(bytes, at);
}

static void read_client(struct client *client) {
    static char room[READ_BYTES];
    struct err e;
    ssize_t got = read(client->fd, room, sizeof(room));
    if (got <= 0) fail("a connection ended");
    struct str bytes = skip_head(client, str_of(room, (size_t)got));
    if (!websocket_feed(client->reader, bytes, &e)) fail(e.text);
}

static void poll_clients(int wait_ms) {
    struct epoll_event events[EVENTS_AT_ONCE];
    int count = epoll_wait(epoll, events, EVENTS_AT_ONCE, wait_ms);
    for (int i = 0; i < count; i++) read_client(events[i].data.ptr);
}

#define OPENING_AT_ONCE 200

static void open_clients(uint16_t port) {
    uint64_t until = now_ns() + PATIENCE_NS;
    for (size_t opened = 0; joined_count < client_count;) {
        if (now_ns() > until) fail("not all clients could join");
        while (opened < client_count && opened < joined_count + OPENING_AT_ONCE) {
            open_client(&clients[opened], opened, port);
            opened++;
        }
        poll_clients(100);
    }
}

/* --- measuring ----------------------------------------------------------------------------- */

static uint64_t rss_kb(pid_t pid) {
    struct proc_memory memory;
    struct err e;
    if (!proc_memory(pid, &memory, &e)) fail(e.text);
    return memory.rss_kb;
}

static uint64_t cpu_ns(pid_t pid) {
    struct err e;
    uint64_t ns;
    if (!proc_cpu_ns(pid, &ns, NULL, &e)) fail(e.text);
    return ns;
}

static void listen_for(uint64_t ns) {
    for (uint64_t until = now_ns() + ns; now_ns() < until;) poll_clients(10);
}

int main(int argc, char **argv) {
    struct err e;
    if (argc != 6 || !websocket_load(&e)) {
        fprintf(stderr, "usage: socketio PORT PID CLIENTS SECONDS ROOMS\n");
        return 2;
    }
    pid_t pid = (pid_t)atoi(argv[2]);
    uint64_t seconds = strtoull(argv[4], NULL, 10);
    client_count = strtoull(argv[3], NULL, 10);
    room_count = strtoull(argv[5], NULL, 10);
    clients = mem_zero(client_count, sizeof(*clients));
    epoll = epoll_create1(0);

    uint64_t before_kb = rss_kb(pid);
    open_clients((uint16_t)atoi(argv[1]));
    listen_for(WARM_NS);
    uint64_t after_kb = rss_kb(pid), cpu = cpu_ns(pid);
    keep_from_ns = now_ns();
    event_count = 0;
    listen_for(seconds * 1000000000);
    cpu = cpu_ns(pid) - cpu;
    samples_sort(&samples);
    printf(
        "{\"clients\":%zu,\"bytes_per_client\":%llu,\"events\":%llu,\"cpu_us_per_event\":%.2f,"
        "\"p50_us\":%u,\"p90_us\":%u,\"p99_us\":%u,\"p999_us\":%u,\"max_us\":%u}\n",
        client_count, (unsigned long long)((after_kb - before_kb) * 1024 / client_count),
        (unsigned long long)event_count,
        event_count ? (double)cpu / 1000 / (double)event_count : 0.0, samples_at(&samples, 500),
        samples_at(&samples, 900), samples_at(&samples, 990), samples_at(&samples, 999),
        samples_at(&samples, 1000));
    return 0;
}
