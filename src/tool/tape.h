/* tape: record a tool, and replay its calls from the recording.
 *
 * Both wrappers look like the tool itself. The recorder passes on the tool's result once the
 * file has been written, or writing has failed. Cancelled calls are not recorded. The player
 * never calls the tool, so no effect happens twice.
 *
 * Memory   both take the inner tool and free it; they hold a reference to the tape.
 * Threads  as tool.h.
 */
#ifndef WEIR_TOOL_TAPE_H
#define WEIR_TOOL_TAPE_H

#include "tape/tape.h"
#include "tool/tool.h"

struct tool *recording_tool_new(struct tape *tape, struct tool *inner);
struct tool *playing_tool_new(struct tape *tape, struct tool *inner);

/* The same beside a tool that goes on as it is. Its texts are borrowed from `model`. */
struct tool *playing_tool_like(struct tape *tape, const struct tool *model);

#endif
