/* host: the life of a struct run_host, one loop's share of an engine.
 *
 * Memory   the owner's storage; a host holds a reference to its engine.
 * Threads  the host's loop.
 */
#ifndef WEIR_TURN_HOST_H
#define WEIR_TURN_HOST_H

#include "engine/engine.h"

void run_host_init(struct run_host *host, struct engine *engine, struct loop *loop,
                   struct keeper *keeper);

/* No run may be left. */
void run_host_done(struct run_host *host);

/* Runs that begin from now on use this engine. */
void run_host_use(struct run_host *host, struct engine *engine);

#endif
