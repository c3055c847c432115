/* h2: connections that carry many calls at once.
 *
 * HTTP/2 with prior knowledge (h2c), or over TLS, if the server chooses it (ALPN). A loop has
 * one connection to a server, which all its calls share. When the server takes no more calls on
 * it (GOAWAY), its calls are finished, and the next call dials again. Requests of http.h that share
 * open further connections instead of waiting for room; PLACE_IDLE_MAX are kept without a call.
 *
 *     dialling ─▶ securing ─▶ open ─▶ draining ─▶ closed
 *
 * A connection that has calls and was silent for keepalive_ms is checked with a PING. If it
 * answers but stays silent, the next PING follows only after five minutes, because other
 * servers close a connection that pings more often. Without calls it is kept for PLACE_IDLE_MS.
 *
 * Private to client/.
 *
 * Memory   connections belong to the place; h2_close() ends them.
 * Threads  the loop's.
 * Source   RFC 9113 3.3; gRPC, "Client-side Keepalive" (A8). */
#ifndef WEIR_CLIENT_H2_H
#define WEIR_CLIENT_H2_H

#include "base/states.h"
#include "client/h2_session.h"
#include "client/link.h"
#include "client/place.h"

#define H2_CONNECT_MS 10000
#define H2_KEEPALIVE_MS 20000
#define H2_KEEPALIVE_ANSWER_MS 10000
#define H2_KEEPALIVE_APART_MS (5 * 60000)

enum h2_state {
    H2_DIALLING,
    H2_SECURING, /* until the handshake is complete and the certificate verified */
    H2_OPEN,
    H2_DRAINING,
    H2_CLOSED,
    H2_STATE_COUNT,
};

extern const struct state h2_states[H2_STATE_COUNT];

/* The times are those of the call that dials; 0: the usual ones. */
struct h2_server {
    struct str host;
    uint16_t port;
    bool secure;
    uint64_t connect_ms, keepalive_ms, keepalive_answer_ms;
};

/* Begin a call, on the connection to that server or on a new one. No event comes before this
 * returns. A failed dial ends the call as never seen. */
struct h2_stream *h2_start(struct place *place, const struct h2_server *server,
                           const struct h2_head *head, const struct h2_events *events,
                           void *ctx);

/* --- for requests that may go elsewhere, too ---------------------------------------------- */

struct h2;

/* A connection to that server, checked by this rule or a stricter one, on which a call is sent at
 * once; NULL: there is none. */
struct h2 *h2_find_room(struct place *place, const struct url *url, enum http_reach reach);

/* Go on with a connection whose server has chosen HTTP/2, or with one without TLS, whose server may
 * not speak HTTP/2: it gets a call after its SETTINGS. NULL: it is closed.
 * errors  ERR_UNAVAILABLE what the server has sent so far is not HTTP/2 */
MUST_CHECK struct h2 *h2_adopt(struct place *place, const struct url *url,
                               enum http_reach reach, const struct link_rest *rest,
                               struct err *e);

bool h2_is_secure(const struct h2 *h2);

/* Begin a call on this connection; as h2_start(). */
struct h2_stream *h2_start_on(struct h2 *h2, const struct h2_head *head,
                              const struct h2_events *events, void *ctx);

/* Close the connections of a loop. No call may be left on them. */
void h2_close_all(struct place *place);

#endif
