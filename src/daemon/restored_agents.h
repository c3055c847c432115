/* restored_agents: find the agents of a run that waited for a human across a restart.
 *
 * The contract through which the run came is asked. If it does not choose agents itself, the
 * run gets the configured ones.
 *
 * Memory   an ask lives until it is answered or withdrawn.
 * Threads  the worker's loop.
 * Source   checks.md K26.
 */
#ifndef WEIR_DAEMON_RESTORED_AGENTS_H
#define WEIR_DAEMON_RESTORED_AGENTS_H

#include "daemon/worker.h"
#include "turn/recover.h"

/* The worker must outlive the callers of the result. */
struct recover_agents restored_agents(struct worker *worker);

#endif
