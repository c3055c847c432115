/* h2_request: one request of http.h as a stream of an HTTP/2 connection.
 *
 * It stands in for a link (link.h): the request comes as the text of HTTP/1.1, and the response is
 * reported by the same events, its head as lines. So the caller need not know which of the two
 * carries its call. Trailers and heads of 1xx responses are not reported.
 *
 *     asking ─▶ reporting the head ─▶ body ─▶ on_end
 *
 * `lost` of on_end: the request may be repeated. The server has provably not seen it, or the
 * connection was without a call before and was lost without a byte since, as with a link.
 *
 * Private to client/.
 *
 * Memory   frees itself after on_end, or by h2_request_leave().
 * Threads  the loop's.
 * Source   RFC 9113 8.2, 8.3.
 */
#ifndef WEIR_CLIENT_H2_REQUEST_H
#define WEIR_CLIENT_H2_REQUEST_H

#include "client/h2.h"
#include "client/link.h"

struct h2_request;

/* Send a request. `head` is copied; it is well-formed. `body` is borrowed until the end. No event
 * comes before this returns. Of the events only `response`, on_end and on_http1 are used. */
struct h2_request *h2_request_new(struct h2 *h2, struct str head, struct str body,
                                  const struct link_events *events, void *ctx);

/* As link_pause(), link_resume() and link_leave(). */
void h2_request_pause(struct h2_request *request);
void h2_request_resume(struct h2_request *request);
void h2_request_leave(struct h2_request *request);

#endif
