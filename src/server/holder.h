/* holder: who listens on a port, for an error that people can act on.
 *
 * The kernel lists sockets with their inodes and processes with their descriptors; where both
 * can be read, the process has a name. Best effort: other users' processes stay in the dark.
 *
 * Threads  any; reads much of /proc, so only where something has gone wrong.
 */
#ifndef WEIR_SERVER_HOLDER_H
#define WEIR_SERVER_HOLDER_H

#include "server/address.h"

/* "pid 4121 (node)" into `ret`, ending in NUL and cut at `size`; false: nobody knows. A unix
 * socket is looked up by its path. */
MUST_CHECK bool holder_find(const struct address *address, char *ret, size_t size);

#endif
