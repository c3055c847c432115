/* site: one listener on one loop, with everything that contracts serve there.
 *
 * A gRPC site carries the services of its contracts, their health and, if enabled, reflection.
 * An HTTP site carries tables of routes, guests' tables first.
 *
 *     starting ─▶ serving ─▶ stopping ─▶ cut
 *
 * Memory   owned by its worker. Desks are borrowed, and outlive it.
 * Threads  its loop.
 */
#ifndef WEIR_DAEMON_SITE_H
#define WEIR_DAEMON_SITE_H

#include "contract/contract.h"

struct site;

struct site_options {
    struct loop *loop;
    const struct contract_table *contracts;
    void *const *instances; /* one per contract; NULL: the contract is off */
    size_t owner;           /* index of the contract that owns the listener */
    const struct contract_listener *listener;
    const struct config *config;
    struct audit_writer *audit;
    struct rate_limits *rates; /* of requests; NULL: no limits */
    uint64_t stall_ms;         /* a peer that reads nothing for this long is cut */
    const void *settings;      /* the owner's */
};

struct site *site_new(const struct site_options *options);
void site_free(struct site *site); /* NULL is fine; no call may be open */

void site_serve(struct site *site, struct exchange *exchange);

/* The instances have new settings. */
void site_use(struct site *site, const void *owner_settings);

/* From now on turns are admitted. */
void site_serving(struct site *site);

/* Set what probes of a serving site report. */
void site_health(struct site *site, bool healthy);

void site_stopping(struct site *site);
void site_cut(struct site *site);

#endif
