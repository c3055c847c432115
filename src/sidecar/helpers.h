/* helpers: what the sidecar offers to the agent beside it, on loopback.
 *
 *     GET  /health         POST /cost          POST /a2a/{peer}        (/mcp/{server}: door.h)
 *
 * There is no token. Web pages are refused, because a browser on this machine reaches loopback.
 *
 * Private to sidecar/.
 *
 * Threads  one loop's.
 * Source   contracts/agentbreeder.md 4.3 and 4.4.
 */
#ifndef WEIR_SIDECAR_HELPERS_H
#define WEIR_SIDECAR_HELPERS_H

#include "sidecar/inner.h"

/* Fill sidecar->helper_table. */
void helpers_init(struct sidecar *sidecar);

/* Whether a request comes from no foreign web page, which a browser on this machine would send
 * without a token. any_host: the listener answers to any name. */
bool helpers_allow(const struct exchange *exchange, bool any_host);

/* a2a_call.c and cost.c */
route_fn helpers_a2a, helpers_cost;

#endif
