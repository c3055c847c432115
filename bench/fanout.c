/* fanout: many subscribers of one app, and messages to it.
 *
 *   fanout PORT PID CONNECTIONS STREAMS SECONDS
 *
 * Each connection subscribes with STREAMS streams (RuntimeAppService/SubscribeAppMessages). Then
 * messages are sent, a few at a time, the next ones when every subscriber has these. It prints
 * one line of JSON: deliveries, how long they took, the server's CPU for each, and what the
 * server's memory grew by for each subscriber. A stream that ends, or another count of
 * deliveries than subscribers times messages, is an error. */
#include "h2.h"
#include "proc.h"

#include "base/clock.h"
#include "base/mem.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECTIONS_MAX 256
#define AT_ONCE 4      /* messages on their way */
#define SENDERS 100000 /* so that none sends too often */
#define PATIENCE_US 60000000

static const struct h2_field fields[] = {
    {STR_INIT("x-nimi-protocol-version"), STR_INIT("1.0.0")},
    {STR_INIT("x-nimi-participant-protocol-version"), STR_INIT("1.0.0")},
    {STR_INIT("x-nimi-participant-id"), STR_INIT("bench")},
    {STR_INIT("x-nimi-domain"), STR_INIT("runtime.rpc")},
    {STR_INIT("x-nimi-caller-kind"), STR_INIT("third-party-app")},
    {STR_INIT("x-nimi-caller-id"), STR_INIT("bench")},
};

struct fanout {
    struct h2 conns[CONNECTIONS_MAX + 1]; /* the last one sends */
    size_t conn_count;
    uint64_t delivered, sent, answered;
};

static struct fanout fanout;

static void fail(const char *what, const struct err *e) {
    fprintf(stderr, "fanout: %s%s%s\n", what, e ? ": " : "", e ? e->text : "");
    exit(1);
}

static bool on_delivery(struct h2_stream *stream, struct str message, struct err *e) {
    (void)stream, (void)message, (void)e;
    fanout.delivered++;
    return true;
}

static bool on_reply(struct h2_stream *stream, struct str message, struct err *e) {
    (void)stream, (void)message, (void)e;
    return true;
}

static bool on_lost(struct h2_stream *stream, struct err *e) {
    return err_set(e, ERR_INTERNAL, "a subscription ended: %d %s", stream->grpc_status,
                   stream->grpc_message);
}

static bool on_answered(struct h2_stream *stream, struct err *e) {
    fanout.answered++;
    if (stream->grpc_status == 0) return true;
    return err_set(e, ERR_INTERNAL, "a message was refused: %d %s", stream->grpc_status,
                   stream->grpc_message);
}

/* One turn: write what waits, then read what is there. */
static void turn(void) {
    struct pollfd fds[CONNECTIONS_MAX + 1];
    struct err e;
    for (size_t i = 0; i < fanout.conn_count; i++) {
        bool left;
        if (!h2_flush(&fanout.conns[i], &left, &e)) fail("write", &e);
        fds[i] = (struct pollfd){.fd = fanout.conns[i].fd,
                                 .events = (short)(left ? POLLIN | POLLOUT : POLLIN)};
    }
    if (poll(fds, fanout.conn_count, 1000) < 0) fail("poll", NULL);
    for (size_t i = 0; i < fanout.conn_count; i++)
        if (fds[i].revents && !h2_read(&fanout.conns[i], &e)) fail("read", &e);
}

static size_t put_text(char *at, uint8_t number, const char *text) {
    size_t len = strlen(text);
    at[0] = (char)(number << 3 | 2);
    at[1] = (char)len;
    memcpy(at + 2, text, len);
    return len + 2;
}

static void subscribe(struct h2 *h2) {
    char request[64];
    size_t len = put_text(request, 1, "bench.receiver");
    struct h2_stream *stream =
        h2_open(h2, STR("/nimi.runtime.v1.RuntimeAppService/SubscribeAppMessages"), STR_EMPTY);
    h2_send(h2, stream, str_of(request, len));
    h2_half_close(h2, stream);
}

