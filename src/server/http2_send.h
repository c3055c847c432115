/* http2_send: answers become frames.
 *
 * The owners' output is turned into frames once per turn, in http2_settle(). Bytes are taken
 * from nghttp2 only while the socket accepts them. A DATA frame is copied once, from the
 * exchange's queue into the turn's write.
 */
#ifndef WEIR_SERVER_HTTP2_SEND_H
#define WEIR_SERVER_HTTP2_SEND_H

#include "server/http2.h"

/* nghttp2 treats a stream above SETTINGS_MAX_CONCURRENT_STREAMS as a broken connection once
 * the peer has acknowledged the limit. We would rather refuse that one stream, so nghttp2
 * gets this number and the peer, when the frame is sent, the real one. */
#define STREAMS_NGHTTP2_ALLOWS 0x7fffffffu

/* As in struct protocol. */
void http2_settle(struct conn *conn);
void http2_gather(struct conn *conn, struct gather *gather);

/* Set nghttp2's callbacks for what it sends. */
void http2_send_callbacks(nghttp2_session_callbacks *callbacks);

#endif
