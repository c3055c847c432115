/* caller: identify a caller by the tokens of every contract.
 *
 * Each contract knows its own tokens. Routes that do not belong to one contract try all of
 * them.
 *
 * Threads  the worker's loop; reads its snapshot.
 */
#ifndef WEIR_DAEMON_CALLER_H
#define WEIR_DAEMON_CALLER_H

#include "daemon/worker.h"

/* The result always uses the worker's current snapshot. The worker must outlive it. */
struct contract_callers caller_find(struct worker *worker);

#endif
