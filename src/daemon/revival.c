#include "daemon/revival.h"

#include "base/mem.h"

#include <stdlib.h>

struct revival {
    struct house_ask ask;
    recover_engine_fn *answer;
    void *ctx;
};

static void on_engine(struct engine *engine, void *ctx) {
    struct revival *revival = ctx;
    recover_engine_fn *answer = revival->answer;
    void *answer_ctx = revival->ctx;
    free(revival);
    answer(engine, answer_ctx);
}

static struct engine *find(struct str contract, const struct session_name *name,
                           recover_engine_fn *answer, void *answer_ctx, void **ret_ask,
                           void *ctx) {
    struct worker *worker = ctx;
    if (!str_equal(contract, STR("crawbl"))) return worker->host.engine;
    const struct mcp_caller caller = {name->user, name->workspace, name->session};
    struct revival *revival = MEM_NEW(struct revival);
    revival->answer = answer;
    revival->ctx = answer_ctx;
    struct engine *engine =
        house_find(worker->house, &caller, &revival->ask, on_engine, revival);
    if (engine) {
        free(revival);
        return engine;
    }
    *ret_ask = revival;
    return NULL;
}

static void leave(void *ask) {
    struct revival *revival = ask;
    house_leave(&revival->ask);
    free(revival);
}

struct recover_agents revival_agents(struct worker *worker) {
    return (struct recover_agents){find, leave, worker};
}
