/* team_own_tools: the operator's own tools, programs and requests. Private to team.c.
 *
 * They come after those of the script and before all others. Every agent has them, unless the
 * settings of the tool name some, the agent lists its tools, or a policy hides them.
 */
#ifndef WEIR_DAEMON_TEAM_OWN_TOOLS_H
#define WEIR_DAEMON_TEAM_OWN_TOOLS_H

#include "daemon/team.h"

/* Append them to team->tools, which has room for them. */
MUST_CHECK bool team_make_own_tools(struct team *team, const struct config *config,
                                    const struct team_resources *resources, struct err *e);

/* Make a single tool. The caller ends it with tool_free(). */
MUST_CHECK bool team_own_tool_new(const struct config_own_tool *from, struct http_pool *pool,
                                  struct tool **ret, struct err *e);

/* The tool of this name, or NULL. */
const struct config_own_tool *team_own_tool(const struct team *team, struct str name);

/* Whether the settings of the tool let this agent have it. */
bool team_may_have_own(const struct config_own_tool *tool, struct str agent);

#endif
