#include "cli/cli.h"
#include "loop/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

/* A core dump would contain keys of providers and callers. Every core file is larger than one
 * byte, so none is written. A limit of one byte, unlike zero, also keeps the kernel from piping
 * the core to a program (core(5), fs/coredump.c). Only the soft limit is set, so
 * `prlimit --core=unlimited --pid PID` can raise it again. */
#define CORE_BYTES 1

static void leave_no_core(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max < CORE_BYTES ? limit.rlim_max : CORE_BYTES;
    (void)setrlimit(RLIMIT_CORE, &limit); /* lowering a limit does not fail */
}

/* Otherwise the first files that are opened get the numbers of stdin, stdout and stderr: a socket
 * would be written to as if it were stderr. What is written to a stdout that was closed fails, as
 * it should: it is nowhere. */
static void have_standard_files(void) {
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++) {
        int how = file == STDOUT_FILENO ? O_RDONLY : O_RDWR;
        /* The lowest free number is this one. */
        if (fcntl(file, F_GETFD) < 0 && errno == EBADF && open("/dev/null", how) != file)
            _exit(EXIT_FAILED);
    }
}

int main(int arg_count, char **args) {
    sigset_t held;
    have_standard_files();
    leave_no_core();
    if (guard_asked(arg_count, (const char *const *)args))
        _exit(guard_main((const char *const *)args)); /* nothing here needs an end */
    cli_held_signals(&held);
    pthread_sigmask(SIG_BLOCK, &held, NULL);
    return cli_main(arg_count, (const char *const *)args);
}
