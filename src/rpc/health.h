/* health: grpc.health.v1, set by the daemon and read by probes.
 *
 * Each listener answers for its own services; the empty name stands for the listener itself.
 * Check reads once. Watch sends the status at once and after every change, even of a name that
 * is not known yet. The watchers of a name share a topic (topic.h); one that is slow skips
 * statuses. When the daemon stops, a watcher of a known name gets NOT_SERVING, and then
 * the watch ends as CANCELLED.
 *
 * Memory   the health owns its names and watchers; free it after its site, whose calls use it.
 * Threads  one loop: a daemon with several loops keeps one for each site.
 * Source   grpc/doc/health-checking.md; checks.md G17.
 */
#ifndef WEIR_RPC_HEALTH_H
#define WEIR_RPC_HEALTH_H

#include "rpc/rpc.h"

struct health;

/* The numbers of the protocol. */
enum health_status {
    HEALTH_UNKNOWN = 0,
    HEALTH_SERVING = 1,
    HEALTH_NOT_SERVING = 2,
    HEALTH_SERVICE_UNKNOWN = 3, /* Watch only, never set */
};

struct health *health_new(void);
void health_free(struct health *health);

/* The service for rpc_site_new(); it points to `health`. */
struct rpc_service health_service(struct health *health);

/* Set the status of a name, adding it if new, and notify its watchers. */
void health_set(struct health *health, struct str service, enum health_status status);

/* Set the status of every known name. */
void health_set_all(struct health *health, enum health_status status);

#endif
