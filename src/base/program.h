/* program: the pages of the program's code and constants.
 *
 * A start touches much that is never used again: the command line, the configuration, the
 * schema. The kernel maps 16 pages around each that is touched, so half of the code looks used.
 *
 * Threads  any.
 * Source   proc_pid_pagemap(5), madvise(2).
 */
#ifndef WEIR_BASE_PROGRAM_H
#define WEIR_BASE_PROGRAM_H

/* Unmap what this process has of the code and constants of the program and its libraries. The
 * pages stay in the system's cache: one that is used is mapped again with its neighbours, in a few
 * microseconds. Pages that were written to stay, and so do their neighbours; pages that are
 * locked stay as well. Breakpoints of a debugger would be lost, so nothing is done while one is
 * attached, nor where the system does not tell what was written to. */
void program_let_go(void);

#endif
