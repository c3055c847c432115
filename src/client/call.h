/* call: one request and its response, whatever carries it.
 *
 * call.c enforces the limits of time and size, reads the head, decompresses and reports to the
 * caller. A carrier brings the request to the server and the response back: direct.c over our
 * own connections, easy.c through libcurl.
 *
 *     new ─▶ begun ─▶ headed ─▶ done ─▶ over      (over from everywhere: failed, cancelled)
 *
 * While the caller is paused, `done` waits: the received bytes are reported first.
 *
 * Private to client/.
 */
#ifndef WEIR_CLIENT_CALL_H
#define WEIR_CLIENT_CALL_H

#include "client/gunzip.h"
#include "client/head.h"
#include "client/http.h"

struct place;

/* What carries a call. `leave` is called once, when the call is over or its carrier has ended. It
 * returns false if the carrier still needs the call; http_call_left() then says when it does not.
 * The carrier calls the functions below while its call is not over. */
struct carrier {
    void (*begin)(struct http_call *call);
    void (*pause)(struct http_call *call); /* also between two callbacks */
    void (*resume)(struct http_call *call);
    bool (*leave)(struct http_call *call);
    void (*free)(struct http_call *call);
    bool (*is_connected)(const struct http_call *call);
    struct str (*url)(const struct http_call *call); /* after redirects */
};

struct http_call {
    /* used for each piece of a body, and so close to each other */
    struct place *place;
    void *ctx;
    struct http_sink sink;
    struct gunzip *gunzip; /* NULL: the body is not compressed */
    struct err *failed;    /* why one of our own callbacks stopped the response */
    uint64_t last_byte_ms;
    size_t body_bytes, body_max_bytes; /* the limit is the request's */
    unsigned inside; /* functions of this call on the stack, besides libcurl */
    bool begun, headed, carried, done, over;
    bool paused; /* by the caller */

    const struct carrier *carrier; /* NULL: the request is refused */
    union {
        struct direct *direct;
        struct easy *easy;
    };
    struct task turn;    /* starts the call, and continues it after a pause */
    struct err *refused; /* an error in the request, reported in the first turn */

    /* of the request */
    uint64_t first_byte_ms, stall_ms, total_ms;
    unsigned redirects_max;
    enum http_reach reach;
    bool secure; /* started with https: and never follows a redirect to http: */

    struct timer first_byte, stall, total;
    struct head head;
    size_t head_bytes;
};

/* As http_start(). The carrier is set with call->carrier before the first turn, or the call is
 * refused with http_call_refuse(). */
struct http_call *http_call_new(struct place *place, const struct http_request *request,
                                const struct http_sink *sink, void *ctx);
void http_call_refuse(struct http_call *call, const struct err *why);

/* --- for carriers -------------------------------------------------------------------------- */

/* One line of a head or of trailers. False: the response is not wanted any more; the call is
 * over, or call->failed says why. */
MUST_CHECK bool http_call_on_line(struct http_call *call, struct str line);

/* Bytes of the body, while the call does not wait. False: as above. */
MUST_CHECK bool http_call_on_bytes(struct http_call *call, struct str bytes);

/* Whether bytes must be held back: the caller is paused. */
bool http_call_waits(const struct http_call *call);

/* Whether the head that came last asks to be followed. */
bool http_call_is_redirect(const struct http_call *call);

/* The response has ended, or (with `why`) failed. Nothing follows; the carrier has left. */
void http_call_ended(struct http_call *call, const struct err *why);

/* The carrier does not need the call any more. */
void http_call_left(struct http_call *call);

bool http_call_has_header(const struct http_request *request, struct str name);

#define HTTP_CONNECT_MS 10000 /* when the request does not say */
#define HTTP_LINE_MAX_BYTES (64 * KIB)

/* All lines of all heads of a call, redirects and trailers included (checks.md X5). */
#define HTTP_HEAD_MAX_BYTES (256 * KIB)

#endif
