/* script_text: text with holes in a script.
 *
 * "{input}" is a hole, "{{" and "}}" are braces. In JSON only string values have holes. The
 * literal parts are stored escaped, so that only the holes are left to fill.
 *
 * Memory   pieces live in the arena of the document. */
#ifndef WEIR_SCRIPT_SCRIPT_TEXT_H
#define WEIR_SCRIPT_SCRIPT_TEXT_H

#include "script/script.h"
#include "wire/yaml.h"

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
