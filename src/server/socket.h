/* socket: the transport for a real loop: a connected stream socket, plain or with TLS.
 *
 * Private to server/.
 *
 * Memory   owns the descriptor; frees itself once the loop has released it.
 */
#ifndef WEIR_SERVER_SOCKET_H
#define WEIR_SERVER_SOCKET_H

#include "server/conn.h"

struct tls;

/* Start a connection on `fd`, which must be nonblocking. Takes `fd`. With `tls` (may be NULL)
 * it starts with a handshake. The transport in the options is filled in. */
struct conn *socket_serve(int fd, struct tls *tls, const struct conn_options *options);

#endif
