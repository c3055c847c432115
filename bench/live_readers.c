/* live_readers: many readers of one live run, each on an HTTP/1.1 connection of its own.
 *
 *   live_readers weir|other PORT PID READERS SECONDS [alone]
 *
 * Each connection asks for GET /health first, so that what a reader takes is told from what its
 * connection takes. Then weir is asked for a run (POST /invoke), and all read its events; any
 * other server streams GET /events. Counting begins a second after all have had an event.
 *
 * It prints one line of JSON: deliveries, the server's CPU for each, the spread (from the first
 * reader that has an event to this one), what the slowest reader had, memory, and GET /health
 * beside it, from a thread of its own (`alone`: without it). Sequence numbers that are missing or doubled are counted
 * in `wrong`.
 */
#include "proc.h"
#include "samples.h"

#include "base/clock.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SEQ_MAX 200000
#define CARRY_MAX 64 /* an id's line is shorter */
#define HEALTH_EVERY_US 5000
#define SETTLE_US 1000000
#define PATIENCE_US 15000000 /* for a first event of all */

enum part { PART_HEAD, PART_SIZE, PART_DATA, PART_END };

struct reader {
    int fd;
    enum part part;
    bool began;     /* its first event came */
    size_t left;    /* of the chunk, or line breaks seen */
    uint64_t seq;   /* of its last event */
    uint64_t count; /* events in the time that counts */
    uint64_t last_us, silence_us;
    size_t carried;
    char carry[CARRY_MAX];
};

struct live {
    struct reader *readers;
    size_t count, begun;
    uint64_t first_us[SEQ_MAX]; /* when the first reader had it */
    uint64_t deliveries, reads, bytes, wrong, newest;
    bool counts;
    struct samples spread;
};

struct health {
    int fd;
    atomic_bool counts, over;
    struct samples idle, beside;
};

static struct live live;
static struct health health;
static int port;

static void fail(const char *what) {
    fprintf(stderr, "live_readers: %s: %s\n", what, errno ? strerror(errno) : "no");
    exit(1);
}

static int dial(void) {
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to))) fail("connect");
    return fd;
}

static void ask(int fd, const char *path) {
    char request[256];
    int len =
        snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nhost: localhost\r\n\r\n", path);
    if (write(fd, request, (size_t)len) != len) fail("write");
}

/* A short answer, whole. */
static void answer(int fd, char *room, size_t size) {
    ssize_t got = read(fd, room, size - 1);
    if (got < 12) fail("an answer");
    room[got] = 0;
    if (memcmp(room + 9, "200", 3) != 0) {
        fprintf(stderr, "live_readers: %s\n", room);
        exit(1);
    }
}

/* --- beside the readers ------------------------------------------------------------------- */

/* It must not wait for the readers, with which it shares a core. */
static void go_first(void) {
    struct sched_param param;
    int policy;
    if (pthread_getschedparam(pthread_self(), &policy, &param)) return;
    param.sched_priority = policy == SCHED_FIFO ? param.sched_priority + 1 : 1;
    (void)pthread_setschedparam(pthread_self(), SCHED_FIFO, &param); /* else as it is */
}

static void *ask_health(void *unused) {
    char room[4096];
    (void)unused;
    go_first();
    while (!atomic_load(&health.over)) {
        uint64_t began = clock_mono_us();
        ask(health.fd, "/health");
        answer(health.fd, room, sizeof(room));
        uint64_t took = clock_mono_us() - began;
        samples_add(atomic_load(&health.counts) ? &health.beside : &health.idle,
                    (uint32_t)took);
        usleep(HEALTH_EVERY_US);
    }
    return NULL;
}

/* --- reading ------------------------------------------------------------------------------ */

static void take_event(struct reader *reader, uint64_t seq, uint64_t now) {
    if (seq >= SEQ_MAX) fail("too many events");
    if (reader->began && seq != reader->seq + 1) live.wrong++;
    if (!reader->began) live.begun++;
    reader->began = true;
    reader->seq = seq;
    if (seq > live.newest) live.newest = seq;
    if (!live.first_us[seq]) live.first_us[seq] = now;
    if (!live.counts) return;
    reader->count++;
    live.deliveries++;
    samples_add(&live.spread, (uint32_t)(now - live.first_us[seq]));
}

/* The bytes of a body: its lines "id: EPOCH-SEQ". Returns how many bytes at the end are kept, as
 * they may begin such a line. */
static size_t take_body(struct reader *reader, const char *at, size_t len, uint64_t now) {
    const char *end = at + len, *line = at;
    while ((line = memmem(line, (size_t)(end - line), "\nid: ", 5))) {
        const char *stop = memchr(line + 1, '\n', (size_t)(end - line - 1));
        if (!stop) return (size_t)(end - line);
        const char *dash = memchr(line, '-', (size_t)(stop - line));
        if (!dash) fail("an id");
        take_event(reader, strtoull(dash + 1, NULL, 10), now);
        line = stop;
    }
    const char *last = memrchr(at, '\n', len);
    return last && (size_t)(end - last) < 5 ? (size_t)(end - last) : 0;
}

