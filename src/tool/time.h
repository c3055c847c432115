/* time: the tool `current_time`, the local time in a time zone.
 *
 * {"zone":"Asia/Tokyo"} gives {"time":"2026-03-01T21:00:00+09:00","zone":"Asia/Tokyo",
 * "weekday":"Sunday","unix":1772366400}. With "at", a time with an offset, it converts that
 * time instead of now. Zones come from the machine (package tzdata); UTC always works.
 */
#ifndef WEIR_TOOL_TIME_H
#define WEIR_TOOL_TIME_H

#include "tool/tool.h"

/* The caller ends it with tool_free(). */
struct tool *time_tool_new(void);

#endif
