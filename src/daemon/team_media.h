/* team_media: the media interfaces of the connectors of nimi.runtime.v1. Private to daemon/.
 *
 * A connector whose provider speaks OpenAI's protocol uses the media endpoints at the same
 * address with the same key, and likewise its Realtime API (provider/live.h). 'builtin' is this
 * machine itself. Nothing is made unless the contract has a listener.
 */
#ifndef WEIR_DAEMON_TEAM_MEDIA_H
#define WEIR_DAEMON_TEAM_MEDIA_H

#include "daemon/team.h"

/* Fill team->media and team->live, one for each configured connector. Without connectors there is one, this
 * machine's own. Freed with the team. */
void team_make_media(struct team *team, const struct config *config, struct http_pool *pool);

/* The media interface of a provider, or NULL if it has none. In team.c, next to the code that
 * makes providers from their settings. */
struct media *team_media_beside(const struct config_provider *from, struct http_pool *pool);
struct live_model *team_live_beside(const struct config_provider *from, struct http_pool *pool);

#endif
