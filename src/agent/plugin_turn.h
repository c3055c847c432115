/* plugin_turn: one turn of a shared library, on its thread, and the queue to its loop.
 *
 * Memory   counted: the call, the thread and a mail under way hold it.
 * Threads  as each function says. Private to agent/.
 */
#ifndef WEIR_AGENT_PLUGIN_TURN_H
#define WEIR_AGENT_PLUGIN_TURN_H

#include "base/arena.h"
#include "loop/loop.h"
#include "provider/provider.h"

#include <pthread.h>
#include <stdatomic.h>

struct weir_agent;

/* A loaded library with its settings. */
struct plugin {
    atomic_uint refs;
    atomic_uint threads; /* running, or never returned */
    const struct weir_agent *agent;
    struct buf config; /* JSON; ends with NUL */
};

void plugin_unref(struct plugin *plugin); /* accepts NULL */

struct plugin_turn;

/* Begin the turn on its own thread. on_ready(ctx) runs on `loop` when something is queued, but
 * not after plugin_turn_leave().
 * errors  ERR_RESOURCE_EXHAUSTED too many threads */
MUST_CHECK bool plugin_turn_start(struct plugin *plugin, struct loop *loop,
                                  const struct provider_request *request, task_fn *on_ready,
                                  void *ctx, struct plugin_turn **ret, struct err *e);

/* On the loop: the next event of the queue; the caller ends it with reply_copy_free(). NULL:
 * none. */
struct reply_copy *plugin_turn_next(struct plugin_turn *turn);

/* On the loop: there is no listener any more. */
void plugin_turn_leave(struct plugin_turn *turn);

#endif
