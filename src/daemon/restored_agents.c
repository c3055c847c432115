#include "daemon/restored_agents.h"

static struct engine *restored_agents_find(struct str contract, const struct session_name *name,
                                           recover_engine_fn *answer, void *answer_ctx,
                                           void **ret_ask, void *ctx) {
    struct worker *worker = ctx;
    size_t index = contract_find(&worker->contracts, contract);
    bool known = index < worker->contracts.count && worker->instances[index];
    if (!known || !worker->contracts.rows[index]->instance.find_agents)
        return worker->host.engine;
    struct contract_ask *ask = NULL;
    struct engine *engine = worker->contracts.rows[index]->instance.find_agents(
        worker->instances[index], name, answer, answer_ctx, &ask);
    *ret_ask = ask;
    /* cppcheck-suppress returnDanglingLifetime; `ask` is only written to */
    return engine;
}

static void restored_agents_leave(void *ctx) {
    struct contract_ask *ask = ctx;
    ask->leave(ask);
}

struct recover_agents restored_agents(struct worker *worker) {
    return (struct recover_agents){restored_agents_find, restored_agents_leave, worker};
}
