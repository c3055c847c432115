/* kube: requests to the API of Kubernetes.
 *
 * In a cluster the server is named by KUBERNETES_SERVICE_HOST and _PORT, and a folder of the pod has
 * the token, the certificate authority and the namespace. The token is read again for each
 * request, because the kubelet replaces it.
 *
 * Memory   a request lives until its end or its cancel; its body is copied.
 * Threads  the loop's.
 * Source   Kubernetes, "Accessing the Kubernetes API from a Pod", "API concepts".
 */
#ifndef WEIR_ORCHESTRATOR_KUBE_H
#define WEIR_ORCHESTRATOR_KUBE_H

#include "base/buf.h"
#include "client/http.h"

#define KUBE_FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"
#define KUBE_BODY_MAX_BYTES (16 * MIB) /* of one answer that is collected */

struct kube;

struct kube_options {
    struct loop *loop;
    struct http_pool *http;         /* where no authority of its own is needed */
    struct str url;                 /* empty: the pod's own cluster */
    struct str token_file, ca_file; /* empty: the pod's, in its own cluster; else none */
    struct str namespace;           /* empty: the pod's */
};

/* errors  ERR_INVALID_ARGUMENT not in a cluster, or a file is missing; those of the pool */
MUST_CHECK bool kube_new(const struct kube_options *options, struct kube **ret, struct err *e);
/* No request may be out. On the loop. */
void kube_leave(struct kube *kube);
void kube_free(struct kube *kube); /* accepts NULL */

struct str kube_namespace(const struct kube *kube);

struct kube_ask;

struct kube_events {
    /* Of a watch: whole lines, each with its end. May cancel. NULL: the body is collected. */
    void (*on_line)(struct str lines, void *ctx);
    /* Called once, and the ask is gone. failed: no connection, or a status that is not 2xx, with
     * a text for operators. again_ms: below 0 a repetition does not help, else how long the server
     * wants to be left alone.
     * errors  ERR_ALREADY_EXISTS, ERR_ABORTED (a conflict), ERR_NOT_FOUND, ERR_OUT_OF_RANGE (410),
     *         ERR_PERMISSION_DENIED, ERR_UNAUTHENTICATED, ERR_RESOURCE_EXHAUSTED (a quota, 429),
     *         ERR_FAILED_PRECONDITION (422), ERR_UNAVAILABLE */
    void (*on_end)(struct str body, const struct err *failed, int64_t again_ms, void *ctx);
};

/* `path` begins with a slash and may have a query. body: JSON, of a PATCH a merge patch (RFC 7386); or
 * empty. */
struct kube_ask *kube_start(struct kube *kube, struct str method, struct str path,
                            struct str body, const struct kube_events *events, void *ctx);
void kube_cancel(struct kube_ask *ask);

/* The error of a refusal: its status and the Status object in its body. `what` is what was
 * asked. Whether a repetition may help. */
bool kube_fault(unsigned status, struct str body, struct str what, struct err *ret);

#endif
