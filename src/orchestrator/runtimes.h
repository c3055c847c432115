/* runtimes: where the runtime of a workspace is; each way to know it is a row.
 *
 *     need ─▶ found (address) ─▶ ... turns ... ─▶ leave
 *        └──▶ found (failed)
 *
 * Before a turn its workspace's runtime is needed, and afterwards it is left again. A driver may
 * know the address at once, or start a program for the workspace, wait until it serves, and end
 * it when no turn has needed it for some time.
 *
 * Memory   a need lives from runtimes_need() to runtimes_leave(). Options are borrowed until
 *          runtimes_free().
 * Threads  the loop's.
 * Source   contracts of the orchestrator, "Opening a turn"; "Transport and process" for names.
 */
#ifndef WEIR_ORCHESTRATOR_RUNTIMES_H
#define WEIR_ORCHESTRATOR_RUNTIMES_H

#include "client/http.h"
#include "loop/loop.h"
#include "wire/token.h"

struct runtimes;

struct runtimes_options {
    struct loop *loop;
    struct http_pool *http; /* asks programs whether they serve */
    /* Of the driver `address`: {service} becomes the name of the workspace's service, and
     * {workspace} its id. */
    struct str address;
    /* Of the driver `child`: a command line without a shell, apart by spaces. {port},
     * {workspace} and {user} are replaced. */
    struct str command;
    const struct token_keys *keys; /* of the health check; not needed */
    struct str key;                /* the signing key that a child gets; may be empty */
    struct str mcp;                /* the URL of our tools, which it gets too; may be empty */
    uint64_t start_ms;             /* how long a child may take until it serves */
    uint64_t idle_ms;              /* how long it stays without a turn */
    /* Of the driver `kubernetes`. `address` is its template, too; empty: the cluster's names. */
    struct {
        struct str url, namespace, token_file, ca_file; /* kube.h; empty: the pod's own */
        struct str image, arguments, secret;            /* kube_manifest.h */
    } kubernetes;
};

/* Called once for each need, never before runtimes_need() has returned, and not after
 * runtimes_leave(). The address is valid until runtimes_leave(); it is empty for the fake
 * runtime, which is nowhere.
 * errors  ERR_UNAVAILABLE it did not start, or not in time */
typedef void runtimes_found_fn(struct str address, const struct err *failed, void *ctx);

/* The head of what a driver keeps for one need. */
struct runtimes_need {
    const struct runtimes_driver *driver;
    runtimes_found_fn *found;
    void *ctx;
};

struct runtimes_driver {
    struct str name;
    /* errors  ERR_INVALID_ARGUMENT what its options lack */
    bool (*open)(const struct runtimes_options *options, void **ret, struct err *e);
    struct runtimes_need *(*need)(void *driver, struct str workspace, struct str user);
    void (*leave)(struct runtimes_need *need);
    void (*stop)(void *driver); /* end what it has started */
    void (*close)(void *driver);
};

extern const struct runtimes_driver runtimes_address, runtimes_child, runtimes_fake,
    runtimes_kubernetes;

/* errors  ERR_INVALID_ARGUMENT no driver of that name; those of its open() */
MUST_CHECK bool runtimes_open(struct str driver, const struct runtimes_options *options,
                              struct runtimes **ret, struct err *e);
struct runtimes_need *runtimes_need(struct runtimes *runtimes, struct str workspace,
                                    struct str user, runtimes_found_fn *found, void *ctx);
void runtimes_leave(struct runtimes_need *need);
/* On the loop, when no turn is left; the programs are ended. */
void runtimes_stop(struct runtimes *runtimes);
void runtimes_free(struct runtimes *runtimes);

/* Append the name of a workspace's service, as operators of the contract name it. */
void runtimes_service_name(struct str workspace, struct buf *out);

/* Append `template` with each {name} replaced by the value of that name. */
struct runtimes_word {
    struct str name, value;
};
void runtimes_fill(struct str template, const struct runtimes_word *words, size_t count,
                   struct buf *out);

#endif
