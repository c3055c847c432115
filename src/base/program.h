/* program: the pages of the program's code and constants.
 *
 * A start touches much that is never used again: the command line, the configuration, the
 * schema. The kernel maps 16 pages around each that is touched, so half of the code looks used.
 *
 * Threads  any.
 */
#ifndef WEIR_BASE_PROGRAM_H
#define WEIR_BASE_PROGRAM_H

/* Unmap what this process has of the code and constants of the program and its libraries. The
 * pages stay in the system's cache: who needs one has it mapped again, in about a microsecond.
 * Breakpoints of a debugger are lost, so nothing is done while one is attached. */
void program_let_go(void);

#endif
