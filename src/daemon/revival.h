/* revival: whose agents a run has that waits for a human over a restart.
 *
 * A turn of Converse may have been given to agents of its workspace's blueprint: the house is
 * asked for them again. Every other turn has those of the settings.
 *
 * Memory   an ask lives until it is answered or left.
 * Threads  the worker's loop.
 * Source   contracts/crawbl.md 2.10; checks.md K26.
 */
#ifndef WEIR_DAEMON_REVIVAL_H
#define WEIR_DAEMON_REVIVAL_H

#include "daemon/worker.h"
#include "run/recover.h"

/* The worker must outlive whoever asks. */
struct recover_agents revival_agents(struct worker *worker);

#endif
