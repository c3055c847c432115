/* door: who may come in at the sidecar's front listener, and where a request goes.
 *
 *     address rate ─▶ own /health ─▶ bearer ─▶ version ─▶ token and agent rate ─▶ relay
 *
 * /health, /openapi.json and the agent's cards are open.
 *
 * Private to sidecar/.
 *
 * Threads  one loop's.
 * Source   contracts/agentbreeder.md 1.4, 1.5, 1.13 and 4.3.
 */
#ifndef WEIR_SIDECAR_DOOR_H
#define WEIR_SIDECAR_DOOR_H

#include "server/exchange.h"

/* For the listener; ctx is the sidecar. */
void door_on_request(struct exchange *exchange, void *ctx);

/* For the listeners of the helpers. */
void door_on_helper_request(struct exchange *exchange, void *ctx);

/* For what was no request. */
void door_refusal_body(int status, struct str text, struct buf *out);

#endif
