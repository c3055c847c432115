/* kube_sweep: the Services of our runtimes, listed once.
 *
 * A runtime is a Service and then a Deployment. If a process ends between the two, or while it deletes
 * them, a Service is left that no watch of Deployments shows. So those that are there are listed, and
 * the caller deletes those without a Deployment.
 *
 * Failures that may pass are repeated with growing random pauses; others are logged, and end it.
 *
 * Memory   what the callback gets is borrowed.
 * Threads  the loop's.
 */
#ifndef WEIR_ORCHESTRATOR_KUBE_SWEEP_H
#define WEIR_ORCHESTRATOR_KUBE_SWEEP_H

#include "orchestrator/kube.h"

struct kube_sweep;

struct kube_service_seen {
    struct str name, workspace;
    struct str uid,
        version;   /* a deletion asks for both: another process may take it meanwhile */
    int64_t age_s; /* since it was made or last taken, by this machine's clock; 0: not known */
};

struct kube_sweep_events {
    void (*on_service)(const struct kube_service_seen *seen, void *ctx);
    /* It is over, and `sweep` is gone. */
    void (*on_end)(void *ctx);
};

struct kube_sweep *kube_sweep_start(struct kube *kube, struct loop *loop,
                                    const struct kube_sweep_events *events, void *ctx);
void kube_sweep_stop(struct kube_sweep *sweep); /* accepts NULL; not inside a callback */

#endif
