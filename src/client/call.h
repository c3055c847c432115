/* call: one request and its response, on a lane.
 *
 * options.c creates libcurl's handle for a request. call.c handles libcurl's callbacks,
 * enforces the limits and reports to the caller.
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
#include "client/lane.h"

struct http_call {
    struct loop *loop;
    struct lane *lane; /* NULL: the library is not installed */
    size_t *open;      /* the loop's counter of open calls */
    struct http_sink sink;
    void *ctx;
    struct task turn;   /* starts the call, and continues it after a pause */
    struct err refused; /* an error in the request, reported in the first turn */

    /* of the request */
    uint64_t first_byte_ms, stall_ms, total_ms;
    size_t body_max_bytes;
    bool follows, public_only;
    bool secure; /* started with https: and never follows a redirect to http: */

    struct str body; /* borrowed from the caller until `over` */
    size_t body_sent;
    struct transfer transfer; /* easy: NULL without a library */
    struct curl_slist *headers;
    char detail[CURL_ERROR_SIZE]; /* libcurl's sentence */
    struct timer first_byte, stall, total;

    struct head head;
    struct gunzip *gunzip; /* NULL: the body is not compressed */
    size_t head_bytes, body_bytes;
    uint64_t last_byte_ms;
    unsigned sockets, sockets_refused; /* of this request, or of this redirect */
    struct err failed;                 /* why one of our libcurl callbacks aborted it */
    CURLcode result;                   /* once done */

    unsigned inside; /* functions of this call on the stack, besides libcurl */
    bool begun, headed, on_lane, done, over;
    bool paused, held; /* by the caller; by libcurl, until it is unpaused */
};

/* As http_start(); `lane` may be NULL, with `why`. */
struct http_call *http_call_new(struct lane *lane, struct loop *loop, size_t *open,
                                const struct http_request *request,
                                const struct http_sink *sink, void *ctx, const struct err *why);

/* options.c: call->transfer.easy and headers, from the request.
 * errors  ERR_INVALID_ARGUMENT a line break, or an empty value that must not be empty */
MUST_CHECK bool http_call_set_options(struct http_call *call,
                                      const struct http_request *request, struct err *e);

/* options.c: allow only https: from now on. May be called from libcurl's callbacks. */
void http_call_stay_secure(struct http_call *call);

/* Callbacks for libcurl. */
size_t http_call_on_header(char *line, size_t size, size_t count, void *ctx);
size_t http_call_on_body(char *bytes, size_t size, size_t count, void *ctx);

#endif