/* The head and the chunks' sizes are taken off; returns the bytes of the body, in `body`. */
static size_t take_chunks(struct reader *reader, const char *at, size_t len, char *body) {
    size_t had = 0;
    for (const char *end = at + len; at < end;) {
        if (reader->part == PART_HEAD) {
            reader->left = *at == '\n' ? reader->left + 1 : *at == '\r' ? reader->left : 0;
            if (reader->left == 2) reader->part = PART_SIZE, reader->left = 0;
            at++;
        } else if (reader->part == PART_SIZE) {
            char c = *at++;
            if (c >= '0' && c <= '9') reader->left = reader->left * 16 + (size_t)(c - '0');
            if (c >= 'a' && c <= 'f') reader->left = reader->left * 16 + (size_t)(c - 'a') + 10;
            if (c == '\n') reader->part = PART_DATA;
            if (c == '\n' && !reader->left) fail("the stream is over too early");
        } else if (reader->part == PART_DATA) {
            size_t part = (size_t)(end - at) < reader->left ? (size_t)(end - at) : reader->left;
            memcpy(body + had, at, part);
            had += part;
            at += part;
            reader->left -= part;
            if (!reader->left) reader->part = PART_END;
        } else {
            if (*at++ == '\n') reader->part = PART_SIZE;
        }
    }
    return had;
}

static void take(struct reader *reader) {
    static char room[256 * KIB], body[256 * KIB + CARRY_MAX];
    ssize_t got = recv(reader->fd, room, sizeof(room), MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) fail("a reader's connection");
    uint64_t now = clock_mono_us();
    if (live.counts) {
        live.reads++;
        live.bytes += (uint64_t)got;
        if (now - reader->last_us > reader->silence_us)
            reader->silence_us = now - reader->last_us;
    }
    reader->last_us = now;
    memcpy(body, reader->carry, reader->carried);
    size_t len = reader->carried;
    len += take_chunks(reader, room, (size_t)got, body + len);
    reader->carried = take_body(reader, body, len, now);
    if (reader->carried > CARRY_MAX) fail("an id's line is too long");
    memcpy(reader->carry, body + len - reader->carried, reader->carried);
}

static void read_until(int epoll, uint64_t until_us, bool until_begun) {
    struct epoll_event ready[512];
    while (clock_mono_us() < until_us && !(until_begun && live.begun == live.count)) {
        int n = epoll_wait(epoll, ready, ARRAY_LEN(ready), 1);
        for (int i = 0; i < n; i++) take(&live.readers[ready[i].data.u64]);
    }
}

/* --- the run ------------------------------------------------------------------------------ */

/* Ask for a run; returns the path of its events. */
static const char *begin_run(void) {
    static char path[128];
    static const char body[] = "{\"input\": \"hello\", \"session_id\": \"live\"}";
    char room[16384];
    int fd = dial(), look = dial(); /* both stay open */
    int len = snprintf(room, sizeof(room),
                       "POST /invoke HTTP/1.1\r\nhost: localhost\r\ncontent-type: "
                       "application/json\r\ncontent-length: %zu\r\n\r\n%s",
                       sizeof(body) - 1, body);
    if (write(fd, room, (size_t)len) != len) fail("write");
    for (int tries = 0; tries < 200; tries++) {
        usleep(20000);
        ask(look, "/weir/v1/runs?session_id=live");
        answer(look, room, sizeof(room));
        char *id = strstr(room, "\"id\"");
        if (!id) continue;
        id = strpbrk(id + 4, "0123456789");
        snprintf(path, sizeof(path), "/weir/v1/runs/%.*s/events", (int)strspn(id, "0123456789"),
                 id);
        return path;
    }
    fail("no run");
    return NULL;
}

static uint64_t pss_kb(pid_t pid) {
    struct proc_memory memory;
    struct err e;
    if (!proc_memory(pid, &memory, &e)) fail(e.text);
    return memory.pss_kb;
}

static uint64_t cpu_ns(pid_t pid) {
    uint64_t ns;
    struct err e;
    if (!proc_cpu_ns(pid, &ns, NULL, &e)) fail(e.text);
    return ns;
}

static uint64_t busy_ns(void) {
    uint64_t ns;
    struct err e;
    if (!proc_machine_busy_ns(&ns, &e)) fail(e.text);
    return ns;
}

static void connect_all(void) {
    char room[4096];
    live.readers = mem_zero(live.count, sizeof(*live.readers));
    for (size_t i = 0; i < live.count; i++) {
        live.readers[i].fd = dial();
        ask(live.readers[i].fd, "/health");
        answer(live.readers[i].fd, room, sizeof(room));
    }
}

