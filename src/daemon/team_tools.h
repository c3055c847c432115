/* team_tools: make the tools and give each agent its own. Private to team*.c.
 *
 * Tools come from the script, from the catalogue, from the MCP servers of the settings and, in
 * turns of Converse, from the orchestrator's. An agent that names no tools has all those of the
 * script and the servers; one that names a whole server has all those of that server. Tools of the
 * catalogue have real effects, so an agent has only the ones it names. The section `tools` sets
 * the policy of a tool unless the agent sets its own. A tool hidden there is available to no
 * agent.
 */
#ifndef WEIR_DAEMON_TEAM_TOOLS_H
#define WEIR_DAEMON_TEAM_TOOLS_H

#include "daemon/team.h"
#include "tool/catalogue.h"

/* Make the tools of the script, the tools of the catalogue that any agent names, and the
 * policies. */
MUST_CHECK bool team_make_tools(struct team *team, const struct config *config,
                                const struct team_resources *resources, struct err *e);

/* Give `ret` its tools. It borrows the returned list, which the caller owns and ends with
 * free(). */
struct agent_tool *team_pick_tools(const struct team *team, const struct config *config,
                                   const struct config_agent *from, struct agent *ret);
struct agent_tool *team_pick_script_tools(const struct team *team, const struct config *config,
                                          const struct script_agent *from, struct agent *ret);

/* A tool of an MCP server by its name, or NULL. */
const struct team_mcp_tool *team_mcp_tool_find(const struct team *team, struct str name);

/* What the tools of the catalogue are made with. */
struct catalogue_options team_catalogue_options(const struct config *config,
                                                const struct team_resources *resources);

#endif
