/* team_tape: put recorders around a team's providers and tools, or players in their place.
 * Private to team.c.
 *
 * Threads  as team.h: it reads files.
 */
#ifndef WEIR_DAEMON_TEAM_TAPE_H
#define WEIR_DAEMON_TEAM_TAPE_H

#include "daemon/team.h"

/* Open the folder for recording or replay, if the settings name one. A team that is only
 * checked records nothing. errors  both are named; those of the folder */
MUST_CHECK bool team_open_tape(struct team *team, const struct config *config, struct err *e);

/* Record or replay the agents and tools of a team. Call it after they are made. */
void team_tape(struct team *team);

#endif
