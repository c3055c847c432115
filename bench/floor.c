/* floor: the least that any server could do.
 *
 *   floor PORTS_FILE
 *
 * It answers the driver with frames that were encoded before the first client came, copied
 * into one buffer a connection and written 64 KiB at a time. It decodes no header, checks no
 * token, keeps nothing and trusts its client entirely, so it is no server: it is how fast
 * this kernel and the driver can move exactly these bytes. Paced turns come from a 1 ms tick
 * with one write a connection and tick.
 *
 * Threads  none; ends at SIGTERM.
 */
#include "turn.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define FRAME_HEAD 9
#define FRAME_MAX 16384
#define GRPC_HEAD 5
#define PREFACE_BYTES 24
#define WRITE_BYTES (64 * KIB)
#define READ_BYTES (256 * KIB)
#define SLOTS (TURN_PACE_US / 1000)
#define CONNECTIONS_MAX 4096

enum { DATA = 0, HEADERS = 1, SETTINGS = 4, PING = 6, WINDOW_UPDATE = 8 };
enum { ACK = 1, END_STREAM = 1, END_HEADERS = 4 };

struct connection {
    int fd;
    bool greeted;
    struct buf in, out;
};

/* A stream in a paced turn. */
struct pace {
    struct connection *connection;
    uint32_t stream;
    unsigned next, count;
};

struct slot {
    struct pace *paces;
    size_t count, room;
};

struct floor {
    int epoll, listener, timer;
    unsigned now; /* ticks of 1 ms */
    struct slot slots[SLOTS];
    struct buf turn;   /* all frames of an unpaced turn, stream ids to be filled in */
    struct buf chunk;  /* one frame */
    struct buf ending; /* usage and done of a paced turn of ending_chunks */
    unsigned ending_chunks;
    struct connection *connections[CONNECTIONS_MAX]; /* by descriptor */
    int descriptors;                                 /* all are below this */
};

/* ---- encoding ---- */

static void put_u32(char *at, uint32_t number) {
    at[0] = (char)(number >> 24);
    at[1] = (char)(number >> 16);
    at[2] = (char)(number >> 8);
    at[3] = (char)number;
}

