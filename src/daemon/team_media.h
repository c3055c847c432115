/* team_media: what the connectors of nimi.runtime.v1 have beside words. Private to daemon/.
 *
 * A connector of a provider that speaks OpenAI's protocol has what stands beside the
 * conversations there, at the same address and with the same key; 'builtin' is this machine
 * itself. Nothing is made while nobody listens for the contract.
 */
#ifndef WEIR_DAEMON_TEAM_MEDIA_H
#define WEIR_DAEMON_TEAM_MEDIA_H

#include "daemon/team.h"

/* One of team->media for each connector of the settings; without any connector the only one is
 * this machine's own. Freed with the team. */
void team_make_media(struct team *team, const struct config *config, struct http_pool *pool);

/* The media beside a provider's conversations, or NULL: it has none. In team.c, where the rest
 * of a provider is made of its settings. */
struct media *team_media_beside(const struct config_provider *from, struct http_pool *pool);

#endif
