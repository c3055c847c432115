/* sandbox: run an untrusted command.
 *
 * bubblewrap gives it a user, pid, network, IPC and UTS namespace of its own, in which it sees
 *
 *     /usr, /bin, /lib, /etc/ssl ...   of this machine, to read
 *     /workspace                       a folder of ours, to write
 *     /tmp, /dev/shm                   memory of its own, gone afterwards
 *
 * and nothing else: no home, no environment, no process, no socket of this machine. A seccomp
 * filter refuses system calls that only an escape needs (sandbox_filter.c), limits are set per
 * process, and when the command ends or is ended, so does everything it started.
 *
 *     setpriv (where we are root: as SANDBOX_ID) ─▶ bwrap ─▶ prlimit ─▶ sh -c COMMAND
 *
 * Memory   options are copied.
 * Threads  read-only once made; making and probing block.
 * Source   bwrap(1), prlimit(1), setpriv(1), user_namespaces(7), seccomp(2).
 */
#ifndef WEIR_TOOL_SANDBOX_H
#define WEIR_TOOL_SANDBOX_H

#include "base/buf.h"
#include "base/err.h"

/* The command's user if this process is root: the kernel does not count processes of root. */
#define SANDBOX_ID 65534

struct sandbox_limits {
    uint64_t memory_bytes;  /* address space of one process */
    uint64_t cpu_s;         /* of one process */
    uint64_t processes;     /* and threads, at once */
    uint64_t file_bytes;    /* the largest file that it writes */
    uint64_t scratch_bytes; /* /tmp and /dev/shm, each */
    bool network;           /* this machine's, with its services; else none */
};

struct sandbox;

/* errors  ERR_UNIMPLEMENTED this machine lacks a program, the library or the right to make
 *         namespaces; the text says which and what to do */
MUST_CHECK bool sandbox_new(const struct sandbox_limits *limits, struct sandbox **ret,
                            struct err *e);
void sandbox_free(struct sandbox *sandbox); /* NULL is fine */

/* Make the commands' user the owner of `folder`, so that a command may write there.
 * errors  ERR_PERMISSION_DENIED */
MUST_CHECK bool sandbox_own(const char *folder, struct err *e);

/* Run `true` in it, at most 5 seconds.
 * errors  ERR_UNIMPLEMENTED it does not work here */
MUST_CHECK bool sandbox_probe(const struct sandbox *sandbox, const char *folder, struct err *e);

struct sandbox_command {
    const char *folder, *text;
    uint64_t file_bytes; /* the largest file that it writes, at most that of the limits */
};

/* The program, with its arguments, that runs the command. free() the list; it borrows the
 * command's texts. The program reads sandbox_input() on its standard input. */
#define SANDBOX_PROGRAM "/bin/sh"
const char **sandbox_args(const struct sandbox *sandbox, const struct sandbox_command *command);
struct str sandbox_input(const struct sandbox *sandbox);

/* The filter as bwrap reads it (sandbox_filter.c).
 * errors  ERR_UNIMPLEMENTED the library is not there, or not what it should be */
MUST_CHECK bool sandbox_filter(struct buf *out, struct err *e);

#endif
