/* revival: whose agents a run has that waits for a human over a restart.
 *
 * The contract that it began over is asked; without an answer of its own it has those of the
 * settings.
 *
 * Memory   an ask lives until it is answered or left.
 * Threads  the worker's loop.
 * Source   checks.md K26.
 */
#ifndef WEIR_DAEMON_REVIVAL_H
#define WEIR_DAEMON_REVIVAL_H

#include "daemon/worker.h"
#include "run/recover.h"

/* The worker must outlive whoever asks. */
struct recover_agents revival_agents(struct worker *worker);

#endif
