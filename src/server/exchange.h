/* exchange: one HTTP request and its response, in any HTTP version.
 *
 * The layers above (rpc/, route/) do not know whether the peer speaks HTTP/1.1 or HTTP/2. The
 * server hands over an exchange when its header section is complete. The owner accepts it with
 * a table of callbacks, reads the body as it arrives, and answers: head, bytes, end. Bytes wait
 * in the exchange until the end of the loop turn and leave in one write with all other output
 * of the connection.
 *
 *     request   on_body* on_body_end
 *     response  exchange_head  exchange_send*  exchange_end       (or exchange_abort anywhere)
 *     last      on_closed, always and exactly once; the exchange is freed after it
 *
 * Memory   the connection owns it. The results of its getters are valid until on_closed, or
 *          until exchange_forget_request().
 * Threads  belongs to the loop of its connection.
 * Source   RFC 9110 3.4 and 6 (messages), 9112 (HTTP/1.1), 9113 (HTTP/2).
 */
#ifndef WEIR_SERVER_EXCHANGE_H
#define WEIR_SERVER_EXCHANGE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/lent.h"

struct exchange;
struct loop;

struct field {
    struct str name, value; /* names in lower case */
};

/* From where the request's listener can be reached. */
enum exchange_reach { REACH_NET, REACH_LOOPBACK, REACH_LOCAL /* a unix socket */ };

enum exchange_http { EXCHANGE_HTTP_1_0, EXCHANGE_HTTP_1_1, EXCHANGE_HTTP_2 };

enum exchange_close {
    EXCHANGE_COMPLETE,  /* both directions ended as they should */
    EXCHANGE_PEER_LEFT, /* reset, or the connection broke, before the response ended */
    EXCHANGE_ABORTED, /* exchange_abort(), or the server cut it: a stalled peer, a bad frame */
};

/* Why an exchange is cut; on HTTP/2 a RST_STREAM with this code, on HTTP/1 the connection
 * closes at once. */
enum exchange_abort {
    ABORT_NO_ERROR,       /* the response is complete; the rest of the request is not needed */
    ABORT_CANCEL,         /* given up */
    ABORT_INTERNAL,       /* our fault */
    ABORT_PROTOCOL,       /* the peer's fault */
    ABORT_REFUSED_STREAM, /* nothing was done; the peer may try again */
    ABORT_ENHANCE_CALM,   /* the peer sends too much */
};

/* All callbacks run on the connection's loop; on_drained, on_closed never from inside a call
 * to this header, on_body and on_body_end never before exchange_accept() has returned. */
struct exchange_events {
    /* Part of the body. The peer gets no further credit for these bytes until
     * exchange_consumed(): flow control on HTTP/2, paused reading on HTTP/1. */
    void (*on_body)(struct exchange *exchange, struct lent bytes, void *ctx);
    void (*on_body_end)(struct exchange *exchange, void *ctx);
    /* The waiting bytes have fallen to `low` (see exchange_wake_at). May be NULL. */
    void (*on_drained)(struct exchange *exchange, void *ctx);
    /* The last call of all. */
    void (*on_closed)(struct exchange *exchange, enum exchange_close how, void *ctx);
};

/* Called when a request's header section is complete. Must accept before it returns. */
typedef void exchange_start_fn(struct exchange *exchange, void *listener_ctx);

void exchange_accept(struct exchange *exchange, const struct exchange_events *events,
                     void *ctx);

/* --- the request ------------------------------------------------------------------------- */

struct str exchange_method(const struct exchange *exchange); /* "POST" */
struct str exchange_path(const struct exchange *exchange);   /* "/invoke": no query, as sent */
struct str exchange_query(const struct exchange *exchange);  /* after '?'; at == NULL: no '?' */
struct str exchange_authority(const struct exchange *exchange); /* Host or :authority */
enum exchange_http exchange_http(const struct exchange *exchange);

/* The first field with this lower-case name, or NULL. */
const struct field *exchange_field(const struct exchange *exchange, struct str name);
/* All fields in order of arrival, pseudo-fields left out. */
const struct field *exchange_fields(const struct exchange *exchange, size_t *ret_count);

/* content-length as sent, or -1. */
int64_t exchange_content_length(const struct exchange *exchange);

