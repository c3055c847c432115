#include "daemon/revival.h"

static struct engine *find(struct str contract, const struct session_name *name,
                           recover_engine_fn *answer, void *answer_ctx, void **ret_ask,
                           void *ctx) {
    struct worker *worker = ctx;
    size_t index = contract_find(&worker->contracts, contract);
    bool known = index < worker->contracts.count && worker->desks[index];
    if (!known || !worker->contracts.rows[index]->desk.find_agents) return worker->host.engine;
    struct contract_ask *ask = NULL;
    struct engine *engine = worker->contracts.rows[index]->desk.find_agents(
        worker->desks[index], name, answer, answer_ctx, &ask);
    *ret_ask = ask;
    return engine;
}

static void leave(void *ctx) {
    struct contract_ask *ask = ctx;
    ask->leave(ask);
}

struct recover_agents revival_agents(struct worker *worker) {
    return (struct recover_agents){find, leave, worker};
}
