/* audit_snapshot: a record of which providers and connectors there are from now on.
 *
 * Threads  the writer's loop.
 */
#ifndef WEIR_DAEMON_AUDIT_SNAPSHOT_H
#define WEIR_DAEMON_AUDIT_SNAPSHOT_H

#include "daemon/config_snapshot.h"

struct audit_writer;

void audit_snapshot(struct audit_writer *writer, struct str domain, const char *operation,
                    const struct config_snapshot *snapshot);

#endif
