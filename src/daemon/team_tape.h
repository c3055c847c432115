/* team_tape: recorders around all that a team asks, or players in its place. Private to team.c.
 *
 * Threads  as team.h: it reads files.
 */
#ifndef WEIR_DAEMON_TEAM_TAPE_H
#define WEIR_DAEMON_TEAM_TAPE_H

#include "daemon/team.h"

/* Open the folder that the settings name, if they do. A team that is only looked at records
 * nothing.
 * errors  both are named; those of the folder */
MUST_CHECK bool team_open_tape(struct team *team, const struct config *config, struct err *e);

/* Once agents and tools are made: have them recorded or played. */
void team_tape(struct team *team);

#endif
