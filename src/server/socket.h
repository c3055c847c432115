/* socket: the transports on a real loop: a connected stream socket, plain or with TLS.
 *
 * Private to server/.
 *
 * Memory   owns the descriptor; frees itself when the loop has let go of it.
 */
#ifndef WEIR_SERVER_SOCKET_H
#define WEIR_SERVER_SOCKET_H

#include "server/conn.h"

struct tls;

/* Takes `fd`, which is nonblocking, and begins a connection on it; with `tls` (or NULL) it
 * begins with a handshake. The options lack the transport. */
struct conn *socket_serve(int fd, struct tls *tls, const struct conn_options *options);

#endif
