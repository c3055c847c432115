#include "contract/crawbl/revival.h"

#include "base/mem.h"

#include <stdlib.h>

struct revival {
    struct contract_ask head;
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

static void leave(struct contract_ask *head) {
    struct revival *revival = CONTAINER_OF(head, struct revival, head);
    house_leave(&revival->ask);
    free(revival);
}

struct engine *revival_find(struct house *house, const struct session_name *name,
                            recover_engine_fn *answer, void *answer_ctx,
                            struct contract_ask **ret_ask) {
    const struct mcp_caller caller = {name->user, name->workspace, name->session};
    struct revival *revival = MEM_NEW(struct revival);
    *revival = (struct revival){.head = {leave}, .answer = answer, .ctx = answer_ctx};
    struct engine *engine = house_find(house, &caller, &revival->ask, on_engine, revival);
    if (engine) {
        free(revival);
        return engine;
    }
    *ret_ask = &revival->head;
    return NULL;
}