static void publish(struct h2 *h2) {
    char request[128], from[32];
    snprintf(from, sizeof(from), "bench.sender.%u", (unsigned)(fanout.sent % SENDERS));
    size_t len = put_text(request, 1, from);
    len += put_text(request + len, 2, "bench.receiver");
    len += put_text(request + len, 4, "news");
    struct h2_stream *stream =
        h2_open(h2, STR("/nimi.runtime.v1.RuntimeAppService/SendAppMessage"), STR_EMPTY);
    h2_send(h2, stream, str_of(request, len));
    h2_half_close(h2, stream);
    fanout.sent++;
}

static void connect_all(int port, size_t connections) {
    struct err e;
    fanout.conn_count = connections + 1;
    for (size_t i = 0; i < fanout.conn_count; i++) {
        struct h2 *h2 = &fanout.conns[i];
        if (!h2_connect(h2, port, &e)) fail("connect", &e);
        h2->fields = fields;
        h2->field_count = ARRAY_LEN(fields);
        h2->on_message = i < connections ? on_delivery : on_reply;
        h2->on_end = i < connections ? on_lost : on_answered;
    }
}

static bool all_subscribed(size_t connections) {
    for (size_t i = 0; i < connections; i++) {
        const struct h2 *h2 = &fanout.conns[i];
        for (size_t s = 0; s < h2->stream_count; s++)
            if (h2->streams[s]->http_status != 200) return false;
    }
    return true;
}

static uint64_t cpu_ns(pid_t pid) {
    struct err e;
    uint64_t ns;
    if (!proc_cpu_ns(pid, &ns, NULL, &e)) fail("CPU of the server", &e);
    return ns;
}

static uint64_t rss_kb(pid_t pid) {
    struct err e;
    struct proc_memory memory;
    if (!proc_memory(pid, &memory, &e)) fail("memory of the server", &e);
    return memory.rss_kb;
}

/* Send some, and wait until everyone has them. */
static void round_of(uint64_t subscribers) {
    uint64_t wanted = fanout.delivered + AT_ONCE * subscribers;
    uint64_t until_us = clock_mono_us() + PATIENCE_US;
    for (int i = 0; i < AT_ONCE; i++) publish(&fanout.conns[fanout.conn_count - 1]);
    while (fanout.delivered < wanted || fanout.answered < fanout.sent) {
        if (clock_mono_us() > until_us) fail("deliveries are missing", NULL);
        turn();
    }
    if (fanout.delivered != wanted) fail("too many deliveries", NULL);
}

int main(int count, char **args) {
    if (count != 6) fail("PORT PID CONNECTIONS STREAMS SECONDS", NULL);
    int port = atoi(args[1]);
    pid_t pid = (pid_t)atoi(args[2]);
    size_t connections = (size_t)atoi(args[3]), streams = (size_t)atoi(args[4]);
    uint64_t subscribers = connections * streams;
    uint64_t run_us = (uint64_t)(atof(args[5]) * 1e6);
    if (connections > CONNECTIONS_MAX) fail("too many connections", NULL);

    connect_all(port, connections);
    for (size_t i = 0; i < fanout.conn_count; i++) turn();
    uint64_t before_kb = rss_kb(pid);
    for (size_t i = 0; i < connections; i++)
        for (size_t s = 0; s < streams; s++) subscribe(&fanout.conns[i]);
    while (!all_subscribed(connections)) turn();
    uint64_t idle_kb = rss_kb(pid);
    round_of(subscribers); /* warm */

    uint64_t began_us = clock_mono_us(), began_ns = cpu_ns(pid), first = fanout.delivered;
    while (clock_mono_us() - began_us < run_us) round_of(subscribers);
    uint64_t took_us = clock_mono_us() - began_us, used_ns = cpu_ns(pid) - began_ns;
    uint64_t delivered = fanout.delivered - first;
    printf("{\"subscribers\": %llu, \"deliveries\": %llu, \"per_second\": %.0f, "
           "\"server_cpu_ns\": %.0f, \"per_second_of_cpu\": %.0f, \"bytes_each\": %.0f}\n",
           (unsigned long long)subscribers, (unsigned long long)delivered,
           (double)delivered / (double)took_us * 1e6, (double)used_ns / (double)delivered,
           (double)delivered / (double)used_ns * 1e9,
           (double)(idle_kb - before_kb) * 1024 / (double)subscribers);
    for (size_t i = 0; i < fanout.conn_count; i++) h2_done(&fanout.conns[i]);
    return 0;
}
