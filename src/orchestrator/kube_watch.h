/* kube_watch: the Deployments of our runtimes, as they are and as they change.
 *
 *     listing ─▶ watching ─▶ watching ...      410 Gone, or an event that cannot be read: listing
 *
 * A list gives all and a version; a watch goes on from there, and after each end from the newest
 * version it has seen. Failures are repeated with growing random pauses, for ever.
 *
 * Memory   what callbacks get is borrowed.
 * Threads  the loop's.
 * Source   Kubernetes, "API concepts", "Efficient detection of changes".
 */
#ifndef WEIR_ORCHESTRATOR_KUBE_WATCH_H
#define WEIR_ORCHESTRATOR_KUBE_WATCH_H

#include "orchestrator/kube.h"

struct kube_watch;

struct kube_seen {
    struct str name, workspace;
    bool ready;
    bool deleting; /* it is on its way out */
};

struct kube_watch_events {
    void (*on_there)(const struct kube_seen *seen, void *ctx);
    void (*on_gone)(struct str name, void *ctx);
    /* A list begins and has ended: what was not there in between is gone. */
    void (*on_list)(bool begins, void *ctx);
};

struct kube_watch *kube_watch_start(struct kube *kube, struct loop *loop,
                                    const struct kube_watch_events *events, void *ctx);
void kube_watch_stop(struct kube_watch *watch); /* accepts NULL; not inside a callback */

#endif
