/* ports: report the ports we listen on to the process that started us.
 *
 * Threads  any.
 * Source   design.md "Listeners", --ports-file.
 */
#ifndef WEIR_DAEMON_PORTS_H
#define WEIR_DAEMON_PORTS_H

#include "daemon/listening.h"

/* Write {"http":8080,"grpc":42618} to `path` atomically, so that no reader sees half of it.
 * Listeners that are off or on unix sockets are left out. With an empty path nothing is written.
 * errors  ERR_UNAVAILABLE the file cannot be written */
MUST_CHECK bool ports_write(struct str path, const struct server *server,
                            const struct listening *listenings, size_t count, struct err *e);

/* The same as ports.json in the data folder, for the commands that ask the daemon which has that
 * folder. A failure is only logged: such a command needs the address then. */
#define PORTS_NAME "ports.json"
void ports_leave(struct str folder, const struct server *server,
                 const struct listening *listenings, size_t count);

#endif
