/* shared_daemon: use the daemon that another command has started for itself.
 *
 * Such a daemon has the data folder, a port that cannot be guessed, and a token in that folder
 * (daemon/clients.h). It lasts until the last command that has joined it leaves, no matter
 * which one started it. With a store in PostgreSQL each command has a daemon of its own, and
 * none is shared.
 *
 * Memory   a plain value with two descriptors; shared_daemon_leave().
 * Threads  the main thread.
 */
#ifndef WEIR_CLI_SHARED_DAEMON_H
#define WEIR_CLI_SHARED_DAEMON_H

#include "cli/daemon_process.h"
#include "config/config.h"

struct shared_daemon {
    int lock; /* -1: none is used */
    struct daemon_process process;
};

void shared_daemon_init(struct shared_daemon *shared);

/* Append its base URL and its token. False: there is none, it is not ready, or it is ending. */
MUST_CHECK bool shared_daemon_join(struct shared_daemon *shared, const struct config *config,
                                   struct buf *url, struct buf *token);

/* The last one to leave ends the daemon, and waits until it has ended. Harmless without one. */
void shared_daemon_leave(struct shared_daemon *shared);

/* Append what the daemon that has this folder left for commands. False: it did not. */
MUST_CHECK bool shared_daemon_read(struct str folder, struct buf *url, struct buf *token);

/* Whether daemons of these settings can be shared. */
bool shared_daemon_may_be(const struct config *config);

#endif