static void ask_all(int epoll, const char *path) {
    for (size_t i = 0; i < live.count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u64 = i};
        ask(live.readers[i].fd, path);
        epoll_ctl(epoll, EPOLL_CTL_ADD, live.readers[i].fd, &event);
    }
}

static void count_from(uint64_t now) {
    for (size_t i = 0; i < live.count; i++) live.readers[i].last_us = now;
    live.counts = true;
    atomic_store(&health.counts, true);
}

struct slowest {
    uint64_t events, silence_us, behind;
};

static struct slowest find_slowest(uint64_t now) {
    struct slowest slowest = {.events = UINT64_MAX};
    for (size_t i = 0; i < live.count; i++) {
        const struct reader *reader = &live.readers[i];
        uint64_t silence = now - reader->last_us;
        if (reader->silence_us > silence) silence = reader->silence_us;
        if (reader->count < slowest.events) slowest.events = reader->count;
        if (silence > slowest.silence_us) slowest.silence_us = silence;
        if (live.newest - reader->seq > slowest.behind)
            slowest.behind = live.newest - reader->seq;
    }
    return slowest;
}

static void raise_files(void) {
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

int main(int argc, char **argv) {
    bool alone = argc == 7 && strcmp(argv[6], "alone") == 0;
    if (argc != 6 && !alone) {
        fprintf(stderr, "live_readers: weir|other PORT PID READERS SECONDS [alone]\n");
        return 2;
    }
    bool weir = strcmp(argv[1], "weir") == 0;
    port = atoi(argv[2]);
    pid_t pid = (pid_t)atoi(argv[3]);
    live.count = (size_t)atol(argv[4]);
    uint64_t seconds_us = (uint64_t)(atof(argv[5]) * 1e6);
    pthread_t asker;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    raise_files();

    uint64_t empty_kb = pss_kb(pid);
    connect_all();
    health.fd = dial();
    if (!alone && pthread_create(&asker, NULL, ask_health, NULL)) fail("a thread");
    sleep(1);
    uint64_t connected_kb = pss_kb(pid);
    ask_all(epoll, weir ? begin_run() : "/events");
    read_until(epoll, clock_mono_us() + PATIENCE_US, true);
    bool all_begun = live.begun == live.count;
    read_until(epoll, clock_mono_us() + SETTLE_US, false);

    uint64_t began = clock_mono_us(), server = cpu_ns(pid), own = cpu_ns(getpid()),
             busy = busy_ns();
    count_from(began);
    read_until(epoll, began + seconds_us, false);
    uint64_t over = clock_mono_us();
    server = cpu_ns(pid) - server, own = cpu_ns(getpid()) - own, busy = busy_ns() - busy;
    uint64_t reading_kb = pss_kb(pid);
    atomic_store(&health.over, true);
    if (!alone) pthread_join(asker, NULL);

    double s = (double)(over - began) / 1e6,
           d = (double)(live.deliveries ? live.deliveries : 1);
    double others = ((double)busy - (double)server - (double)own) / 1e9 / s;
    struct slowest slowest = find_slowest(over);
    samples_sort(&live.spread);
    samples_sort(&health.idle);
    samples_sort(&health.beside);
    printf("{\"readers\": %zu, \"all_begun\": %s, \"wrong\": %llu, \"per_second\": %.0f, "
           "\"bytes\": %.0f, \"events_a_read\": %.2f, \"cpu_us\": %.2f, \"core\": %.2f, "
           "\"spread_ms\": {\"p50\": %.1f, \"p99\": %.1f, \"max\": %.1f}, "
           "\"slowest\": {\"events\": %llu, \"silence_ms\": %.0f, \"behind\": %llu}, "
           "\"kb\": {\"connection\": %.2f, \"reader\": %.2f, \"all\": %llu}, "
           "\"health_ms\": {\"idle_p99\": %.2f, \"p50\": %.2f, \"p99\": %.2f, \"max\": %.2f}, "
           "\"driver_core\": %.2f, \"others_cpu\": %.2f}\n",
           live.count, all_begun ? "true" : "false", (unsigned long long)live.wrong, d / s,
           (double)live.bytes / d, d / (double)(live.reads ? live.reads : 1),
           (double)server / 1e3 / d, (double)server / 1e9 / s,
           samples_at(&live.spread, 500) / 1e3, samples_at(&live.spread, 990) / 1e3,
           samples_at(&live.spread, 1000) / 1e3, (unsigned long long)slowest.events,
           (double)slowest.silence_us / 1e3, (unsigned long long)slowest.behind,
           ((double)connected_kb - (double)empty_kb) / (double)live.count,
           ((double)reading_kb - (double)connected_kb) / (double)live.count,
           (unsigned long long)reading_kb, samples_at(&health.idle, 990) / 1e3,
           samples_at(&health.beside, 500) / 1e3, samples_at(&health.beside, 990) / 1e3,
           samples_at(&health.beside, 1000) / 1e3, (double)own / 1e9 / s,
           others > 0 ? others : 0);
    return 0;
}
