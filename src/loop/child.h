/* child: run another program beside a loop.
 *
 * The program is started without a shell and reads its input from a file in memory. Its output
 * is reported as it arrives. Its end is reported once it has exited and all its output has been
 * reported; by then it has been reaped.
 *
 *     start ─▶ on_output, on_output, ... ─▶ on_end        (killed: no more callbacks)
 *
 * A child has its own process group, which is killed when the child ends, so processes it
 * started do not outlive it. It inherits only its three standard descriptors, no blocked or
 * ignored signals, and only the environment it is given. When this process dies, nothing reads
 * the child's output any more.
 *
 * A child that talks reads what child_write() sends. If it talks or reports, its standard error
 * is reported as it arrives. A guarded child is started by a guard, which also ends it and all
 * its descendants when this process dies, for whatever reason.
 *
 * Memory   a child belongs to its loop. Its owner may use it until on_end or child_kill().
 *          After that it frees itself, at the latest in loop_free().
 * Threads  the loop's own.
 * Source   posix_spawn(3), pidfd_open(2), memfd_create(2). */
#ifndef WEIR_LOOP_CHILD_H
#define WEIR_LOOP_CHILD_H

#include "base/buf.h"
#include "base/err.h"
#include "loop/loop.h"

/* How much of its standard error is kept. */
#define CHILD_COMPLAINT_BYTES 4096

/* Bytes that may wait for a child that talks. A single write may be longer, when nothing waits. */
#define CHILD_UNSENT_MAX_BYTES ((size_t)8 * 1024 * 1024)

/* This program itself as the guard: see loop/guard.h. */
#define CHILD_GUARD_SELF "/proc/self/exe"

struct child;

struct child_options {
    const char *path;               /* of the program; $PATH is not searched */
    const char *const *args;        /* the first is its name; ends with NULL */
    const char *const *environment; /* "NAME=value"; ends with NULL */
    struct str input;               /* copied; not of a child that talks */
    bool talks;                     /* its input and its standard error are pipes */
    bool reports;                   /* its standard error is a pipe */
    const char *guard;              /* CHILD_GUARD_SELF; NULL: no guard */
};

struct child_end {
    int exit_code;        /* -1: a signal ended it; of a guarded child 128 + the signal */
    int signal;           /* 0: none */
    struct str complaint; /* its standard error, borrowed during on_end */
};

/* Called on the loop, never before child_start() has returned, and not after on_end or
 * child_kill(). on_output may call child_kill(). */
struct child_sink {
    void (*on_output)(struct str bytes, void *ctx); /* never empty */
    void (*on_end)(const struct child_end *end, void *ctx);
    void (*on_complaint)(struct str bytes, void *ctx); /* only if it reports; may be NULL */
};

/* Not on a fake loop.
 * errors  ERR_NOT_FOUND no such program, or it is not executable; ERR_RESOURCE_EXHAUSTED too
 *         many processes or open files, or too little memory */
MUST_CHECK bool child_start(struct loop *loop, const struct child_options *options,
                            const struct child_sink *sink, void *ctx, struct child **ret,
                            struct err *e);

/* Send bytes to a child that talks. False: it no longer reads, or too many bytes wait for it; then
 * it gets none of these. The caller bounds what it sends. */
MUST_CHECK bool child_write(struct child *child, struct str bytes);

/* Stop reading its output, or resume. */
void child_hold(struct child *child, bool hold);

/* Kill it now, with its process group. A guarded child that talks or reports gets half a second
 * to end by itself. No callbacks follow. */
void child_kill(struct child *child);

/* The same, but callbacks go on, and on_end follows once it is gone. It may still be killed. */
void child_stop(struct child *child);

/* Find `program`: as given when it contains a '/', else in the first matching directory of
 * `path`, which is written like $PATH. Appends the result, ended by NUL. False: not found. */
MUST_CHECK bool child_find(struct str program, struct str path, struct buf *ret);

#endif
