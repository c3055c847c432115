/* tool: the parts of `weir tool` that have their own source files. */
#ifndef WEIR_CLI_TOOL_H
#define WEIR_CLI_TOOL_H

#include "daemon/team_view.h"
#include "wire/json.h"

/* Call the tool named by the first operand with the arguments in the second, by default "{}".
 * agent: the calling agent, or empty. Returns an exit code. */
int tool_call(const struct config *config, struct str agent);

/* One tool of a list. */
void tool_put_json(struct json_writer *json, const struct team_tool_view *tool);

/* Print on stderr which tools are never listed. */
void tool_note_workspaces(const struct config *config);

#endif
