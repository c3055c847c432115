/* nimi: the listeners of nimi.runtime.v1 in this daemon, one share a worker.
 *
 * gRPC carries its services, health and reflection; HTTP its health endpoints. Without an
 * address there is no share, and nothing of it is made.
 *
 * Memory   owned by its worker; the runtime by the daemon.
 * Threads  the worker's loop, but for nimi_settings_*.
 * Source   design.md "Listeners"; checks.md K17.
 */
#ifndef WEIR_DAEMON_NIMI_H
#define WEIR_DAEMON_NIMI_H

#include "config/config.h"
#include "contract/nimi/nimi.h"
#include "daemon/team.h"
#include "rpc/health.h"
#include "rpc/reflection.h"

enum { NIMI_SITE_HEALTH = NIMI_SERVICES, NIMI_SITE_SERVICES };

struct nimi_share {
    struct nimi_desk desk;
    struct health *health;
    struct reflection *reflection; /* NULL: switched off */
    struct rpc_service services[NIMI_SITE_SERVICES + REFLECTION_SERVICES];
    struct rpc_site *grpc;
    struct route_table table;
    const struct route_table *tables[1];
    struct route_site *http;
};

struct nimi_share_options {
    struct loop *loop;
    const struct nimi_settings *settings;
    struct run_host *host;
    struct nimi_runtime *runtime;
    bool reflection;
};

struct nimi_share *nimi_share_new(const struct nimi_share_options *options);
void nimi_share_free(struct nimi_share *share); /* NULL is fine */

void nimi_share_use(struct nimi_share *share, const struct nimi_settings *settings);
void nimi_share_serving(struct nimi_share *share);

/* gRPC health says SERVING while the runtime is READY: after each change of that. */
void nimi_share_health(struct nimi_share *share);
void nimi_share_stopping(struct nimi_share *share);
void nimi_share_cut(struct nimi_share *share);
void nimi_share_leave(struct nimi_share *share); /* jobs are left for the next process */

/* Say where artifacts are fetched. port  of listen.nimi_http; 0: there is none */
void nimi_share_files(struct nimi_runtime *runtime, const struct config *config, int port);

/* --- settings ----------------------------------------------------------------------------- */

/* What the configuration says, with the connectors it lists; without any, whoever answers for
 * the first agent serves local models, and this machine speaks and makes vectors. End it with
 * nimi_settings_done(). */
void nimi_settings_init(struct nimi_settings *ret, const struct config *config,
                        const struct team *team);
void nimi_settings_done(struct nimi_settings *settings);

#endif
