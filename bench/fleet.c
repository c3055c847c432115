#include "fleet.h"

#include "base/clock.h"
#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define CONVERSE STR("/crawbl.agentruntime.v1.AgentRuntime/Converse")
#define SILENCE_US 20000000u
#define CLOSE_US 10000000u
#define POLL_EVENTS 64

/* ---- what the connections tell ---- */

static bool on_message(struct h2_stream *stream, struct str message, struct err *e) {
    struct seat *seat = stream->user;
    struct fleet *fleet = seat->fleet;
    enum turn_event event;
    if (!turn_take(&seat->turn, message, &event, e))
        return err_add(e, "%s, stream %u", seat->asker.session, stream->id);
    fleet->events++;
    if (event == TURN_DONE) fleet->turns++;
    if (fleet->on_event) fleet->on_event(seat, event, seat->h2->read_us, fleet->ctx);
    return true;
}

static bool on_end(struct h2_stream *stream, struct err *e) {
    struct seat *seat = stream->user;
    if (!seat->fleet->closing || stream->grpc_status != 0 || stream->http_status != 200)
        return err_set(e, ERR_UNAVAILABLE,
                       "%s: the server ended the stream: HTTP %d, grpc-status %d, '%s'",
                       seat->asker.session, stream->http_status, stream->grpc_status,
                       stream->grpc_message);
    seat->fleet->ended++;
    return true;
}

/* ---- opening ---- */

static bool watch(struct fleet *fleet, size_t i, int operation, struct err *e) {
    struct epoll_event want = {.events = EPOLLIN, .data.u64 = i};
    if (fleet->pending[i]) want.events |= EPOLLOUT;
    if (epoll_ctl(fleet->epoll, operation, fleet->connections[i].fd, &want) == 0) return true;
    return err_set(e, ERR_INTERNAL, "epoll_ctl: %s", strerror(errno));
}

static bool all_settled(const struct fleet *fleet) {
    for (size_t i = 0; i < fleet->connection_count; i++)
        if (!fleet->connections[i].settled) return false;
    return true;
}

static void seat_take(struct fleet *fleet, size_t index, struct h2 *h2, struct str key) {
    struct seat *seat = &fleet->seats[index];
    *seat = (struct seat){.fleet = fleet, .h2 = h2, .index = index};
    snprintf(seat->asker.user, sizeof(seat->asker.user), "user-%05zu", index);
    snprintf(seat->asker.workspace, sizeof(seat->asker.workspace), "workspace-%05zu", index);
    snprintf(seat->asker.session, sizeof(seat->asker.session), "session-%05zu-%lld", index,
             (long long)clock_unix_ms());
    struct buf bearer;
    buf_init(&bearer, KIB);
    turn_bearer(&seat->asker, key, &bearer);
    seat->stream = h2_open(h2, CONVERSE, buf_str(&bearer));
    seat->stream->user = seat;
    seat->turn.done = true;
    buf_done(&bearer);
}

static bool connect_all(struct fleet *fleet, int port, struct err *e) {
    for (size_t i = 0; i < fleet->connection_count; i++) {
        struct h2 *h2 = &fleet->connections[i];
        if (!h2_connect(h2, port, e)) return false;
        h2->on_message = on_message;
        h2->on_end = on_end;
        if (!watch(fleet, i, EPOLL_CTL_ADD, e)) return false;
    }
    uint64_t deadline_us = clock_mono_us() + CLOSE_US;
    while (!all_settled(fleet)) {
        if (!fleet_poll(fleet, 100000, e)) return false;
        if (clock_mono_us() > deadline_us)
            return err_set(e, ERR_DEADLINE_EXCEEDED, "no SETTINGS within 10 s");
    }
    return true;
}

/* A server may allow few streams to a stranger and more after the first good token. */
static bool wait_for_room(struct fleet *fleet, struct h2 *h2, struct err *e) {
    uint64_t deadline_us = clock_mono_us() + CLOSE_US;
    while (h2->stream_count >= h2->max_streams) {
        if (!fleet_poll(fleet, 10000, e)) return false;
        if (clock_mono_us() > deadline_us)
            return err_set(e, ERR_RESOURCE_EXHAUSTED, "the server allows only %u streams",
                           h2->max_streams);
    }
    return true;
}

