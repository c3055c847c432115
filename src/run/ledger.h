/* ledger: what was spent, and whether more may be.
 *
 * A budget is an amount of money or tokens that a workspace, or one agent in it, may use in a
 * day or a month (UTC). Before a model is asked the run reserves what the call may cost; while
 * words come it says how much was used; when the call is over, however it ended, the
 * reservation becomes what was really spent. So two turns at once cannot both spend the last
 * cent, and a call that grows beyond its reservation is stopped in its middle.
 *
 *     free ─▶ reserved ─▶ settled        spent + reserved never exceed a budget by more than
 *                                        what one call uses between two words
 *
 * Workspaces that no budget concerns are not counted. When one is first, what was spent in its
 * month before is read from the store. Until that has come, some milliseconds later, only what
 * was counted here limits it; then both are added, and a call that is out and has no room any
 * more is stopped at its next words. What may be missing is small and never counted twice:
 * calls whose usage was on its way to the disk, or that were out when a reload brought the
 * first budget. The next reading, after a restart, has them.
 *
 * An account that nobody uses is forgotten when there are many of them, and read again when it
 * is needed. (Without a store nothing could be read again: then none is forgotten.)
 *
 * Memory   a reservation belongs to its run; the ledger outlives all runs.
 * Threads  any; striped locks inside. ledger_new and ledger_free: the thread of `loop`.
 */
#ifndef WEIR_RUN_LEDGER_H
#define WEIR_RUN_LEDGER_H

#include "base/err.h"

enum budget_period { BUDGET_DAY, BUDGET_MONTH };

struct budget {
    struct str workspace; /* empty: each workspace by itself */
    struct str agent;     /* empty: all of the workspace's agents together */
    enum budget_period period;
    int64_t cost_nano_max; /* 0: no limit of money */
    int64_t tokens_max;    /* 0: no limit of tokens */
};

struct ledger;
struct store;
struct loop;

/* One a process; `store` may be NULL: then nothing was spent before. Answers of the store come
 * to `loop`. Budgets come with each reservation, because a new edition of the settings has
 * others. */
struct ledger *ledger_new(struct store *store, struct loop *loop);
void ledger_free(struct ledger *ledger); /* NULL is fine; no reservation may be left */

struct amount {
    int64_t cost_nano; /* 0 when no price is known: unknown money limits nobody */
    int64_t tokens;
};

struct reservation {
    struct ledger *ledger; /* NULL: nothing is reserved */
    struct amount held;
    /* The ledger's. */
    struct str workspace, agent; /* as given: they stay until the settlement */
    struct account *account;
    struct tab *tabs[2]; /* of the workspace, and of the agent in it */
    int64_t day;         /* when it began: a call belongs to the day it began on */
    const struct budget *budgets;
    size_t budget_count;
};

/* Reserve `wanted` on every budget that concerns the call. Where none concerns the workspace
 * nothing is reserved, and nothing counted. `budgets` must stay until the settlement.
 * errors  ERR_RESOURCE_EXHAUSTED whose budget has no room for it, how much it is and when it
 *         begins anew */
MUST_CHECK bool ledger_reserve(struct ledger *ledger, const struct budget *budgets,
                               size_t budget_count, struct str workspace, struct str agent,
                               int64_t unix_ms, struct amount wanted, struct reservation *ret,
                               struct err *e);

/* So much has been used now, in all. Beyond what was reserved more is taken, if there is any.
 * errors  ERR_RESOURCE_EXHAUSTED there is none: stop the call, then settle */
MUST_CHECK bool ledger_use(struct reservation *reservation, struct amount used, struct err *e);

/* The call is over and cost `spent`. Harmless when nothing is reserved. */
void ledger_settle(struct reservation *reservation, struct amount spent);

/* How many workspaces are counted now. */
size_t ledger_accounts(struct ledger *ledger);

#endif
