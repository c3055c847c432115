/* expense: what one question to a model costs, outside a turn.
 *
 * Reserved on the budgets before the model is asked, further while the answer grows, settled
 * once with what was really spent. Bytes stand for tokens until the provider has counted.
 *
 * Memory   a plain value inside its owner; expense_settle() or expense_drop() before that goes.
 *          The engine, the model's name, workspace and agent stay until then.
 * Threads  as ledger.h.
 * Source   ledger.h; contracts/nimi.md 6.1 "usage numbers": unknown is told as unknown.
 */
#ifndef WEIR_RUN_EXPENSE_H
#define WEIR_RUN_EXPENSE_H

#include "run/engine.h"

struct expense {
    const struct engine *engine;
    struct str model;    /* as it is asked for */
    size_t asked_bytes;  /* of the question */
    size_t reply_tokens; /* reserved of an answer before its first word */
    /* Ours. */
    size_t came_bytes, told_bytes;
    bool answered;
    struct reservation reserved;
};

/* errors  ERR_RESOURCE_EXHAUSTED as ledger_reserve() */
MUST_CHECK bool expense_reserve(struct expense *expense, struct str workspace, struct str agent,
                                struct err *e);

/* So many bytes more came of the answer; 0 where its bytes are no words. */
void expense_use(struct expense *expense, size_t bytes);

static inline bool expense_answered(const struct expense *expense) {
    return expense->answered;
}

/* It is over and `usage` was counted; its model and cost are filled in where they are not
 * known. */
void expense_settle(struct expense *expense, struct event_usage *usage);

/* It is over and cost nothing. Harmless after expense_settle(). */
void expense_drop(struct expense *expense);

#endif
