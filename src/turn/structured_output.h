/* structured_output: an answer that must be JSON of a certain shape.
 *
 * Such an answer is held back until it is complete. If it is wrong, the model is asked once
 * more, with what is wrong and where; a second wrong answer ends the turn.
 *
 * Memory   none of its own.
 * Threads  the loop of its run.
 * Source   docs/internals/turn.md "An answer with a shape". */
#ifndef WEIR_TURN_STRUCTURED_OUTPUT_H
#define WEIR_TURN_STRUCTURED_OUTPUT_H

#include "base/str.h"

struct run;

/* Check the reply `text`, which requests nothing more. True: it is valid, and *ret is the bare
 * JSON. False: the model was asked to repair it, or the run has failed. */
bool run_shape(struct run *run, struct str text, struct str *ret);

#endif
