/* guard: a small process between this one and a program that it runs.
 *
 * A process killed with SIGKILL cannot end its children. A guard can: it holds one end of a
 * pipe, the lifeline. When the other end is closed, for whatever reason, it ends the program.
 * The guard is the subreaper of everything that the program starts, so it also finds processes
 * that moved into a group or a session of their own. It exits last.
 *
 *     watch ─▶ SIGTERM to the group ─▶ grace ─▶ SIGKILL ─▶ sweep ─▶ exit
 *        └────────────── the program ended by itself ───────▲
 *
 * The guard is started as this program with the name GUARD_NAME, GRACE_MS, the path of the
 * program and its arguments. It passes on the standard descriptors and the exit code (128 plus
 * the signal number if a signal ended the program).
 *
 * Memory   none beyond the stack.
 * Threads  its only one.
 * Source   prctl(2), PR_SET_CHILD_SUBREAPER and PR_SET_PDEATHSIG; pidfd_open(2). */
#ifndef WEIR_LOOP_GUARD_H
#define WEIR_LOOP_GUARD_H

#include <stdbool.h>

#define GUARD_NAME "weir-guard"
#define GUARD_LIFELINE_FD 3

/* Whether these arguments of main() ask for a guard. */
bool guard_asked(int arg_count, const char *const *args);

/* Run as a guard. Returns the exit code of the process. */
int guard_main(const char *const *args);

#endif
