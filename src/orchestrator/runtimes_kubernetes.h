/* runtimes_kubernetes: the states of a runtime in a cluster; for tests and the drawing.
 *
 * Threads  any; values only.
 */
#ifndef WEIR_ORCHESTRATOR_RUNTIMES_KUBERNETES_H
#define WEIR_ORCHESTRATOR_RUNTIMES_KUBERNETES_H

#include "base/states.h"
#include "orchestrator/runtimes.h"

enum kube_runtime_state {
    KUBE_RUNTIME_CREATING, /* its Service, then its Deployment are created */
    KUBE_RUNTIME_STARTING, /* both exist; the watch will say when it is ready */
    KUBE_RUNTIME_SERVING,
    KUBE_RUNTIME_ENDING, /* both are deleted */
    KUBE_RUNTIME_GONE,
    KUBE_RUNTIME_STATE_COUNT,
};

extern const struct state kube_runtime_states[KUBE_RUNTIME_STATE_COUNT];

#endif