static uint32_t get_u32(const char *at) {
    const unsigned char *b = (const unsigned char *)at;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void put_frame(struct buf *out, uint8_t type, uint8_t flags, uint32_t stream,
                      struct str body) {
    char head[FRAME_HEAD];
    put_u32(head, (uint32_t)body.len << 8);
    head[3] = (char)type;
    head[4] = (char)flags;
    put_u32(head + 5, stream);
    buf_append(out, str_of(head, sizeof(head)));
    buf_append(out, body);
}

static void put_message(struct buf *out, uint32_t stream, struct str message) {
    struct buf body;
    char head[GRPC_HEAD] = {0};
    put_u32(head + 1, (uint32_t)message.len);
    buf_init(&body, 16 * MIB);
    buf_append(&body, str_of(head, sizeof(head)));
    buf_append(&body, message);
    for (struct str rest = buf_str(&body); rest.len; rest = str_skip(rest, FRAME_MAX))
        put_frame(out, DATA, 0, stream, str_head(rest, FRAME_MAX));
    buf_done(&body);
}

static void put_varint(struct buf *out, uint64_t value) {
    for (; value >= 0x80; value >>= 7) buf_append_byte(out, (char)(value | 0x80));
    buf_append_byte(out, (char)value);
}

/* Field `number` (wire type 2) with these bytes. */
static void put_bytes(struct buf *out, unsigned number, struct str bytes) {
    buf_append_byte(out, (char)(number << 3 | 2));
    put_varint(out, bytes.len);
    buf_append(out, bytes);
}

static void put_spoken(struct buf *out, unsigned field, struct str text) {
    struct buf inner;
    buf_init(&inner, 16 * MIB);
    put_bytes(&inner, 1, STR("manager"));
    put_bytes(&inner, 2, text);
    put_bytes(out, field, buf_str(&inner));
    buf_done(&inner);
}

static void put_chunk(struct buf *out, uint32_t stream, unsigned number) {
    struct buf text, event;
    buf_init(&text, KIB);
    buf_init(&event, KIB);
    buf_printf(&text, "%08u" TURN_TAIL, number);
    put_spoken(&event, 1, buf_str(&text));
    put_message(out, stream, buf_str(&event));
    buf_done(&text);
    buf_done(&event);
}

static void put_ending(struct buf *out, uint32_t stream, unsigned chunks) {
    struct buf text, done, event;
    buf_init(&text, 16 * MIB);
    buf_init(&done, 16 * MIB);
    buf_init(&event, 16 * MIB);
    for (unsigned n = 0; n < chunks; n++) buf_printf(&text, "%08u" TURN_TAIL, n);
    put_message(out, stream, STR("\x32\x0e\x0a\x07manager\x12\x01m\x28\x01")); /* usage */
    put_bytes(&done, 1, STR("m"));
    put_spoken(&done, 2, buf_str(&text));
    put_bytes(&event, 5, buf_str(&done));
    put_message(out, stream, buf_str(&event));
    buf_done(&text);
    buf_done(&done);
    buf_done(&event);
}

static void encode_ahead(struct floor *floor) {
    buf_init(&floor->turn, MIB);
    buf_init(&floor->chunk, KIB);
    buf_init(&floor->ending, 16 * MIB);
    for (unsigned n = 0; n < TURN_CHUNKS; n++) put_chunk(&floor->turn, 0, n);
    put_ending(&floor->turn, 0, TURN_CHUNKS);
    put_chunk(&floor->chunk, 0, 0);
}

/* ---- writing ---- */

static void flush(struct connection *connection) {
    for (size_t done = 0; done < connection->out.len;) {
        size_t left = connection->out.len - done;
        if (left > WRITE_BYTES) left = WRITE_BYTES;
        ssize_t wrote = send(connection->fd, connection->out.at + done, left, MSG_NOSIGNAL);
        if (wrote <= 0) break; /* the client left; reading notices */
        done += (size_t)wrote;
    }
    buf_clear(&connection->out);
}

/* Append frames under another stream id; returns where they are until the next append. */
static char *copy_frames(struct connection *connection, struct str frames, uint32_t stream) {
    if (connection->out.len >= WRITE_BYTES) flush(connection);
    char *at = buf_room(&connection->out, frames.len);
    assert(at);
    memcpy(at, frames.at, frames.len);
    for (size_t n = 0; n < frames.len; n += FRAME_HEAD + (get_u32(at + n) >> 8))
        put_u32(at + n + 5, stream);
    buf_grew(&connection->out, frames.len);
    return at;
}

/* ---- paced turns ---- */

static void pace_once(struct floor *floor, struct pace *pace) {
    char *frame = copy_frames(pace->connection, buf_str(&floor->chunk), pace->stream);
    char *number = frame + floor->chunk.len - TURN_TEXT_BYTES;
    for (unsigned i = 8, rest = pace->next++; i-- > 0; rest /= 10)
        number[i] = (char)('0' + rest % 10);
    if (pace->next == pace->count)
        copy_frames(pace->connection, buf_str(&floor->ending), pace->stream);
}

/* Once for each length that is asked, before its first chunk. */
static void encode_ending(struct floor *floor, unsigned chunks) {
    if (floor->ending_chunks == chunks) return;
    floor->ending_chunks = chunks;
    buf_clear(&floor->ending);
    put_ending(&floor->ending, 0, chunks);
}

static void pace_start(struct floor *floor, struct pace pace) {
    struct slot *slot = &floor->slots[floor->now % SLOTS];
    encode_ending(floor, pace.count);
    pace_once(floor, &pace);
    if (slot->count == slot->room) {
        slot->room = slot->room ? 2 * slot->room : 64;
        slot->paces = mem_resize(slot->paces, slot->room * sizeof(*slot->paces));
    }
    slot->paces[slot->count++] = pace;
}

static void flush_all(struct floor *floor) {
    for (int fd = 0; fd < floor->descriptors; fd++)
        if (floor->connections[fd] && floor->connections[fd]->out.len)
            flush(floor->connections[fd]);
}

static void tick(struct floor *floor) {
    uint64_t ticks = 0;
    if (read(floor->timer, &ticks, sizeof(ticks)) != (ssize_t)sizeof(ticks)) return;
    for (; ticks; ticks--) {
        struct slot *slot = &floor->slots[++floor->now % SLOTS];
        size_t kept = 0;
        for (size_t i = 0; i < slot->count; i++) {
            pace_once(floor, &slot->paces[i]);
            if (slot->paces[i].next < slot->paces[i].count)
                slot->paces[kept++] = slot->paces[i];
        }
        slot->count = kept;
    }
    flush_all(floor);
}

/* ---- reading ---- */

static void on_request(struct floor *floor, struct connection *connection, uint32_t stream,
                       struct str body) {
    size_t at = str_find(body, STR("paced "));
    if (at == body.len) {
        copy_frames(connection, buf_str(&floor->turn), stream);
        return;
    }
    struct pace pace = {.connection = connection, .stream = stream};
    struct str digits = str_skip(body, at + 6);
    for (; digits.len && digits.at[0] >= '0' && digits.at[0] <= '9';
         digits = str_skip(digits, 1))
        pace.count = pace.count * 10 + (unsigned)(digits.at[0] - '0');
    pace_start(floor, pace);
}

static void on_frame(struct floor *floor, struct connection *connection, const char *head,
                     struct str body) {
    static const char headers[] = "\x88\x0f\x10\x10"
                                  "application/grpc";
    static const char trailers[] = "\x00\x0b"
                                   "grpc-status"
                                   "\x01"
                                   "0";
    uint32_t stream = get_u32(head + 5);
    uint8_t type = (uint8_t)head[3], flags = (uint8_t)head[4];
    struct buf *out = &connection->out;
    if (type == SETTINGS && !(flags & ACK)) put_frame(out, SETTINGS, ACK, 0, STR_EMPTY);
    if (type == PING && !(flags & ACK)) put_frame(out, PING, ACK, 0, body);
    if (type == HEADERS)
        put_frame(out, HEADERS, END_HEADERS, stream, str_of(headers, sizeof(headers) - 1));
    if (type == DATA && body.len) on_request(floor, connection, stream, body);
    if (type == DATA && flags & END_STREAM)
        put_frame(out, HEADERS, END_HEADERS | END_STREAM, stream,
                  str_of(trailers, sizeof(trailers) - 1));
}

static void greet(struct connection *connection) {
    static const char settings[] = "\0\x04\x7f\xff\xff\xff"; /* INITIAL_WINDOW_SIZE */
    char window[4];
    put_u32(window, 0x7fffffff - 65535);
    put_frame(&connection->out, SETTINGS, 0, 0, str_of(settings, sizeof(settings) - 1));
    put_frame(&connection->out, WINDOW_UPDATE, 0, 0, str_of(window, sizeof(window)));
    buf_drop(&connection->in, PREFACE_BYTES);
    connection->greeted = true;
}

static void leave(struct floor *floor, struct connection *connection) {
    for (size_t i = 0; i < SLOTS; i++)
        for (size_t k = 0; k < floor->slots[i].count; k++)
            if (floor->slots[i].paces[k].connection == connection)
                floor->slots[i].paces[k--] = floor->slots[i].paces[--floor->slots[i].count];
    floor->connections[connection->fd] = NULL;
    close(connection->fd);
    buf_done(&connection->in);
    buf_done(&connection->out);
    free(connection);
}

static void take_bytes(struct floor *floor, struct connection *connection) {
    char *at = buf_room(&connection->in, READ_BYTES);
    ssize_t got = at ? recv(connection->fd, at, READ_BYTES, MSG_DONTWAIT) : 0;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
        leave(floor, connection);
        return;
    }
    buf_grew(&connection->in, (size_t)got);
    if (!connection->greeted && connection->in.len >= PREFACE_BYTES) greet(connection);
    struct str rest = buf_str(&connection->in);
    while (connection->greeted && rest.len >= FRAME_HEAD) {
        size_t len = get_u32(rest.at) >> 8;
        if (rest.len < FRAME_HEAD + len) break;
        on_frame(floor, connection, rest.at, str_of(rest.at + FRAME_HEAD, len));
        rest = str_skip(rest, FRAME_HEAD + len);
    }
    buf_drop(&connection->in, connection->in.len - rest.len);
    flush(connection);
}

