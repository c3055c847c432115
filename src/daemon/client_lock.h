/* client_lock: which commands use a daemon that was started for them.
 *
 * `weir chat` and `weir mcp` start a daemon where none has the data folder, and every other command
 * may use it. It must last as long as any of them, however each one ends. So they lock two bytes of
 * one file in that folder:
 *
 *     byte 0   shared by every command while it uses the daemon. The daemon tries to have it alone,
 *              gets it when no command is left, and keeps it until it has ended
 *     byte 1   of one command, while it looks for the daemon and starts one
 *
 * These are locks of open files: the kernel drops them with the last descriptor.
 *
 * Memory   a descriptor; the caller closes it.
 * Threads  any.
 * Source   fcntl(2), "Open file description locks".
 */
#ifndef WEIR_DAEMON_CLIENT_LOCK_H
#define WEIR_DAEMON_CLIENT_LOCK_H

#include "base/err.h"

#define CLIENT_LOCK_NAME "clients.lock"

/* The file in this folder, which is made if `makes`. -1: it cannot be opened. */
int client_lock_open(struct str folder, bool makes);

/* Share byte 0. False: the daemon is ending. */
MUST_CHECK bool client_lock_try(int file);

/* Share byte 0, as soon as a daemon that is ending has ended. False: a signal came, or the file
 * system has no locks. */
MUST_CHECK bool client_lock_wait(int file);

/* Have byte 0 alone. False: another one shares it, and so does this one still. */
MUST_CHECK bool client_lock_alone(int file);

/* Have byte 1, as soon as no other command has it. False: as client_lock_wait(). */
MUST_CHECK bool client_lock_begin(int file);
void client_lock_begun(int file);

#endif
