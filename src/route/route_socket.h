/* route_socket: a WebSocket connection of a route.
 *
 * A handler accepts the upgrade; from then on whole messages come in and go out. Pings are
 * answered here, and so is the peer's close. The order of an ending is always: close frame,
 * end of the connection, `closed`.
 *
 *     route_fn ─▶ route_socket_accept() ─▶ message* ─▶ closed
 *
 * Memory   the socket belongs to its call and is freed after `closed`. The queue of unsent
 *          bytes is bounded: a peer that lags by more is cut off.
 * Threads  one loop.
 * Source   RFC 6455 4.2 (opening), 5.5 (control frames), 7 (closing).
 */
#ifndef WEIR_ROUTE_ROUTE_SOCKET_H
#define WEIR_ROUTE_ROUTE_SOCKET_H

#include "route/route.h"
#include "wire/websocket.h"

struct route_socket;

#define ROUTE_SOCKET_LOST 1006 /* the connection broke without a close (RFC 6455 7.4.1) */

/* None of these runs from inside a function of this header. */
struct route_socket_events {
    void (*message)(struct route_socket *socket, enum websocket_kind kind, struct str data,
                    void *ctx);  /* text or binary; borrowed */
    void (*stopping)(void *ctx); /* the daemon begins to stop; NULL: close with 1001 */
    /* Last callback, exactly once: the code of the peer's close, of ours when we closed first,
     * or ROUTE_SOCKET_LOST. */
    void (*closed)(unsigned code, void *ctx);
};

struct route_socket_options {
    size_t message_max_bytes; /* of the peer's messages, joined */
    /* Unsent; a peer beyond it is cut off. An eighth while memory is scarce (base/mem.h). A
     * message of any size fits an empty queue. */
    size_t queue_max_bytes;
};

/* Accept the upgrade that the request asks for, with the fields added to the call. NULL: it asks
 * for none, or wrongly, and the call has been answered: 426, 400, or 503 without memory.
 * websocket_load() must have succeeded. */
struct route_socket *route_socket_accept(struct route_call *call,
                                         const struct route_socket_options *options,
                                         const struct route_socket_events *events, void *ctx);

/* Send one message. Dropped once the socket is closing. */
void route_socket_send(struct route_socket *socket, enum websocket_kind kind, struct str data);

/* Send a frame that websocket_append() wrote for WEBSOCKET_SERVER. */
void route_socket_send_frame(struct route_socket *socket, struct str frame);

/* Send a close and end the connection. What is queued before it still leaves. */
void route_socket_close(struct route_socket *socket, unsigned code, struct str reason);

/* Bytes that wait for the peer. */
size_t route_socket_queued(const struct route_socket *socket);

/* Whether it was cut because its queue was full. */
bool route_socket_lagged(const struct route_socket *socket);

#endif
