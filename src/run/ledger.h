/* ledger: what was spent, and whether more may be.
 *
 * A budget is an amount of money or tokens that a workspace, or one agent in it, may use in a
 * day or a month (UTC). Before a model is asked the run reserves what the call may cost; while
 * words come it says how much was used; when the call is over, however it ended, the
 * reservation becomes what was really spent. A call that was admitted is never stopped for a
 * budget: only calls that can finish begin.
 *
 *     asked ─┬─▶ reserved ─▶ settled      spent exceeds a budget at most by
 *            ├─▶ waiting ──▲ │            calls out x (dearest call - reservation)
 *            └─▶ refused ◀───┘
 *
 * What is reserved is the usual cost of that agent with that model (usual.h), or while too few
 * calls are known what its longest answer costs, or where nobody knows that either only its
 * prompt, and then it is the only call that is out. When nothing else is out, a call whose
 * usual cost fits is admitted, whatever its longest answer would cost. What fits next to
 * nothing that is spent is refused at once; what fits when others end waits for them.
 *
 * Workspaces that no budget concerns are not counted. When one is first, what was spent in its
 * month before is read from the store. A turn's call waits for that, some milliseconds. What
 * may be missing is small and never counted twice: calls whose usage was on its way to the
 * disk, or that were out when a reload brought the first budget. The next reading, after a
 * restart, has them.
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
#include "base/list.h"
#include "loop/loop.h"

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

/* So much has been used now, in all. What is beyond the reservation is reserved, too, whether
 * there is room for it or not. */
void ledger_use(struct reservation *reservation, struct amount used);

/* The call is over and cost `spent`. Lets in who waits. Harmless when nothing is reserved. */
void ledger_settle(struct reservation *reservation, struct amount spent);

/* --- calls that may wait ------------------------------------------------------------------ */

#define LEDGER_WAITERS_MAX 1000 /* of one workspace */

struct ledger_call {
    struct str workspace, agent, model; /* they stay until the settlement */
    const struct budget *budgets;       /* likewise */
    size_t budget_count;
    int64_t unix_ms;
    struct amount prompt; /* what asking costs */
    struct amount most;   /* with the longest answer; no tokens: nobody knows how long it is */
    bool priced;          /* what it costs in money is known */
};

enum ledger_wait_state { LEDGER_WAIT_NONE, LEDGER_WAITING, LEDGER_WAIT_TOLD };

/* The caller's, until it is told or withdrawn. */
struct ledger_wait {
    struct ledger_call call;
    struct loop *loop;
    void (*told)(const struct err *refused, void *ctx); /* on that loop; NULL: `reserved` */
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
    LEDGER_GRANTED, /* `wait->reserved` has what is held; nothing where no budget concerns it */
    LEDGER_WAITS,   /* `told` comes, unless it is withdrawn */
    LEDGER_REFUSED,
};

/* errors  ERR_RESOURCE_EXHAUSTED as ledger_reserve(); or too many wait already */
MUST_CHECK enum ledger_answer ledger_ask(struct ledger *ledger, struct ledger_wait *wait,
                                         struct err *e);

/* Stop waiting. False: too late, `told` is on its way and must be awaited. */
MUST_CHECK bool ledger_withdraw(struct ledger_wait *wait);

/* What calls of that agent with that model usually come to. False: too few are known. */
bool ledger_usual(struct ledger *ledger, struct str agent, struct str model,
                  struct amount *ret);

/* A call that ended well was counted: this is what such calls cost. Before its settlement. */
void ledger_learn(struct ledger *ledger, struct str agent, struct str model,
                  struct amount spent);

/* How many workspaces are counted now. */
size_t ledger_accounts(struct ledger *ledger);

#endif
