/* site: one listener on one loop: what all contracts serve there.
 *
 * A gRPC site carries the services of its contracts, their health and, where it is switched on,
 * reflection; an HTTP site carries tables of routes, those of guests first.
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
    void *const *desks; /* one a contract; NULL: it is not wanted */
    size_t owner;       /* whose the listener is */
    const struct contract_listener *listener;
    const struct config *config;
    uint64_t stall_ms;    /* a peer that reads nothing is cut after this */
    const void *settings; /* the owner's */
};

struct site *site_new(const struct site_options *options);
void site_free(struct site *site); /* NULL is fine; no call may be open */

void site_serve(struct site *site, struct exchange *exchange);

/* Its desks have other settings. */
void site_use(struct site *site, const void *owner_settings);

/* From now on turns are let in. */
void site_serving(struct site *site);

/* What probes of a site that serves hear. */
void site_health(struct site *site, bool healthy);

void site_stopping(struct site *site);
void site_cut(struct site *site);

#endif
