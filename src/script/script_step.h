/* script_step: the steps of a reply in a script, and its texts with holes.
 *
 * "{input}" is a hole, "{{" and "}}" are braces. In JSON only string values have holes. The
 * literal parts are stored escaped, so that only the holes are left to fill.
 *
 * Memory   steps and pieces live in the arena of the document. */
#ifndef WEIR_SCRIPT_SCRIPT_STEP_H
#define WEIR_SCRIPT_SCRIPT_STEP_H

#include "script/script.h"
#include "wire/yaml.h"

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

/* --- script_text.c: texts with holes -------------------------------------------------------- */

/* A set of allowed holes: one bit for each enum script_hole. */
#define HOLE(hole) (1u << (hole))
#define HOLES_OF_REPLY                                                                         \
    (HOLE(HOLE_INPUT) | HOLE(HOLE_TOPIC) | HOLE(HOLE_RESULT) | HOLE(HOLE_ANSWER) |             \
     HOLE(HOLE_AGENT))
#define HOLES_OF_TOOL (HOLE(HOLE_ARGS) | HOLE(HOLE_AGENT))

/* Parse a scalar. */
MUST_CHECK bool script_text_read(const struct yaml *node, unsigned holes,
                                 struct script_text *ret, struct err *e);

/* Parse a map, as one JSON object. */
MUST_CHECK bool script_json_read(const struct yaml *node, unsigned holes,
                                 struct script_text *ret, struct err *e);

#endif
