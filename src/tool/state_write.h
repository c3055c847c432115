/* state_write: the tool that changes the state of the application which a user works with.
 *
 * Each member of `state` replaces the member of that name; the others stay. The tool itself keeps
 * nothing: a contract whose callers have a state (contract/agui) shows each call that succeeded as a
 * change of it. For all others a call has no effect.
 */
#ifndef WEIR_TOOL_STATE_WRITE_H
#define WEIR_TOOL_STATE_WRITE_H

#include "tool/tool.h"

#define STATE_WRITE_TOOL "state_write"

/* The caller ends it with tool_free(). */
struct tool *state_write_tool_new(void);

#endif
