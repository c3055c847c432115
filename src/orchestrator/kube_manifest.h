/* kube_manifest: what a workspace's runtime is in a cluster: a Deployment and a Service.
 *
 * Memory   appends to the caller's buffer.
 * Threads  any; values only.
 * Source   crawbl.md 4 (port, names) and 8 (probes, volumes, requests and limits); Kubernetes API
 *          reference, apps/v1 Deployment and v1 Service.
 */
#ifndef WEIR_ORCHESTRATOR_KUBE_MANIFEST_H
#define WEIR_ORCHESTRATOR_KUBE_MANIFEST_H

#include "base/buf.h"

#define KUBE_PORT 42618
#define KUBE_LABEL "app.kubernetes.io/managed-by"
#define KUBE_LABEL_VALUE "weir-orchestrate"
#define KUBE_ADOPTED                                                                           \
    "weir.dev/adopted" /* an annotation: when a process last took it as its own */
#define KUBE_WORKSPACE "weir.dev/workspace" /* an annotation: any text */

struct kube_runtime {
    struct str name, workspace, user;
    struct str image;
    struct str arguments; /* a template, apart by spaces: {workspace}, {user} */
    struct str secret;    /* of the namespace, mounted as files; empty: none */
};

/* False at the buffer's limit. */
bool kube_deployment(const struct kube_runtime *runtime, struct buf *out);
bool kube_service(const struct kube_runtime *runtime, struct buf *out);

/* A merge patch that says that it is taken now; the object has another version after it. */
bool kube_adoption(int64_t unix_s, struct buf *out);

/* Options of a deletion. With `uid`: only of that object, and only of the version that was seen. */
bool kube_deletion(struct str uid, struct str version, struct buf *out);

#endif