/* ---- life ---- */

static void watch(const struct floor *floor, int fd) {
    struct epoll_event want = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(floor->epoll, EPOLL_CTL_ADD, fd, &want) < 0) abort();
}

static void welcome(struct floor *floor) {
    int fd = accept4(floor->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) return;
    if (fd >= CONNECTIONS_MAX) {
        close(fd);
        return;
    }
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    struct connection *connection = MEM_NEW(struct connection);
    connection->fd = fd;
    buf_init(&connection->in, 2 * READ_BYTES);
    buf_init(&connection->out, 64 * MIB);
    floor->connections[fd] = connection;
    if (fd >= floor->descriptors) floor->descriptors = fd + 1;
    watch(floor, fd);
}

static bool floor_listen(struct floor *floor, const char *ports_file) {
    struct sockaddr_in where = {.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(where);
    floor->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(floor->listener, (struct sockaddr *)&where, len) < 0) return false;
    if (listen(floor->listener, SOMAXCONN) < 0) return false;
    if (getsockname(floor->listener, (struct sockaddr *)&where, &len) < 0) return false;
    FILE *file = fopen(ports_file, "we");
    if (!file) return false;
    fprintf(file, "{\"grpc\": %d}\n", ntohs(where.sin_port));
    return fclose(file) == 0;
}

static void timer_start(struct floor *floor) {
    struct itimerspec each = {.it_interval.tv_nsec = 1000000, .it_value.tv_nsec = 1000000};
    floor->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (timerfd_settime(floor->timer, 0, &each, NULL) < 0) abort();
    watch(floor, floor->timer);
}

int main(int argc, char **argv) {
    static struct floor floor;
    struct epoll_event ready[64];
    if (argc != 2 || !floor_listen(&floor, argv[1])) {
        fprintf(stderr, "floor: floor PORTS_FILE: %s\n", strerror(errno));
        return 2;
    }
    floor.epoll = epoll_create1(EPOLL_CLOEXEC);
    encode_ahead(&floor);
    watch(&floor, floor.listener);
    timer_start(&floor);
    for (;;) {
        int count = epoll_wait(floor.epoll, ready, ARRAY_LEN(ready), -1);
        for (int i = 0; i < count; i++) {
            int fd = ready[i].data.fd;
            if (fd == floor.listener)
                welcome(&floor);
            else if (fd == floor.timer)
                tick(&floor);
            else if (floor.connections[fd])
                take_bytes(&floor, floor.connections[fd]);
        }
    }
}
