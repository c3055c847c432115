/* restore_run: rebuild a run that waited for a human when it left memory, so that it waits
 * again.
 *
 * Memory   the run holds a reference to itself, like one that was started.
 * Threads  the host's loop.
 * Source   checks.md K26.
 */
#ifndef WEIR_TURN_RESTORE_RUN_H
#define WEIR_TURN_RESTORE_RUN_H

#include "turn/run.h"

/* Whether these sections, everything the store has of one run, end with a question to a
 * human. */
bool restore_run_waits(const struct store_section *sections, size_t count);

/* Rebuild the run from its events, with the agents of `engine` (a reference is taken), and park
 * it again. NULL: its agent is gone or its events are incomplete. The result is borrowed: the
 * run holds itself. */
MUST_CHECK struct run *run_restore(struct run_host *host, struct engine *engine, uint64_t run,
                                   const struct store_section *sections, size_t count);

/* The run has its session: put what was said in the session before this run in front of the
 * run's own messages. Harmless if it is there already. */
void run_look_back(struct run *run);

#endif
