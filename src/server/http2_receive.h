/* http2_receive: bytes of the peer become requests.
 *
 * nghttp2 reads the frames and calls back here. Abuse that it would accept is counted, and ends
 * the session.
 */
#ifndef WEIR_SERVER_HTTP2_RECEIVE_H
#define WEIR_SERVER_HTTP2_RECEIVE_H

#include "server/http2.h"

/* As in struct protocol. */
void http2_receive(struct conn *conn, struct str bytes);

/* Set nghttp2's callbacks for what it receives. */
void http2_receive_callbacks(nghttp2_session_callbacks *callbacks);

#endif
