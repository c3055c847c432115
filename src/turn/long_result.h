/* long_result: a tool's result that is too long for the conversation.
 *
 * The store keeps it whole, as an artifact of the workspace. The model is shown its beginning,
 * its number, and how to read on. Without a store, or when the store fails, only the beginning
 * is kept, with a note that the rest was cut.
 *
 * Memory   the call owns the result until it is stored.
 * Threads  the loop of its run.
 */
#ifndef WEIR_TURN_LONG_RESULT_H
#define WEIR_TURN_LONG_RESULT_H

#include "turn/calls.h"

/* True: the store is asked to keep it, and the call is answered when it replies. False: the
 * call is answered already. */
bool run_keep_result(struct turn_call *call, struct str result);

/* The store takes too long: answer the call with the beginning alone. */
void run_cut_result(struct turn_call *call);

#endif
