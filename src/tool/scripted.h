/* scripted: a tool whose answers stand in a script.
 *
 * The first call gets the first answer, the next one the next, and after the last it begins
 * again; calls of all runs count together. Each answer comes after its own delay. Arguments are
 * checked by the script's `parameters`, if they are a schema that we can read.
 *
 * Threads  a call belongs to one loop; the count of calls is shared by all.
 */
#ifndef WEIR_TOOL_SCRIPTED_H
#define WEIR_TOOL_SCRIPTED_H

#include "tool/tool.h"
#include "wire/script.h"

/* Borrows `script` until tool_free(), which accepts what this returns. */
struct tool *scripted_tool_new(const struct script_tool *script);

#endif
