/* orders: tell every worker to do something, each on its own loop.
 *
 * Threads  any; the orders of one thread arrive in their order.
 */
#ifndef WEIR_DAEMON_ORDERS_H
#define WEIR_DAEMON_ORDERS_H

#include "daemon/worker.h"

typedef void order_fn(struct worker *worker);

/* Run fn for each worker, on the worker's loop. NULL: use `newest`, of which each order has a
 * reference. */
void order_workers(struct worker *workers, size_t count, order_fn *fn,
                   struct config_snapshot *newest);

#endif
