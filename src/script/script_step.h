/* script_step: the steps of a reply in a script.
 *
 * Memory   steps live in the arena of the document. */
#ifndef WEIR_SCRIPT_SCRIPT_STEP_H
#define WEIR_SCRIPT_SCRIPT_STEP_H

#include "script/script.h"
#include "script/script_text.h"

/* Parse a list of steps, or a text alone, which is one step. */
MUST_CHECK bool script_steps_read(const struct script *script, const struct yaml *node,
                                  const struct script_pace *pace, struct script_steps *ret,
                                  struct err *e);

/* Parse {every: 20ms, chunk: 12, split: characters}; absent members are left unchanged. */
MUST_CHECK bool script_pace_read(const struct yaml *node, struct script_pace *pace,
                                 struct err *e);

/* Refuse waits longer than a day: they are mistakes, and could overflow the clock. */
MUST_CHECK bool script_within_a_day(const struct yaml *node, uint64_t us, struct err *e);

/* Check that the script has the agent; the error names the nearest one. A script without a list
 * of agents accepts any name. */
MUST_CHECK bool script_agent_known(const struct script *script, const struct yaml *at,
                                   struct str slug, struct err *e);
MUST_CHECK bool script_tool_known(const struct script *script, const struct yaml *at,
                                  struct str name, struct err *e);

#endif
