/* fake: a connection without a socket.
 *
 * What the server sends is collected in `sent`; `window` limits it; the clock does not move.
 * For tests and fuzz targets of server/.
 */
#ifndef WEIR_TEST_SERVER_FAKE_H
#define WEIR_TEST_SERVER_FAKE_H

#include "base/mem.h"
#include "server/conn.h"

#include <stdlib.h>

struct fake {
    struct transport transport;
    struct loop *loop;
    struct home home;
    struct server_limits limits;
    struct listener_options listener;
    struct conn *conn; /* NULL once it is gone */
    struct buf sent;
    size_t window; /* bytes the peer still takes */
    size_t sends;  /* calls of send */
    bool broken;   /* send fails */
    bool reading, writing, ended;
    struct task close;
};

static inline ptrdiff_t fake_send(struct transport *transport, struct str bytes) {
    struct fake *fake = CONTAINER_OF(transport, struct fake, transport);
    if (fake->broken) return -1;
    struct str taken = str_head(bytes, fake->window);
    fake->window -= taken.len;
    fake->sends++;
    buf_append(&fake->sent, taken);
    return (ptrdiff_t)taken.len;
}

static inline void fake_watch(struct transport *transport, bool reading, bool writing) {
    struct fake *fake = CONTAINER_OF(transport, struct fake, transport);
    fake->reading = reading;
    fake->writing = writing;
}

static inline void fake_end(struct transport *transport) {
    CONTAINER_OF(transport, struct fake, transport)->ended = true;
}

static inline void fake_closed(void *ctx) {
    struct fake *fake = ctx;
    conn_closed(fake->conn);
    fake->conn = NULL;
}

static inline void fake_close(struct transport *transport) {
    struct fake *fake = CONTAINER_OF(transport, struct fake, transport);
    loop_defer(fake->loop, &fake->close);
}

static const struct transport_kind fake_kind = {fake_send, fake_watch, fake_end, fake_close};

/* A connection whose requests go to on_request(exchange, ctx). */
static inline void fake_open(struct fake *fake, exchange_start_fn *on_request, void *ctx) {
    *fake = (struct fake){
        .transport = {.kind = &fake_kind}, .limits = server_limits_default, .window = SIZE_MAX};
    fake->loop = loop_new_fake();
    home_init(&fake->home, fake->loop);
    buf_init(&fake->sent, 256 * MIB);
    task_init(&fake->close, fake_closed, fake);
    fake->listener = (struct listener_options){.name = STR("test"),
                                               .address = STR("nowhere"),
                                               .limits = &fake->limits,
                                               .on_request = on_request,
                                               .ctx = ctx};
    fake->conn = conn_new(&(struct conn_options){.home = &fake->home,
                                                 .transport = &fake->transport,
                                                 .listener = &fake->listener,
                                                 .peer = STR("127.0.0.1:1"),
                                                 .peer_is_loopback = true,
                                                 .owner = {4, {127, 0, 0, 1}}});
}

static inline void fake_shut(struct fake *fake) {
    if (fake->conn) conn_cut(fake->conn, EXCHANGE_PEER_LEFT);
    loop_turn(fake->loop);
    home_done(&fake->home);
    loop_free(fake->loop);
    buf_done(&fake->sent);
}

/* Bytes from the peer, as many as the connection wants, and a turn. */
static inline void fake_receive(struct fake *fake, struct str bytes) {
    if (fake->conn && fake->conn->state != CONN_CUT && bytes.len)
        conn_receive(fake->conn, bytes);
    loop_turn(fake->loop);
    while (fake->conn && fake->conn->state != CONN_CUT && fake->writing && fake->window) {
        conn_writable(fake->conn);
        loop_turn(fake->loop);
    }
}

static inline void fake_peer_ends(struct fake *fake) {
    if (fake->conn && fake->conn->state != CONN_CUT) conn_peer_ended(fake->conn);
    loop_turn(fake->loop);
}

/* The peer reads `len` more bytes. */
static inline void fake_allow(struct fake *fake, size_t len) {
    fake->window = len;
    fake_receive(fake, STR_EMPTY);
}

/* Whether the connection is over, as far as the peer can see. */
static inline bool fake_is_over(const struct fake *fake) {
    return !fake->conn || fake->ended || fake->conn->state == CONN_CUT;
}

/* --- a small application ----------------------------------------------------------------- */

/* Answers 200 with the bytes of the body, as they come. */
struct echo {
    size_t begun, closed;
    enum exchange_close how; /* of the last one */
};

static inline void echo_body(struct exchange *exchange, struct lent lent, void *ctx) {
    struct str bytes = lent_read(lent);
    (void)ctx;
    exchange_send(exchange, bytes);
    exchange_consumed(exchange, bytes.len);
}

static inline void echo_body_end(struct exchange *exchange, void *ctx) {
    (void)ctx;
    exchange_end(exchange, NULL, 0);
}

static inline void echo_closed(struct exchange *exchange, enum exchange_close how, void *ctx) {
    (void)exchange;
    struct echo *echo = ctx;
    echo->closed++;
    echo->how = how;
}

static const struct exchange_events echo_events = {echo_body, echo_body_end, NULL, echo_closed};

static inline void echo_start(struct exchange *exchange, void *ctx) {
    struct echo *echo = ctx;
    echo->begun++;
    exchange_accept(exchange, &echo_events, echo);
    exchange_head(exchange, 200, NULL, 0);
}

#endif
