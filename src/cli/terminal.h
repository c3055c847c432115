/* terminal: the terminal at stdin while a line is edited.
 *
 * Between terminal_begin() and terminal_end() each key arrives at once and is not echoed, and stderr is
 * drawn on. Ctrl-C, Ctrl-Z and Ctrl-\ stay signals. Whatever ends or stops the process meanwhile
 * (SIGTERM, SIGHUP, SIGQUIT, SIGTSTP) finds the terminal as it was; after a stop, terminal_continue()
 * takes it again.
 *
 * Memory   the state is the process's: signal handlers need it. One terminal, one user of it.
 * Threads  the main thread.
 * Source   termios(3), "Job Control Signals" of POSIX.1-2017.
 */
#ifndef WEIR_CLI_TERMINAL_H
#define WEIR_CLI_TERMINAL_H

#include "base/str.h"

#include <signal.h>

/* Whether stdin and stderr are a terminal that can move its cursor. */
bool terminal_can_edit(void);

/* False: it cannot be had, as when this process is in the background. */
MUST_CHECK bool terminal_begin(void);
void terminal_end(void);

/* From now on a paste is distinguished from keys. terminal_end() ends it. */
void terminal_paste_mode(void);

/* The size; 80 by 24 where it is not known. */
void terminal_size(size_t *ret_columns, size_t *ret_rows);

/* All of it, to stderr. */
void terminal_write(struct str bytes);

/* Whether read() would give something now. */
bool terminal_has_input(void);

/* --- what happens to it meanwhile ----------------------------------------------------------- */

/* The signals to block while terminal_has_changed() is looked at. */
void terminal_signals(sigset_t *ret);

/* Whether its size has changed, or the process was stopped, since the last terminal_continue(). */
bool terminal_has_changed(void);

/* Take note of that; take the terminal again if the process was stopped, and return true then. */
bool terminal_continue(void);

#endif
