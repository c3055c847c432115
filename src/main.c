#include "cli/cli.h"

#include <sys/resource.h>

/* A core would hold keys of providers and callers. Files of cores begin larger than this, and
 * one byte, unlike none, is what keeps the kernel from feeding a core to a program (core(5),
 * fs/coredump.c). Only the soft limit: `prlimit --core=unlimited --pid PID` raises it again for
 * who needs one. */
#define CORE_BYTES 1

static void leave_no_core(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max < CORE_BYTES ? limit.rlim_max : CORE_BYTES;
    (void)setrlimit(RLIMIT_CORE, &limit); /* lowering a limit does not fail */
}

int main(int arg_count, char **args) {
    sigset_t held;
    leave_no_core();
    cli_held_signals(&held);
    pthread_sigmask(SIG_BLOCK, &held, NULL);
    return cli_main(arg_count, (const char *const *)args);
}
