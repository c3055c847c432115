/* toolbox: what agents can do here: the orchestrator's tools, its blueprints, and the audit.
 *
 * It fills in struct orchestrator_endpoint (mcp/endpoint.h). The memory's tools need only the
 * daemon's store; the others read the orchestrator's rows. send_push_notification is not offered:
 * there is nothing here that could reach a device.
 *
 * Memory   a call of a tool lives until the database has answered.
 * Threads  the orchestrator's loop.
 * Source   contracts of the orchestrator, "Tools", "Blueprint".
 */
#ifndef WEIR_ORCHESTRATOR_TOOLBOX_H
#define WEIR_ORCHESTRATOR_TOOLBOX_H

#include "orchestrator/contract.h"

void toolbox_init(struct orchestrator *orchestrator, struct store *store);

/* Route table of the endpoint. */
void toolbox_routes(void *instance, struct route_table *ret);

#endif
