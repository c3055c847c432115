/* socket: the plain transport, a connected stream socket on a real loop.
 *
 * Private to server/.
 *
 * Memory   owns the descriptor; frees itself when the loop has let go of it.
 */
#ifndef WEIR_SERVER_SOCKET_H
#define WEIR_SERVER_SOCKET_H

#include "server/conn.h"

/* Takes `fd`, which is nonblocking, and begins a connection on it. */
struct conn *socket_serve(int fd, struct conn_options options);

#endif
