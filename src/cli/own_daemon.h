/* own_daemon: a daemon for the time of one command.
 *
 * It is this program, `weir serve`, with the command's settings, a port of its own on loopback
 * and a token that nobody else has. It ends with the command, also when that is killed. What it
 * says goes to stderr.
 *
 * Memory   the struct owns its texts; own_daemon_stop() frees them.
 * Threads  the main thread; starting blocks until the daemon is ready.
 */
#ifndef WEIR_CLI_OWN_DAEMON_H
#define WEIR_CLI_OWN_DAEMON_H

#include "base/buf.h"
#include "base/err.h"

#include <sys/types.h>

struct own_daemon {
    pid_t process; /* 0: none */
    char folder[64];
    char token[40];
};

void own_daemon_init(struct own_daemon *own);

#define OWN_MORE_MAX 4

struct own_daemon_options {
    int arg_count; /* the command's settings */
    const char *const *args;
    const char
        *more[OWN_MORE_MAX]; /* what the command prefers, if these do not say otherwise */
};

/* Start it with these settings, and append its base URL, "http://127.0.0.1:40123".
 * errors  ERR_UNAVAILABLE it did not start; it has said why on stderr */
MUST_CHECK bool own_daemon_start(struct own_daemon *own,
                                 const struct own_daemon_options *options, struct buf *url,
                                 struct err *e);

/* The token that it asks for. */
struct str own_daemon_token(const struct own_daemon *own);

/* End it, and wait until it has ended. Harmless if it was not started. */
void own_daemon_stop(struct own_daemon *own);

#endif
