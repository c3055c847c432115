/* structured_output: an answer that must be JSON of a certain shape.
 *
 * Such an answer is held back until it is whole. What is wrong with it is told to the model
 * once, with the place; a second bad answer ends the turn.
 *
 * Memory   none of its own.
 * Threads  the loop of its run.
 * Source   docs/internals/turn.md "An answer with a shape".
 */
#ifndef WEIR_TURN_STRUCTURED_OUTPUT_H
#define WEIR_TURN_STRUCTURED_OUTPUT_H

#include "base/str.h"

struct run;

/* The reply `text` asks for nothing more. True: it is well, *ret is the bare JSON. False: it
 * was asked to be repaired, or the run has failed. */
bool run_shape(struct run *run, struct str text, struct str *ret);

#endif
