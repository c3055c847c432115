#include "contract/crawbl/restored_turn.h"

#include "base/mem.h"

#include <stdlib.h>

struct restored_turn {
    struct contract_ask head;
    struct workspace_agents_ask ask;
    recover_engine_fn *answer;
    void *ctx;
};

static void on_engine(struct engine *engine, void *ctx) {
    struct restored_turn *restored_turn = ctx;
    recover_engine_fn *answer = restored_turn->answer;
    void *answer_ctx = restored_turn->ctx;
    free(restored_turn);
    answer(engine, answer_ctx);
}

static void restored_turn_leave(struct contract_ask *head) {
    struct restored_turn *restored_turn = CONTAINER_OF(head, struct restored_turn, head);
    workspace_agents_leave(&restored_turn->ask);
    free(restored_turn);
}

struct engine *restored_turn_find(struct workspace_agents *workspace_agents,
                                  const struct session_name *name, recover_engine_fn *answer,
                                  void *answer_ctx, struct contract_ask **ret_ask) {
    const struct mcp_caller caller = {name->user, name->workspace, name->session};
    struct restored_turn *restored_turn = MEM_NEW(struct restored_turn);
    *restored_turn = (struct restored_turn){
        .head = {restored_turn_leave}, .answer = answer, .ctx = answer_ctx};
    struct engine *engine = workspace_agents_find(
        workspace_agents, &caller, &restored_turn->ask, on_engine, restored_turn);
    if (engine) {
        free(restored_turn);
        return engine;
    }
    *ret_ask = &restored_turn->head;
    return NULL;
}
