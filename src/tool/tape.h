/* tape: a tool that is recorded, and one whose calls are answered from a recording.
 *
 * Both look like the tool they stand for. The recorder passes on what the tool answers once its
 * file is written, or could not be; what is cancelled is not recorded. The player never calls
 * the tool, so nothing happens twice.
 *
 * Memory   both take the tool within and free it; they hold a reference to the tape.
 * Threads  as tool.h.
 */
#ifndef WEIR_TOOL_TAPE_H
#define WEIR_TOOL_TAPE_H

#include "tape/tape.h"
#include "tool/tool.h"

struct tool *recording_tool_new(struct tape *tape, struct tool *inner);
struct tool *playing_tool_new(struct tape *tape, struct tool *inner);

#endif
