/* call: one request and its response, on a lane.
 *
 * options.c makes libcurl's handle of a request; call.c hears what libcurl says, keeps the
 * limits and tells the caller.
 *
 *     new ─▶ begun ─▶ headed ─▶ done ─▶ over      (over from everywhere: failed, cancelled)
 *
 * `done` waits where the caller is paused: what has come is told first.
 *
 * Private to client/.
 */
#ifndef WEIR_CLIENT_CALL_H
#define WEIR_CLIENT_CALL_H

#include "client/gunzip.h"
#include "client/head.h"
#include "client/http.h"
#include "client/lane.h"

struct http_call {
    struct loop *loop;
    struct lane *lane; /* NULL: the library is not there */
    size_t *open;      /* how many calls the loop has */
    struct http_sink sink;
    void *ctx;
    struct task turn;   /* begins it, and goes on after a pause */
    struct err refused; /* what is wrong with the request, told in the first turn */

    /* of the request */
    uint64_t first_byte_ms, stall_ms, total_ms;
    size_t body_max_bytes;
    bool follows, public_only;
    bool secure; /* https: was asked: it never follows to http: again */

    struct str body; /* the caller's, until `over` */
    size_t body_sent;
    struct transfer transfer; /* easy: NULL without a library */
    struct curl_slist *headers;
    char detail[CURL_ERROR_SIZE]; /* libcurl's sentence */
    struct timer first_byte, stall, total;

    struct head head;
    struct gunzip *gunzip; /* NULL: the body is not compressed */
    size_t head_bytes, body_bytes;
    uint64_t last_byte_ms;
    unsigned sockets, sockets_refused; /* of this request, or this redirect */
    struct err failed;                 /* why a callback of libcurl's broke it off */
    CURLcode result;                   /* once done */

    unsigned inside; /* functions of this call on the stack, besides libcurl */
    bool begun, headed, on_lane, done, over;
    bool paused, held; /* by the caller; by libcurl, until it is told */
};

/* As http_start(); `lane` may be NULL, with `why`. */
struct http_call *http_call_new(struct lane *lane, struct loop *loop, size_t *open,
                                const struct http_request *request,
                                const struct http_sink *sink, void *ctx, const struct err *why);

/* options.c: call->transfer.easy and headers, from the request.
 * errors  ERR_INVALID_ARGUMENT a line break or nothing where there must be something */
MUST_CHECK bool http_call_set_options(struct http_call *call,
                                      const struct http_request *request, struct err *e);

/* options.c: from now on only to https:. It may be called from libcurl's callbacks. */
void http_call_stay_secure(struct http_call *call);

/* What libcurl calls. */
size_t http_call_on_header(char *line, size_t size, size_t count, void *ctx);
size_t http_call_on_body(char *bytes, size_t size, size_t count, void *ctx);

#endif
