/* runtimes_child: the states of a runtime that is a program of ours; for tests and the drawing.
 *
 * Threads  any; values only.
 */
#ifndef WEIR_ORCHESTRATOR_RUNTIMES_CHILD_H
#define WEIR_ORCHESTRATOR_RUNTIMES_CHILD_H

#include "base/states.h"
#include "orchestrator/runtimes.h"

enum child_runtime_state {
    CHILD_RUNTIME_STARTING, /* its health is asked */
    CHILD_RUNTIME_SERVING,
    CHILD_RUNTIME_ENDING, /* it was idle for too long */
    CHILD_RUNTIME_GONE,
    CHILD_RUNTIME_STATE_COUNT,
};

extern const struct state child_runtime_states[CHILD_RUNTIME_STATE_COUNT];

#endif
