/* caller: who calls, by the tokens of every contract.
 *
 * Each contract knows its own tokens; routes that are no contract's alone ask all of them.
 *
 * Threads  the worker's loop; reads its edition.
 */
#ifndef WEIR_DAEMON_CALLER_H
#define WEIR_DAEMON_CALLER_H

#include "daemon/worker.h"

/* They follow the worker's edition; the worker outlives them. */
struct contract_callers caller_find(struct worker *worker);

#endif
