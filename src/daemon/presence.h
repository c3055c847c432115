/* presence: the contracts of this process, and what each of them has once for all loops.
 *
 * Memory   part of its owner; the config is borrowed, states are the contracts' own.
 * Threads  the daemon's own loop, but for presence_healthy(), which any loop may ask.
 */
#ifndef WEIR_DAEMON_PRESENCE_H
#define WEIR_DAEMON_PRESENCE_H

#include "daemon/edition.h"

/* One a contract, in the order of the table. */
struct presence {
    const struct contract *contract;
    size_t index;
    bool wanted; /* false: it is not there, and has neither desks nor listeners */
    void *state; /* what its open() returned; NULL before, or without one */
};

struct presences {
    struct presence *all;
    size_t count;
};

void presences_init(struct presences *presences, const struct contract_table *table,
                    const struct config *config);
void presences_done(struct presences *presences); /* closes them, too */

void presences_open(struct presences *presences, const struct contract_process *process);
void presences_ready(struct presences *presences, const struct edition *edition);
void presences_use(struct presences *presences, const struct edition *edition);
void presences_stopping(struct presences *presences);
void presences_stopped(struct presences *presences, bool forced);

bool presence_healthy(const struct presence *presence);

#endif
