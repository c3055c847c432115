/* presence: the contracts of this process, and the state each of them shares among all loops.
 *
 * Memory   part of its owner. The config is borrowed; each state belongs to its contract.
 * Threads  the daemon's own loop, except presence_healthy(), which any loop may call.
 */
#ifndef WEIR_DAEMON_PRESENCE_H
#define WEIR_DAEMON_PRESENCE_H

#include "daemon/config_snapshot.h"

/* One per contract, in the order of the table. */
struct presence {
    const struct contract *contract;
    size_t index;
    bool wanted; /* false: the contract is off; it has neither instances nor listeners */
    void *state; /* what its open() returned; NULL before that, or without open() */
};

struct presences {
    struct presence *all;
    size_t count;
};

void presences_init(struct presences *presences, const struct contract_table *table,
                    const struct config *config);
void presences_done(struct presences *presences); /* also closes them */

void presences_open(struct presences *presences, const struct contract_process *process);
void presences_ready(struct presences *presences, const struct config_snapshot *snapshot);
void presences_use(struct presences *presences, const struct config_snapshot *snapshot);
void presences_stopping(struct presences *presences);
void presences_stopped(struct presences *presences, bool forced);

bool presence_healthy(const struct presence *presence);

#endif
