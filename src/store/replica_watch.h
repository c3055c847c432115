/* replica_watch: keeps a replica alive, and hears of the others.
 *
 * A thread with a connection of its own renews the replica's row three times within its lease,
 * whatever the store and the loops do meanwhile, and listens for what the other replicas commit.
 * All that the replica holds is renewed at once with that row. Time is the server's.
 *
 *     every lease / 3:  renew ─▶ fenced? ─▶ lost
 *                       any whose time is over? end its connection ─▶ died
 *                       how many are there? ─▶ living
 *     NOTIFY:           changed; another one has ended in order ─▶ died
 *
 * A replica whose time is over may stand still within a transaction, with the lock that others
 * wait for; so its connection is ended first.
 *
 * Memory   opaque.
 * Threads  its own; the callbacks run there.
 */
#ifndef WEIR_STORE_REPLICA_WATCH_H
#define WEIR_STORE_REPLICA_WATCH_H

#include "base/str.h"

#include <stdint.h>

struct replica_watch;

struct replica_watch_options {
    struct str url, schema; /* borrowed while it lives */
    int64_t replica;        /* its number */
    uint64_t lease_ms;
    void (*changed)(uint64_t what, void *ctx); /* enum change: others, or this one */
    void (*living)(size_t count, void *ctx);   /* now and then: replicas, this one too */
    void (*died)(void *ctx); /* a replica's time is over; again until another has taken over */
    void (*lost)(void *ctx); /* this one was fenced. The last call */
    void *ctx;
};

struct replica_watch *replica_watch_start(const struct replica_watch_options *options);

/* Waits for the thread. NULL is fine. */
void replica_watch_stop(struct replica_watch *watch);

#endif
