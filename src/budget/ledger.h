/* ledger: what was spent, and whether more may be spent.
 *
 * A budget is an amount of money or tokens that a workspace, or one agent in it, may use in a
 * day or a month (UTC). Before a model is asked the run reserves what the call may cost; while
 * the answer comes in it reports how much was used; when the call is over, however it ended,
 * the reservation is replaced by what was really spent. An admitted call is never stopped by a
 * budget: a call begins only if it can finish.
 *
 *     asked ─┬─▶ reserved ─▶ settled      spent exceeds a budget at most by
 *            ├─▶ waiting ──▲ │            calls out x (dearest call - reservation)
 *            └─▶ refused ◀───┘
 *
 * The reservation is the usual cost of that agent with that model (usual.h). While too few
 * calls are known, it is the cost of the longest answer. If that is unknown too, it is the cost
 * of the prompt, and the call must then be the only one in flight. When nothing else is in
 * flight, a call whose usual cost fits is admitted, whatever its longest answer would cost. A
 * call that does not fit beside what is already spent is refused at once; one that will fit
 * when others end waits for them.
 *
 * Replicas of one store read each other's spending again after a second at most, and each
 * reserves an equal share of what is left, or one call. So they exceed a budget together by
 * what they spend within that second and the dearest call of each beside the first. Calls that
 * do not wait (ledger_reserve) know nothing of shares.
 *
 * Workspaces without a budget are not counted. When a workspace gets its first budget, its
 * earlier spending this month is read from the store. A turn's call waits a few milliseconds
 * for that. The sum may miss a little, and never counts twice: it lacks calls whose usage was
 * on its way to the disk, or that were in flight when a reload brought the first budget. The
 * next reading, after a restart, includes them.
 *
 * When there are many accounts, unused ones are forgotten, and read again when needed. Without
 * a store they could not be read again, so all are kept.
 *
 * Memory   a reservation belongs to its run; the ledger outlives all runs.
 * Threads  any; striped locks inside. ledger_new and ledger_free: the thread of `loop`.
 */
#ifndef WEIR_BUDGET_LEDGER_H
#define WEIR_BUDGET_LEDGER_H

#include "base/err.h"
#include "base/list.h"
#include "base/states.h"
#include "loop/loop.h"

enum budget_period { BUDGET_DAY, BUDGET_MONTH };

struct budget {
    struct str workspace; /* empty: each workspace separately */
    struct str agent;     /* empty: all of the workspace's agents together */
    enum budget_period period;
    int64_t cost_nano_max; /* 0: no limit of money */
    int64_t tokens_max;    /* 0: no limit of tokens */
};

struct ledger;
struct store;

/* One per process. Without a store (NULL) nothing was spent before. The store's answers come to
 * `loop`. Each reservation brings its budgets, because a reload of the settings may change
 * them. */
struct ledger *ledger_new(struct store *store, struct loop *loop);
void ledger_free(struct ledger *ledger); /* NULL is fine; no reservation may be left */

struct amount {
    int64_t cost_nano; /* 0 when no price is known: an unknown cost counts against no budget */
    int64_t tokens;
};

struct reservation {
    struct ledger *ledger; /* NULL: nothing is reserved */
    struct amount held;
    /* The ledger's. */
    struct str workspace, agent; /* borrowed until the settlement */
    struct account *account;
    struct spend_totals *both_totals[2]; /* of the workspace, and of the agent in it */
    int64_t day;                         /* a call counts for the day it began on */
    const struct budget *budgets;
    size_t budget_count;
};

/* Reserve `wanted` on every budget that applies to the call. If none applies to the workspace,
 * nothing is reserved or counted. `budgets` is borrowed until the settlement.
 * errors  ERR_RESOURCE_EXHAUSTED with whose budget has no room, how much it is and when it
 *         starts again */
MUST_CHECK bool ledger_reserve(struct ledger *ledger, const struct budget *budgets,
                               size_t budget_count, struct str workspace, struct str agent,
                               int64_t unix_ms, struct amount wanted, struct reservation *ret,
                               struct err *e);

/* `used` is the amount used so far, in all. Anything beyond the reservation is reserved too,
 * whether or not there is room for it. */
void ledger_use(struct reservation *reservation, struct amount used);

/* The call is over and cost `spent`. Admits waiting calls that now fit. Harmless when nothing
 * is reserved. */
void ledger_settle(struct reservation *reservation, struct amount spent);

/* --- calls that may wait ------------------------------------------------------------------ */

#define LEDGER_WAITERS_MAX 1000 /* of one workspace */

struct ledger_call {
    struct str workspace, agent, model; /* borrowed until the settlement */
    const struct budget *budgets;       /* likewise */
    size_t budget_count;
    int64_t unix_ms;
    struct amount prompt; /* the cost of the prompt alone */
    struct amount most;   /* with the longest answer; 0 tokens: its length is unknown */
    bool priced;          /* its price in money is known */
};

enum ledger_wait_state {
    LEDGER_WAIT_NONE,
    LEDGER_WAITING,
    LEDGER_WAIT_ANSWERED, /* the answer is on its way to the caller's loop */
    LEDGER_WAIT_STATE_COUNT,
};

extern const struct state ledger_wait_states[LEDGER_WAIT_STATE_COUNT];

/* Owned by the caller, who keeps it until `answered` was called or it was withdrawn. */
struct ledger_wait {
    struct ledger_call call;
    struct loop *loop;
    void (*answered)(const struct err *refused, void *ctx); /* on that loop; NULL: `reserved` */
    void *ctx;
    struct reservation reserved;
    /* The ledger's. */
    enum ledger_wait_state state;
    struct ledger *ledger;
    struct err refused;
    struct list link;
    struct mail mail;
};

enum ledger_answer {
    LEDGER_GRANTED, /* `wait->reserved` has what is held: nothing where no budget applies */
    LEDGER_WAITS,   /* `answered` is called, unless it is withdrawn */
    LEDGER_REFUSED,
};

/* errors  ERR_RESOURCE_EXHAUSTED as ledger_reserve(); or too many wait already */
MUST_CHECK enum ledger_answer ledger_ask(struct ledger *ledger, struct ledger_wait *wait,
                                         struct err *e);

/* Stop waiting. False: too late, `answered` is on its way and must be awaited. */
MUST_CHECK bool ledger_withdraw(struct ledger_wait *wait);

/* What calls of that agent to that model usually cost. False: too few are known. */
bool ledger_usual(struct ledger *ledger, struct str agent, struct str model,
                  struct amount *ret);

/* Learn the usual cost from a call that succeeded and was counted. Call before its
 * settlement. */
void ledger_learn(struct ledger *ledger, struct str agent, struct str model,
                  struct amount spent);

/* How many workspaces are being counted. */
size_t ledger_accounts(struct ledger *ledger);

#endif
