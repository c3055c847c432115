/* link: one connection to another server, for one call after the other.
 *
 *     securing ─▶ busy ⇄ idle ─▶ closed
 *
 * A link to an https: server is securing until its handshake is complete and the certificate is
 * verified; one to an http: server, until the end of the loop's turn. A busy link sends one
 * call's request and passes the response to it. After a complete response the link is idle, and
 * the next call to the same server takes it. An idle link that receives anything is closed.
 *
 * A link with on_raw carries bytes both ways and no HTTP: for a WebSocket. It is never idle.
 *
 * Private to client/.
 *
 * Memory   frees itself once libuv has released its handle.
 * Threads  the loop's. */
#ifndef WEIR_CLIENT_LINK_H
#define WEIR_CLIENT_LINK_H

#include "base/states.h"
#include "client/http.h"
#include "client/http1_response.h"
#include "client/place.h"
#include "client/url.h"
#include "tls/visit.h"

#include "base/err.h"
#include "base/text.h"

struct link;

/* What a link leaves behind when the server has chosen HTTP/2, or a connection without TLS. The receiver
 * closes `fd`, and takes the visit with visit_move(). The bytes are borrowed. */
struct link_rest {
    int fd;
    struct visit *visit; /* NULL: without TLS */
    struct str unsent;   /* of the handshake */
    struct str received; /* decrypted */
};

enum link_state { LINK_SECURING, LINK_BUSY, LINK_IDLE, LINK_CLOSED, LINK_STATE_COUNT };

extern const struct state link_states[LINK_STATE_COUNT];

/* What a link reports to its call. After on_end the link is no longer the call's. */
struct link_events {
    struct http1_events response;
    void (*on_ready)(void *ctx); /* connected and secured: send the request */
    /* why  NULL: the response has ended; else the link is closed
     * lost the link was idle before and closed without a byte: the request may be repeated */
    void (*on_end)(const struct err *why, bool lost, void *ctx);
    void (*on_bytes)(struct str bytes, void *ctx); /* before they are parsed; may be NULL */
    /* Not NULL: the bytes are no HTTP and go here. on_end comes with a `why`. */
    void (*on_raw)(struct str bytes, void *ctx);
    void (*on_sent)(void *ctx); /* all that was written is sent; may be NULL */
    /* Not NULL: HTTP/2 is offered over TLS, too, and this comes in place of on_ready if the server
     * chooses it. The link is no longer the call's. */
    void (*on_http2)(const struct link_rest *rest, void *ctx);
    /* In place of on_end, of a request over HTTP/2 (h2_request.h): it may be made over HTTP/1.1. */
    void (*on_http1)(const struct err *why, void *ctx);
};

/* Take an idle link to that server, whose address was checked by this rule or a stricter one;
 * NULL: there is none. It is busy from now on. */
struct link *link_find(struct place *place, const struct url *url, enum http_reach reach,
                       const struct link_events *events, void *ctx);

/* The same for a request that cannot be repeated: only a link that was idle for less than
 * `idle_max_ms`, and that the server has not closed as far as this machine knows. */
struct link *link_find_fresh(struct place *place, const struct url *url, enum http_reach reach,
                             uint64_t idle_max_ms, const struct link_events *events, void *ctx);

/* Whether the oldest idle link to that server has been without a call for `least_ms` and is open,
 * as far as this machine knows. */
bool link_is_kept(const struct place *place, const struct url *url, uint64_t least_ms);

/* A link over a connected socket, which is taken. `reach` is the rule its address
 * was checked by; a public-only link is not kept for other calls. on_ready is not called before
 * this returns. */
struct link *link_new(struct place *place, int fd, const struct url *url, enum http_reach reach,
                      const struct link_events *events, void *ctx);

/* Send a request: `head` is copied, `body` borrowed until the link is left or idle. */
void link_send(struct link *link, struct str head, struct str body, bool no_body);

/* With on_raw, or for a request's body that follows link_send() in pieces: send bytes, after
 * those that wait. A link that was written to is not used for another call, unless
 * link_written_whole() says that the body is complete. False: more than
 * LINK_UNSENT_MAX_BYTES would wait (for a body: LINK_BODY_UNSENT_MAX_BYTES), and nothing is
 * sent. */
#define LINK_UNSENT_MAX_BYTES (8 * MIB)
#define LINK_BODY_UNSENT_MAX_BYTES (256 * KIB)
MUST_CHECK bool link_write(struct link *link, struct str bytes);

void link_written_whole(struct link *link);

/* Bytes that were written and not sent yet, with what TLS adds. */
size_t link_unsent(const struct link *link);

/* Stop reading the response. Allowed inside the link's events and between them. */
void link_pause(struct link *link);

/* Continue reading after link_pause(). */
void link_resume(struct link *link);

/* The call does not want the rest: the connection closes. Allowed inside the link's events. */
void link_leave(struct link *link);

/* Close the idle links of a loop. */
void link_close_idle(struct place *place);

#endif
