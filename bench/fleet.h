/* fleet: many connections with many Converse streams each, on one epoll.
 *
 * Every stream has a seat: who asks on it, and how far its present turn is. Whatever arrives
 * is checked by turn.h before the mode's on_event hears of it; the first wrong byte, broken
 * frame or silent server ends the run with a sentence.
 *
 * Memory   owns connections and seats; fleet_close() frees them.
 * Threads  none.
 */
#ifndef WEIR_BENCH_FLEET_H
#define WEIR_BENCH_FLEET_H

#include "h2.h"
#include "turn.h"

struct fleet;

struct seat {
    struct fleet *fleet;
    struct h2 *h2;
    struct h2_stream *stream;
    struct turn_asker asker;
    struct turn turn;
    size_t index;
    uint64_t asked_us;
};

struct fleet_options {
    int port;
    size_t connections, streams; /* streams: on each connection */
    struct str key;              /* signs the tokens */
};

struct fleet {
    int epoll;
    struct h2 *connections;
    bool *pending; /* the connection's socket was full */
    size_t connection_count;
    struct seat *seats;
    size_t seat_count;
    size_t ended; /* streams that the server ended with OK */
    bool closing; /* streams may end now */
    uint64_t heard_us;
    uint64_t events, turns;
    /* After each event that was right. May be NULL. */
    void (*on_event)(struct seat *seat, enum turn_event event, uint64_t now_us, void *ctx);
    void *ctx;
};

/* Connect, wait for every SETTINGS, open every stream. Set on_event afterwards. */
MUST_CHECK bool fleet_open(struct fleet *fleet, const struct fleet_options *options,
                           struct err *e);

/* Ask for a turn; its bytes leave with the next fleet_poll(). */
void fleet_ask(struct seat *seat, unsigned paced_chunks);

/* Send what is queued, wait up to wait_us for bytes, hand them out.
 * errors  ERR_DEADLINE_EXCEEDED a turn is open and nothing came for 20 s */
MUST_CHECK bool fleet_poll(struct fleet *fleet, uint64_t wait_us, struct err *e);

/* Half-close every stream, wait for the OK of each, close the sockets.
 * errors  any other ending, or none within 10 s */
MUST_CHECK bool fleet_close(struct fleet *fleet, struct err *e);

/* Totals over all connections. */
struct fleet_traffic {
    uint64_t frames, reads, bytes;
};
struct fleet_traffic fleet_traffic(const struct fleet *fleet);

#endif
