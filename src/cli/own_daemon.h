/* own_daemon: a daemon for the time of one command.
 *
 * It is this program, `weir serve`, with the command's settings, a port of its own on loopback
 * without TLS, and a token that it leaves in the data folder. Commands that come later use it, too
 * (cli/shared_daemon.h), and it ends with the last of them, also when they are killed. Where it
 * cannot be shared it ends with the command. What it says goes to stderr while the command lasts.
 *
 * Memory   own_daemon_stop() frees what the struct has.
 * Threads  the main thread; starting blocks until the daemon is ready.
 */
#ifndef WEIR_CLI_OWN_DAEMON_H
#define WEIR_CLI_OWN_DAEMON_H

#include "cli/ask_daemon.h"

#include <sys/types.h>

struct own_daemon {
    pid_t process;   /* 0: none */
    int lock;        /* of the commands that share it; -1: it is not shared */
    char folder[64]; /* of a ports file, while it starts; "": none */
    char token[40];
};

void own_daemon_init(struct own_daemon *own);

/* What its environment says: it has no TLS, and if it is shared it leaves its token. */
#define OWN_DAEMON_VARIABLE "WEIR_OWN_DAEMON"
#define OWN_DAEMON_SHARED "shared"
#define OWN_DAEMON_UNSHARED "unshared"

#define OWN_MORE_MAX 4

struct own_daemon_options {
    const struct config *config;
    int arg_count; /* the command's settings */
    const char *const *args;
    /* What the command prefers, if these do not say otherwise. */
    const char *more[OWN_MORE_MAX];
    bool alone; /* use no daemon that another command has started */
};

/* Start one with these settings and put its address and token into `target`; or join one that
 * another command has started in this moment.
 * errors  ERR_UNAVAILABLE it did not start; it has said why on stderr */
MUST_CHECK bool own_daemon_start(struct own_daemon *own,
                                 const struct own_daemon_options *options,
                                 struct daemon_target *target, struct err *e);

/* End it, and wait until it has ended; or leave it to the others that use it. Harmless if it was
 * not started. */
void own_daemon_stop(struct own_daemon *own);

#endif
