/* team_tools: which tools there are, and which of them each agent has. Private to team.c.
 *
 * Tools come from the script, from the catalogue, and, while turns of Converse run, from an MCP
 * server. The script's and the server's are there for every agent that names no tools; those of
 * the catalogue do real things, so an agent has only what it names. The section `tools` says of
 * any of them what becomes of a call, unless an agent says it for itself; what it hides, nobody
 * has.
 */
#ifndef WEIR_DAEMON_TEAM_TOOLS_H
#define WEIR_DAEMON_TEAM_TOOLS_H

#include "daemon/team.h"

/* Those of the script, and those of the catalogue that some agent names; and the policies. */
MUST_CHECK bool team_make_tools(struct team *team, const struct config *config,
                                const struct team_means *means, struct err *e);

/* Give `ret` its tools. It borrows the list, which the caller owns and ends with free(). */
struct agent_tool *team_pick_tools(const struct team *team, const struct config *config,
                                   const struct config_agent *from, struct agent *ret);
struct agent_tool *team_pick_script_tools(const struct team *team,
                                          const struct script_agent *from, struct agent *ret);

#endif
