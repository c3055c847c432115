/* spent: what one request has spent: tokens, money, and with which model.
 *
 * Counts come from posts to the cost helper, which are summed, or from what the agent's answer
 * says, where the last word counts. Unknown stays unknown: a sum with an unknown part is
 * unknown, and no count is estimated.
 *
 * Memory   owns the model's name.
 * Threads  one loop's.
 * Source   contracts/agentbreeder.md 4.6.
 */
#ifndef WEIR_SIDECAR_SPENT_H
#define WEIR_SIDECAR_SPENT_H

#include "base/text.h"
#include "wire/json.h"
#include "wire/usage.h"

/* The usage of one model call, or of several. */
struct spent_usage {
    struct str model;             /* empty: unknown */
    int64_t input, output, total; /* tokens, or TOKENS_UNKNOWN */
    int64_t cost_nano;            /* billionths of a dollar, or TOKENS_UNKNOWN */
};

struct spent {
    bool posted;
    struct text model;
    int64_t input, output, total, cost_nano;
};

void spent_init(struct spent *spent);
void spent_done(struct spent *spent);

/* Add what was posted to the cost helper. */
void spent_post(struct spent *spent, const struct spent_usage *usage);

/* Note what an answer says of its own usage. The last one wins. */
void spent_find(struct spent *spent, const struct spent_usage *usage);

/* Read `usage` of an answer, or of an event of a stream: a member `usage` of the object or of its
 * `metadata`, in the names of OpenAI, Anthropic or Gemini. The model is the member `model` of
 * the usage or of `metadata`. False: it says nothing. Texts are views, or in `arena`. */
MUST_CHECK bool spent_read(struct json object, struct arena *arena, struct spent_usage *ret);

#endif
