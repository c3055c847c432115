/* agent_health: whether the agent of the sidecar answers.
 *
 * It is asked for /health every few seconds. A request that reached it, or did not, tells the
 * same sooner.
 *
 * Memory   the sidecar owns it.
 * Threads  one loop's.
 * Source   contracts/agentbreeder.md 1.6, 4.10 and 4.11.
 */
#ifndef WEIR_SIDECAR_AGENT_HEALTH_H
#define WEIR_SIDECAR_AGENT_HEALTH_H

#include "client/http.h"

#define AGENT_HEALTH_LOADING_MS 1000 /* between two questions, until it is healthy */
#define AGENT_HEALTH_HEALTHY_MS 10000

struct agent_health;

/* `url` is the agent's; borrowed. */
struct agent_health *agent_health_new(struct http_pool *pool, struct loop *loop,
                                      struct str url);
void agent_health_free(struct agent_health *health); /* accepts NULL */

/* False: it is loading, or does not answer. */
bool agent_health_is_healthy(const struct agent_health *health);

/* A request could not reach it: ask again soon. */
void agent_health_doubt(struct agent_health *health);

#endif