/* "127.0.0.1:51234", "[::1]:51234", "unix". Valid as long as the exchange. */
struct str exchange_peer(const struct exchange *exchange);

/* Bytes that name the host at the other end, whatever its port: see struct address_owner. Empty
 * for unix sockets. Valid as long as the exchange. */
struct str exchange_peer_owner(const struct exchange *exchange);
bool exchange_peer_is_loopback(const struct exchange *exchange); /* unix sockets are, too */
enum exchange_reach exchange_reach(const struct exchange *exchange);

struct loop *exchange_loop(const struct exchange *exchange);

/* Free the request's header section, so that a long stream does not hold it. */
void exchange_forget_request(struct exchange *exchange);

/* `len` bytes passed to on_body have been processed. Not from inside on_closed: by then the
 * server has accounted for the rest. */
void exchange_consumed(struct exchange *exchange, size_t len);

/* The request's service was authenticated: lifts the connection's stream limit for
 * strangers (checks.md, limits). */
void exchange_authenticated(struct exchange *exchange);

/* --- the response ------------------------------------------------------------------------ */

/* Status and fields, once. The server sends interim responses itself. On HTTP/1.1 a response
 * without content-length gets one when it ends in the same turn, else it is chunked
 * (close-delimited towards HTTP/1.0). `fields` are copied; control bytes in a value leave as
 * spaces. At most 64 fields and 64 KiB. */
void exchange_head(struct exchange *exchange, int status, const struct field *fields,
                   size_t count);
bool exchange_head_sent(const struct exchange *exchange);

/* Switch the connection to another protocol (RFC 9110 7.8): 101 with `fields`, to which
 * `connection: upgrade` is added. Only on HTTP/1.1, after the request has ended, instead of
 * exchange_head(). From then on all bytes of the peer go to on_body, which on_body_end does not
 * follow, and what is sent leaves as it is. exchange_end() closes the connection, and so does
 * the peer: on_closed with EXCHANGE_PEER_LEFT. Timeouts of reading are the owner's. */
void exchange_upgrade(struct exchange *exchange, const struct field *fields, size_t count);

/* Queue response bytes (copied). A peer that has not read for a second while its connection
 * is past connection_max_bytes loses the exchange. exchange_out() lends the queue itself, so
 * that an encoder can append in place; call exchange_touch() after appending. HTTP/1.1 chunk
 * framing is added when the bytes leave. */
void exchange_send(struct exchange *exchange, struct str bytes);
struct buf *exchange_out(struct exchange *exchange);
void exchange_touch(struct exchange *exchange);

/* The same for bytes that nothing will join in this turn, such as an event that thousands of
 * connections are sent: they leave before it returns if nothing waits in front of them. What
 * could not leave is queued. */
void exchange_send_now(struct exchange *exchange, struct str bytes);
void exchange_touch_now(struct exchange *exchange); /* in place of exchange_touch() */

/* Bytes queued here and not yet accepted by the connection's own write buffer. */
size_t exchange_queued(const struct exchange *exchange);

/* The same for an owner that can wait: as much as a queue can hold, while the connection takes
 * nothing and has little room left. Streams that stop there lose nothing, however many share a
 * connection whose peer pauses. */
size_t exchange_pressure(const struct exchange *exchange);

/* Call on_drained once, when exchange_queued() has fallen to `low` or below and the connection has
 * room. Those that wait for its room get it in the order in which they began to wait. */
void exchange_wake_at(struct exchange *exchange, size_t low);

/* No more bytes. Trailers go out on HTTP/2 and, when the client said `TE: trailers`, with a
 * chunked HTTP/1.1 response. If the request body has not ended by then the rest of it is
 * refused: NO_ERROR reset on HTTP/2, connection close on HTTP/1.
 * When no byte and no head has been sent, head + trailers become one header section
 * ("trailers-only"): call exchange_head with the fields and exchange_end(…, NULL, 0). */
void exchange_end(struct exchange *exchange, const struct field *trailers, size_t count);

/* Cut it now; queued unsent bytes are dropped. */
void exchange_abort(struct exchange *exchange, enum exchange_abort why);

/* How long the peer has not been reading: milliseconds since bytes of this exchange last left,
 * or 0 when none are waiting. */
uint64_t exchange_stalled_ms(const struct exchange *exchange);

#endif
