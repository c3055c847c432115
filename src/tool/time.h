/* time: the tool `current_time`, what the clock shows somewhere.
 *
 * {"zone":"Asia/Tokyo"} gives {"time":"2026-03-01T21:00:00+09:00","zone":"Asia/Tokyo",
 * "weekday":"Sunday","unix":1772366400}; with "at", a moment with an offset, that moment
 * instead of now. Zones are those of the machine (package tzdata), UTC always.
 */
#ifndef WEIR_TOOL_TIME_H
#define WEIR_TOOL_TIME_H

#include "tool/tool.h"

/* The caller ends it with tool_free(). */
struct tool *time_tool_new(void);

#endif
