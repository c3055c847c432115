/* await_tools: a turn waits for tools that are not known yet.
 *
 * An MCP server may still be starting when the first turn comes. A turn whose agent may need
 * its tools waits for the next engine of its host, which has them, and uses that one. It waits
 * AWAIT_TOOLS_MS at most. If that engine is there before the turn can begin, the turn uses it
 * at once. Turns of other agents do not wait.
 *
 * So does a turn that waited for a human when the process ended, once it is answered: the servers of
 * this process may still be starting, and the call that was decided may be of one of them.
 *
 * Memory   a plain value inside its run.
 * Threads  the loop of its run. */
#ifndef WEIR_TURN_AWAIT_TOOLS_H
#define WEIR_TURN_AWAIT_TOOLS_H

#include "engine/engine.h"

#define AWAIT_TOOLS_MS 15000

struct run;

struct await_tools {
    bool waits, over;
    struct timer late;
    struct engine *before; /* a reference to the engine that it was to have; may be NULL */
};

/* Whether the turn waits now. run_begin(), or run_work_answered() of a turn that a human has
 * answered, is then called again when the wait is over. */
bool run_await_tools(struct run *run);

void run_stop_await_tools(struct run *run); /* harmless when it does not wait */
void await_tools_done(struct await_tools *await);

/* The host has another engine. */
void await_tools_use(struct run_host *host);

#endif