bool fleet_open(struct fleet *fleet, const struct fleet_options *options, struct err *e) {
    *fleet = (struct fleet){.epoll = epoll_create1(EPOLL_CLOEXEC),
                            .connections = mem_zero(options->connections, sizeof(struct h2)),
                            .pending = mem_zero(options->connections, sizeof(bool)),
                            .connection_count = options->connections,
                            .heard_us = clock_mono_us()};
    assert(fleet->epoll >= 0);
    if (!connect_all(fleet, options->port, e)) return false;
    size_t seats = options->connections * options->streams;
    fleet->seats = mem_zero(seats, sizeof(struct seat));
    for (size_t i = 0; i < seats; i++) {
        struct h2 *h2 = &fleet->connections[i / options->streams];
        if (!wait_for_room(fleet, h2, e)) return false;
        seat_take(fleet, i, h2, options->key);
        fleet->seat_count++;
    }
    return fleet_poll(fleet, 0, e);
}

/* ---- running ---- */

void fleet_ask(struct seat *seat, unsigned paced_chunks) {
    struct buf request;
    buf_init(&request, KIB);
    turn_request(&seat->asker, paced_chunks, &request);
    assert(buf_ok(&request) && seat->turn.done);
    turn_begin(&seat->turn, paced_chunks);
    seat->asked_us = clock_mono_us();
    h2_send(seat->h2, seat->stream, buf_str(&request));
    buf_done(&request);
}

static bool flush_all(struct fleet *fleet, struct err *e) {
    for (size_t i = 0; i < fleet->connection_count; i++) {
        struct h2 *h2 = &fleet->connections[i];
        bool left = false;
        if (!h2->out.len) continue;
        if (!h2_flush(h2, &left, e)) return false;
        if (left == fleet->pending[i]) continue;
        fleet->pending[i] = left;
        if (!watch(fleet, i, EPOLL_CTL_MOD, e)) return false;
    }
    return true;
}

static bool turn_open(const struct fleet *fleet) {
    for (size_t i = 0; i < fleet->seat_count; i++)
        if (!fleet->seats[i].turn.done) return true;
    return false;
}

bool fleet_poll(struct fleet *fleet, uint64_t wait_us, struct err *e) {
    struct epoll_event ready[POLL_EVENTS];
    struct timespec wait = {.tv_sec = (time_t)(wait_us / 1000000u),
                            .tv_nsec = (long)(wait_us % 1000000u) * 1000};
    if (!flush_all(fleet, e)) return false;
    int count = epoll_pwait2(fleet->epoll, ready, POLL_EVENTS, &wait, NULL);
    if (count < 0 && errno != EINTR)
        return err_set(e, ERR_INTERNAL, "epoll_pwait2: %s", strerror(errno));
    for (int i = 0; i < count; i++) {
        struct h2 *h2 = &fleet->connections[ready[i].data.u64];
        if (ready[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !h2_read(h2, e)) return false;
    }
    uint64_t now_us = clock_mono_us();
    if (count > 0) fleet->heard_us = now_us;
    if (now_us - fleet->heard_us > SILENCE_US && turn_open(fleet))
        return err_set(e, ERR_DEADLINE_EXCEEDED, "a turn is open and nothing came for 20 s");
    return flush_all(fleet, e);
}

/* ---- closing ---- */

static bool end_streams(struct fleet *fleet, struct err *e) {
    fleet->closing = true;
    for (size_t i = 0; i < fleet->seat_count; i++)
        h2_half_close(fleet->seats[i].h2, fleet->seats[i].stream);
    uint64_t deadline_us = clock_mono_us() + CLOSE_US;
    while (fleet->ended < fleet->seat_count) {
        if (!fleet_poll(fleet, 100000, e)) return false;
        if (clock_mono_us() > deadline_us)
            return err_set(e, ERR_DEADLINE_EXCEEDED, "%zu of %zu streams did not end",
                           fleet->seat_count - fleet->ended, fleet->seat_count);
    }
    return true;
}

bool fleet_close(struct fleet *fleet, struct err *e) {
    bool ended = end_streams(fleet, e);
    for (size_t i = 0; i < fleet->connection_count; i++) h2_done(&fleet->connections[i]);
    close(fleet->epoll);
    free(fleet->connections);
    free(fleet->pending);
    free(fleet->seats);
    return ended;
}

struct fleet_traffic fleet_traffic(const struct fleet *fleet) {
    struct fleet_traffic sum = {0};
    for (size_t i = 0; i < fleet->connection_count; i++) {
        sum.frames += fleet->connections[i].frames;
        sum.reads += fleet->connections[i].reads;
        sum.bytes += fleet->connections[i].bytes;
    }
    return sum;
}
