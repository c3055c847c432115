/* daemon_process: the process that has a data folder, found without asking it.
 *
 * The daemon writes its id into weir.lock and keeps that file open (store/store_folder.h), and
 * leaves its ports beside it (daemon/ports.h). An id alone proves nothing: after a crash it may belong to
 * another process. So the process is taken hold of first (pidfd), and it is the daemon if it has
 * this very file open. What is signalled later is that process or none.
 *
 * With a store elsewhere the folder is not one daemon's, and has no such file. Then the daemon is
 * asked for its id, and the process of that id is the daemon if it holds the listening socket.
 *
 * Memory   a plain value with a descriptor; daemon_process_done().
 * Threads  any.
 * Source   pidfd_open(2), proc(5).
 */
#ifndef WEIR_CLI_DAEMON_PROCESS_H
#define WEIR_CLI_DAEMON_PROCESS_H

#include "base/err.h"

#include <sys/types.h>

struct daemon_process {
    pid_t pid;
    int pidfd;
};

/* errors  ERR_NOT_FOUND no process has the folder; ERR_PERMISSION_DENIED another user's may have
 *         it, and cannot be looked at; ERR_UNAVAILABLE the folder cannot be read */
MUST_CHECK bool daemon_process_find(struct str data_folder, struct daemon_process *ret,
                                    struct err *e);
/* The process with this id, if it listens on this TCP port of this machine.
 * errors  ERR_NOT_FOUND it does not: it has ended, or is in a container; ERR_PERMISSION_DENIED */
MUST_CHECK bool daemon_process_find_listening(int64_t pid, int port, struct daemon_process *ret,
                                              struct err *e);
void daemon_process_done(struct daemon_process *process);

/* The id that the folder's lock has, whether such a process exists here or not.
 * errors  ERR_NOT_FOUND it has none; ERR_UNAVAILABLE the folder cannot be read */
MUST_CHECK bool daemon_process_recorded(struct str data_folder, int64_t *ret, struct err *e);

/* The port that its listener `name` took. False: it has none, or is not ready. */
MUST_CHECK bool daemon_process_port(struct str data_folder, struct str name, int64_t *ret);

/* Have it stop, as Ctrl-C does.
 * errors  ERR_NOT_FOUND it has ended; ERR_PERMISSION_DENIED */
MUST_CHECK bool daemon_process_signal(const struct daemon_process *process, struct err *e);

/* Whether it has ended, after waiting for that up to `wait_ms`. */
bool daemon_process_ended(const struct daemon_process *process, int wait_ms);

#endif
