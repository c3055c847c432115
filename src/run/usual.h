/* usual: what a call of an agent to a model usually comes to.
 *
 * Of the newest 64 calls that were counted, the 95th percentile, of money and of tokens each by
 * itself. Budgets reserve that once 20 are known (K33). It is kept over restarts.
 *
 * Memory   owns its names; 4,096 pairs of agent and model at most, further ones stay unknown.
 * Threads  any; one lock inside. usuals_new, usuals_free: the thread of `loop`.
 */
#ifndef WEIR_RUN_USUAL_H
#define WEIR_RUN_USUAL_H

#include "base/str.h"
#include "run/ledger.h"

#define USUAL_KEPT 64    /* calls of a pair */
#define USUAL_ENOUGH 20  /* of them, to reserve by */
#define USUAL_PAIRS 4096 /* at most */

struct usuals;

/* With a store they are read from it, some milliseconds later, and kept in it: each of the
 * first 20 calls of a pair, then every eighth. Answers of the store come to `loop`. */
struct usuals *usuals_new(struct store *store, struct loop *loop);
void usuals_free(struct usuals *usuals); /* NULL is fine */

struct usual {
    size_t known; /* calls it is taken from, at most USUAL_KEPT */
    struct amount amount;
};

/* Nothing known: all zero. */
struct usual usuals_of(struct usuals *usuals, struct str agent, struct str model);

void usuals_add(struct usuals *usuals, struct str agent, struct str model, struct amount spent);

#endif
