/* clients: the commands that this daemon was started for.
 *
 * They find it by a token that it leaves in the data folder, and it ends when none of them is left
 * (daemon/client_lock.h). The one that started it may go before the others. Then the daemon lets go
 * of its stdout and stderr, which the starter's own caller may be waiting to see closed.
 *
 * Memory   clients_free().
 * Threads  the daemon's own loop.
 */
#ifndef WEIR_DAEMON_CLIENTS_H
#define WEIR_DAEMON_CLIENTS_H

#include "base/err.h"
#include "loop/loop.h"

#include <sys/types.h>

/* In the data folder, readable by its owner alone: the token that this daemon asks for. It is
 * written when everything else is ready, the ports among it (daemon/ports.h). */
#define CLIENT_TOKEN_NAME "clients.token"

struct clients;

struct clients_options {
    struct loop *loop;
    struct str folder, token;
    pid_t starter;    /* the parent at the daemon's start */
    task_fn *on_none; /* no command is left; once */
    void *ctx;
};

/* errors  ERR_UNAVAILABLE a file in the folder cannot be opened or written */
MUST_CHECK bool clients_start(const struct clients_options *options, struct clients **ret,
                              struct err *e);

/* No command will find it any more. NULL is fine, and so is twice. */
void clients_stop(struct clients *clients);

/* The daemon has ended: a command that waits for that may start the next one. NULL is fine. */
void clients_free(struct clients *clients);

/* Remove the token of a daemon that was killed. */
void clients_forget(struct str folder);

#endif
