/* listening: the listeners of all contracts, their addresses and limits.
 *
 * Memory   the caller owns the list; it borrows the presences and the config.
 * Threads  the daemon's own loop; read-only once it listens.
 */
#ifndef WEIR_DAEMON_LISTENING_H
#define WEIR_DAEMON_LISTENING_H

#include "daemon/presence.h"

struct listening {
    const struct presence *owner;
    const struct contract_listener *listener;
    struct str address; /* empty: off */
    size_t index;       /* its position in the list */
    struct server_limits limits;
};

/* List the listeners in the order of the table. The caller frees the array.
 * snapshot  the first one */
struct listening *listenings_new(const struct presences *presences,
                                 const struct config_snapshot *snapshot, size_t *ret_count);

/* Open every listener that is not off. on_request gets its struct listening as context.
 * errors  those of server_listen() */
MUST_CHECK bool listenings_start(struct listening *all, size_t count,
                                 const struct config *config, struct server *server,
                                 exchange_start_fn *on_request, struct err *e);

#endif
