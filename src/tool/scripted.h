/* scripted: a tool whose results come from a script.
 *
 * Calls get the results in order, starting over after the last one; calls of all runs count
 * together. Each result has its own delay. Arguments are checked against the script's
 * `parameters`, if they are a schema that we can parse.
 *
 * Threads  a call belongs to one loop; the count of calls is shared by all.
 */
#ifndef WEIR_TOOL_SCRIPTED_H
#define WEIR_TOOL_SCRIPTED_H

#include "script/script.h"
#include "tool/tool.h"

/* Borrows `script` until tool_free(), which accepts what this returns. */
struct tool *scripted_tool_new(const struct script_tool *script);

#endif
