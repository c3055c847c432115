/* holder: find the process that listens on a port, to make an error actionable.
 *
 * The kernel lists sockets by inode, and the descriptors of each process; together they name
 * the process. Best effort: processes of other users are usually not visible.
 *
 * Threads  any; it reads much of /proc, so call it only after an error.
 */
#ifndef WEIR_SERVER_HOLDER_H
#define WEIR_SERVER_HOLDER_H

#include "server/address.h"

/* Write "pid 4121 (node)" into `ret`, ending in NUL and cut at `size`. False: not known. A unix
 * socket is looked up by its path. */
MUST_CHECK bool holder_find(const struct address *address, char *ret, size_t size);

#endif
