/* keeping: a tool's result that is too long for the conversation.
 *
 * The store keeps it whole, as an artifact of the workspace; the model is shown its beginning,
 * its number, and how to read on. Where there is no store, or it does not answer well, only the
 * beginning is left, and says so.
 *
 * Memory   the call owns the result until it is stored.
 * Threads  the loop of its run.
 */
#ifndef WEIR_RUN_KEEPING_H
#define WEIR_RUN_KEEPING_H

#include "run/calls.h"

/* True: the store is asked to keep it, and the call is answered then. False: it is answered. */
bool run_keep_result(struct turn_call *call, struct str result);

/* The store takes too long: the call is answered with the beginning alone. */
void run_cut_result(struct turn_call *call);

#endif
