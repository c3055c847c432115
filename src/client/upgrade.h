/* upgrade: the opening handshake of a WebSocket, seen from the client.
 *
 *     GET /v1/realtime HTTP/1.1         HTTP/1.1 101 Switching Protocols
 *     Upgrade: websocket          ─▶    Upgrade: websocket
 *     Connection: Upgrade               Connection: Upgrade
 *     Sec-WebSocket-Key: ...            Sec-WebSocket-Accept: ...
 *
 * No extension and no subprotocol is offered, so an answer that names one is refused.
 *
 * Private to client/.
 *
 * Memory   none.
 * Threads  none.
 * Source   RFC 6455 4.1 and 4.2.2; RFC 9112 2 to 5.
 */
#ifndef WEIR_CLIENT_UPGRADE_H
#define WEIR_CLIENT_UPGRADE_H

#include "base/err.h"
#include "client/http.h"
#include "client/url.h"

/* Append the request. Headers of the caller that the handshake makes itself are left out.
 * errors  ERR_INVALID_ARGUMENT a header that no line can carry; ERR_TOO_LARGE */
MUST_CHECK bool upgrade_append(const struct url *url, const struct http_header *headers,
                               size_t header_count, struct str key, struct buf *out,
                               struct err *e);

/* The status of a head, 100 to 599; 0: these bytes begin no HTTP/1.1 response. */
unsigned upgrade_status(struct str head);

/* Check a head with the status 101, from its first line to the empty line.
 * errors  ERR_UNAVAILABLE it does not open the WebSocket that was asked for, and why */
MUST_CHECK bool upgrade_check(struct str head, struct str key, struct err *e);

#endif
