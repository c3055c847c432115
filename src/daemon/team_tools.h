/* team_tools: which tools there are, and which of them each agent has. Private to team.c.
 *
 * Tools come from the script and from the catalogue. A script's are there for every agent that
 * names no tools; those of the catalogue do real things, so an agent has only what it names.
 */
#ifndef WEIR_DAEMON_TEAM_TOOLS_H
#define WEIR_DAEMON_TEAM_TOOLS_H

#include "daemon/team.h"

/* Those of the script, and those of the catalogue that some agent names. */
MUST_CHECK bool team_make_tools(struct team *team, const struct config *config,
                                const struct team_means *means, struct err *e);

/* Fill ret's tools, which are freed with the team. */
void team_pick_tools(const struct team *team, const struct config *config,
                     const struct config_agent *from, struct agent *ret);

#endif
