/* usual: what a call of an agent to a model usually costs.
 *
 * The 95th percentile of the newest 64 counted calls, separately for money and for tokens.
 * Budgets reserve that once 20 calls are known (K33). It is kept across restarts.
 *
 * Memory   owns its names. 4,096 pairs of agent and model at most; others stay unknown.
 * Threads  any; one lock inside. usuals_new, usuals_free: the thread of `loop`.
 */
#ifndef WEIR_BUDGET_USUAL_H
#define WEIR_BUDGET_USUAL_H

#include "base/str.h"
#include "budget/ledger.h"

#define USUAL_KEPT 64    /* calls kept of each pair */
#define USUAL_ENOUGH 20  /* calls needed to reserve by them */
#define USUAL_PAIRS 4096 /* pairs kept at most */

struct usuals;

/* With a store, earlier calls are read from it, within some milliseconds, and new ones are
 * written to it: each of the first 20 calls of a pair, then every eighth. The store's answers
 * come to `loop`. */
struct usuals *usuals_new(struct store *store, struct loop *loop);
void usuals_free(struct usuals *usuals); /* NULL is fine */

struct usual {
    size_t known; /* how many calls it is based on, USUAL_KEPT at most */
    struct amount amount;
};

/* All zero if nothing is known. */
struct usual usuals_of(struct usuals *usuals, struct str agent, struct str model);

void usuals_add(struct usuals *usuals, struct str agent, struct str model, struct amount spent);

#endif
