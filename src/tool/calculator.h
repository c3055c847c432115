/* calculator: the tool that evaluates arithmetic, because models guess.
 *
 * {"expression":"(12.5 + 3) * 4"} gives {"expression":"(12.5 + 3) * 4","result":62}. What an
 * expression may contain is described in tool/expression.h.
 */
#ifndef WEIR_TOOL_CALCULATOR_H
#define WEIR_TOOL_CALCULATOR_H

#include "tool/tool.h"

/* The caller ends it with tool_free(). */
struct tool *calculator_tool_new(void);

#endif
