/* child: somebody else's program, run beside a loop.
 *
 * It is started without a shell, reads its input from a file in memory, and what it writes is
 * told as it comes. Its end is told when it has ended and all that it wrote was told, and by
 * then the system remembers nothing of it.
 *
 *     start ─▶ on_output, on_output, ... ─▶ on_end        (killed: nothing is told any more)
 *
 * A child has a process group of its own, which goes when the child itself ends: whom it
 * started does not outlive it. It gets no descriptor of ours but those three, no signal that is
 * blocked or ignored here, and of the environment what it is given. When this process dies its
 * output has no reader any more.
 *
 * Memory   a child belongs to its loop. Its owner may use it until on_end or child_kill();
 *          afterwards it frees itself, at the latest in loop_free().
 * Threads  the loop's own.
 * Source   posix_spawn(3), pidfd_open(2), memfd_create(2).
 */
#ifndef WEIR_LOOP_CHILD_H
#define WEIR_LOOP_CHILD_H

#include "base/buf.h"
#include "base/err.h"
#include "loop/loop.h"

/* Of what it writes to its standard error, so much is kept. */
#define CHILD_COMPLAINT_BYTES 4096

struct child;

struct child_options {
    const char *path;               /* of the program; no search */
    const char *const *args;        /* the first is its name; ends with NULL */
    const char *const *environment; /* "NAME=value"; ends with NULL */
    struct str input;               /* copied */
};

struct child_end {
    int exit_code;        /* as the program said; -1: a signal ended it */
    int signal;           /* 0: none */
    struct str complaint; /* what it wrote to its standard error, borrowed during on_end */
};

/* On the loop, never before child_start() has returned; none after on_end or child_kill(),
 * which on_output may call. */
struct child_sink {
    void (*on_output)(struct str bytes, void *ctx); /* never empty */
    void (*on_end)(const struct child_end *end, void *ctx);
};

/* Not on a fake loop.
 * errors  ERR_NOT_FOUND there is no such program, or it may not be run; ERR_RESOURCE_EXHAUSTED
 *         too many processes or open files, or too little memory */
MUST_CHECK bool child_start(struct loop *loop, const struct child_options *options,
                            const struct child_sink *sink, void *ctx, struct child **ret,
                            struct err *e);

/* At once and with all it started. */
void child_kill(struct child *child);

/* Where `program` stands: itself when it holds a '/', else in the first folder of `path`, as in
 * $PATH. Appends it, ended by NUL, or says false. */
MUST_CHECK bool child_find(struct str program, struct str path, struct buf *ret);

#endif
