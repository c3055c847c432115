/* runtimes_kubernetes: the states of a runtime in a cluster; for tests and the drawing.
 *
 * Threads  any; values only.
 */
#ifndef WEIR_ORCHESTRATOR_RUNTIMES_KUBERNETES_H
#define WEIR_ORCHESTRATOR_RUNTIMES_KUBERNETES_H

#include "orchestrator/runtimes.h"

enum kube_runtime_state {
    KUBE_RUNTIME_CREATING, /* its Service, then its Deployment are created */
    KUBE_RUNTIME_STARTING, /* both exist; the watch will say when it is ready */
    KUBE_RUNTIME_SERVING,
    KUBE_RUNTIME_ENDING, /* both are deleted */
    KUBE_RUNTIME_GONE,
    KUBE_RUNTIME_STATE_COUNT,
};

struct str kube_runtime_state_name(enum kube_runtime_state state);
bool kube_runtime_may_become(enum kube_runtime_state state, enum kube_runtime_state next);

#endif
