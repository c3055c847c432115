/* expense: the cost of one model call outside a turn.
 *
 * The cost is reserved on the budgets before the model is asked, raised while the answer grows,
 * and settled once with what was really spent. Until the provider has counted tokens they are
 * estimated from bytes.
 *
 * Memory   a plain value inside its owner; call expense_settle() or expense_drop() before the
 *          owner goes. The engine, the model's name, the workspace and the agent must live
 *          until then.
 * Threads  as ledger.h.
 * Source   ledger.h; contracts/nimi.md 6.1 "usage numbers": unknown is reported as unknown.
 */
#ifndef WEIR_JOB_EXPENSE_H
#define WEIR_JOB_EXPENSE_H

#include "engine/engine.h"

struct expense {
    const struct engine *engine;
    struct str model;    /* the name in the request */
    size_t asked_bytes;  /* of the question */
    size_t reply_tokens; /* tokens of the answer reserved before its first word */
    /* Ours. */
    size_t came_bytes, reported_bytes;
    bool answered;
    struct reservation reserved;
};

/* An estimate until the provider has counted. */
#define BYTES_A_TOKEN 4

static inline int64_t expense_tokens(size_t bytes) {
    return (int64_t)(bytes / BYTES_A_TOKEN) + 1;
}

/* What so much costs. price: NULL: it is not known, and taken for nothing. */
struct amount expense_amount(const struct price *price, size_t prompt_bytes,
                             int64_t output_tokens);

/* errors  ERR_RESOURCE_EXHAUSTED as ledger_reserve() */
MUST_CHECK bool expense_reserve(struct expense *expense, struct str workspace, struct str agent,
                                struct err *e);

/* `bytes` more of the answer came; 0 for bytes that are not text. */
void expense_use(struct expense *expense, size_t bytes);

static inline bool expense_answered(const struct expense *expense) {
    return expense->answered;
}

/* The call is over and `usage` was counted. Its model and cost are filled in where they are
 * missing. */
void expense_settle(struct expense *expense, struct event_usage *usage);

/* The call is over and cost nothing. Harmless after expense_settle(). */
void expense_drop(struct expense *expense);

#endif
