#include "run/ledger.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/units.h"
#include "provider/price.h"
#include "run/account.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#define STRIPES 16
#define STRIPE_ACCOUNTS 256 /* more are kept only while they are used */
#define REST_MS 5000        /* until a call's usage is in the store for certain, and longer */
#define LOOK_AT 8           /* accounts, for one to forget */
#define DAY_MS (INT64_C(24) * 60 * 60 * 1000)
#define ANSWER_MAX_BYTES (16 * MIB)

struct stripe {
    pthread_mutex_t lock;
    struct map *accounts; /* by workspace */
    struct list by_use;   /* the same, those used last at the end */
    struct list asks;     /* of the store, on their way */
    int64_t now_ms;       /* the latest that was said */
};

struct ledger {
    struct store *store;
    struct loop *loop;
    struct stripe stripes[STRIPES];
};

/* A question to the store; it owns the name it asks for. */
struct ask {
    struct list link;
    struct stripe *stripe; /* NULL: the ledger is gone */
    struct account *account;
    struct store_load load;
};

struct ledger *ledger_new(struct store *store, struct loop *loop) {
    struct ledger *ledger = MEM_NEW(struct ledger);
    ledger->store = store;
    ledger->loop = loop;
    for (size_t i = 0; i < STRIPES; i++) {
        struct stripe *stripe = &ledger->stripes[i];
        pthread_mutex_init(&stripe->lock, NULL);
        stripe->accounts = map_new();
        list_init(&stripe->by_use);
        list_init(&stripe->asks);
    }
    return ledger;
}

static void free_stripe(struct stripe *stripe) {
    LIST_EACH(&stripe->asks, link) {
        struct ask *ask = CONTAINER_OF(link, struct ask, link);
        list_remove(link);
        ask->stripe = NULL;
    }
    for (struct list *link; (link = list_pop(&stripe->by_use));) {
        struct account *account = CONTAINER_OF(link, struct account, link);
        assert(account->calls_out == 0);
        account_free(account);
    }
    map_free(stripe->accounts);
    pthread_mutex_destroy(&stripe->lock);
}

void ledger_free(struct ledger *ledger) {
    if (!ledger) return;
    for (size_t i = 0; i < STRIPES; i++) free_stripe(&ledger->stripes[i]);
    free(ledger);
}

size_t ledger_accounts(struct ledger *ledger) {
    size_t count = 0;
    for (size_t i = 0; i < STRIPES; i++) {
        pthread_mutex_lock(&ledger->stripes[i].lock);
        count += map_count(ledger->stripes[i].accounts);
        pthread_mutex_unlock(&ledger->stripes[i].lock);
    }
    return count;
}

/* --- what was spent before ---------------------------------------------------------------- */

static void on_loaded(struct store_load *load, const struct err *failed, void *ctx) {
    struct ask *ask = ctx;
    if (ask->stripe) {
        pthread_mutex_lock(&ask->stripe->lock);
        list_remove(&ask->link);
        if (failed) {
            account_ask_failed(ask->account);
        } else {
            account_take(ask->account, load->usages, load->usage_count);
        }
        pthread_mutex_unlock(&ask->stripe->lock);
    }
    if (failed)
        log_often(LOG_WARNING, "budgets: what was spent before is not known yet: %s",
                  failed->text);
    arena_free(load->arena);
    free((void *)(uintptr_t)load->workspace.at);
    free(ask);
}

/* Locked. The answer holds what is written by now, and nothing of what will be. */
static void ask_store(struct ledger *ledger, struct stripe *stripe, struct account *account) {
    if (!ledger->store || account->past != PAST_UNREAD) return;
    struct ask *ask = MEM_NEW(struct ask);
    struct str workspace = str_of(str_dup(account->workspace), account->workspace.len);
    ask->stripe = stripe;
    ask->account = account;
    ask->load = (struct store_load){.question = STORE_USAGE,
                                    .workspace = workspace,
                                    .from_day = account_first_day(account),
                                    .to_day = INT64_MAX,
                                    .max_bytes = ANSWER_MAX_BYTES,
                                    .home = ledger->loop,
                                    .on_loaded = on_loaded,
                                    .ctx = ask};
    list_append(&stripe->asks, &ask->link);
    account_ask(account);
    store_load(ledger->store, &ask->load);
}

/* --- accounts ----------------------------------------------------------------------------- */

static struct stripe *stripe_of(struct ledger *ledger, struct str workspace) {
    return &ledger->stripes[map_hash(workspace) % STRIPES];
}

static void touch(struct stripe *stripe, struct account *account) {
    account->used_ms = stripe->now_ms;
    list_remove(&account->link);
    list_append(&stripe->by_use, &account->link);
}

static bool may_forget(const struct stripe *stripe, const struct account *account) {
    return account->calls_out == 0 && account->past == PAST_READ &&
           stripe->now_ms - account->used_ms >= REST_MS;
}

/* Make room for one more, if there are many and one of the oldest rests. */
static void forget_one(struct stripe *stripe) {
    if (map_count(stripe->accounts) < STRIPE_ACCOUNTS) return;
    size_t looked = 0;
    LIST_EACH(&stripe->by_use, link) {
        struct account *account = CONTAINER_OF(link, struct account, link);
        if (looked++ == LOOK_AT) return;
        if (!may_forget(stripe, account)) continue;
        list_remove(link);
        map_remove(stripe->accounts, account->workspace);
        account_free(account);
        return;
    }
}

static struct account *account_of(struct stripe *stripe, struct str workspace, int64_t day) {
    struct account *account = map_find(stripe->accounts, workspace);
    if (account) return account;
    forget_one(stripe);
    forget_one(stripe); /* so that what a rush left goes again */
    account = account_new(workspace, day);
    map_put(stripe->accounts, account->workspace, account);
    return account;
}

/* --- budgets ------------------------------------------------------------------------------ */

static bool is_of(const struct budget *budget, struct str workspace) {
    return budget->workspace.len == 0 || str_equal(budget->workspace, workspace);
}

static bool concerns(const struct budget *budget, const struct reservation *reservation) {
    return is_of(budget, reservation->workspace) &&
           (budget->agent.len == 0 || str_equal(budget->agent, reservation->agent));
}

static bool fits(const struct budget *budget, const struct tab *tab, struct amount more) {
    struct amount all =
        amount_add(amount_add(tab->periods[budget->period].spent, tab->held), more);
    return (budget->cost_nano_max == 0 || all.cost_nano <= budget->cost_nano_max) &&
           (budget->tokens_max == 0 || all.tokens <= budget->tokens_max);
}

static bool refuse(const struct budget *budget, struct err *e) {
    const char *period = budget->period == BUDGET_DAY ? "day" : "month";
    struct buf limit;
    buf_init(&limit, 64);
    if (budget->cost_nano_max) {
        buf_append_byte(&limit, '$');
        price_append_dollars(&limit, budget->cost_nano_max);
    } else {
        buf_printf(&limit, "%" PRId64 " tokens", budget->tokens_max);
    }
    err_set(e, ERR_RESOURCE_EXHAUSTED,
            "the budget of this %s for the %s, " STR_FMT ", has no room for this; it begins "
            "anew with the next %s (UTC), or raise it in the settings under 'budgets'",
            budget->agent.len ? "agent" : "workspace", period, STR_ARG(buf_str(&limit)),
            period);
    buf_done(&limit);
    return false;
}

static int64_t at_most(int64_t wanted, int64_t held) {
    int64_t room = INT64_MAX - held;
    return wanted < room ? wanted : room;
}

/* Locked. Hold `more` besides what is held, on all tabs or none. What a workspace holds is
 * never less than what an agent in it does, so its room is there on both. */
static bool hold(struct reservation *reservation, struct amount more, struct err *e) {
    for (size_t i = 0; i < reservation->budget_count; i++) {
        const struct budget *budget = &reservation->budgets[i];
        if (!concerns(budget, reservation)) continue;
        if (!fits(budget, reservation->tabs[budget->agent.len ? 1 : 0], more))
            return refuse(budget, e);
    }
    const struct amount held = reservation->tabs[0]->held;
    more.cost_nano = at_most(more.cost_nano, held.cost_nano);
    more.tokens = at_most(more.tokens, held.tokens);
    for (size_t i = 0; i < ARRAY_LEN(reservation->tabs); i++) {
        reservation->tabs[i]->held = amount_add(reservation->tabs[i]->held, more);
    }
    reservation->held = amount_add(reservation->held, more);
    return true;
}

/* --- a call ------------------------------------------------------------------------------- */

static bool any_concerns(const struct budget *budgets, size_t count, struct str workspace) {
    for (size_t i = 0; i < count; i++) {
        if (is_of(&budgets[i], workspace)) return true;
    }
    return false;
}

static int64_t day_of(int64_t unix_ms) {
    return unix_ms / DAY_MS - (unix_ms % DAY_MS < 0);
}

bool ledger_reserve(struct ledger *ledger, const struct budget *budgets, size_t budget_count,
                    struct str workspace, struct str agent, int64_t unix_ms,
                    struct amount wanted, struct reservation *ret, struct err *e) {
    assert(wanted.cost_nano >= 0 && wanted.tokens >= 0);
    *ret = (struct reservation){0};
    if (!any_concerns(budgets, budget_count, workspace)) return true;
    struct reservation reservation = {.ledger = ledger,
                                      .workspace = workspace,
                                      .agent = agent,
                                      .budgets = budgets,
                                      .budget_count = budget_count};
    struct stripe *stripe = stripe_of(ledger, workspace);
    pthread_mutex_lock(&stripe->lock);
    if (unix_ms > stripe->now_ms) stripe->now_ms = unix_ms;
    struct account *account = account_of(stripe, workspace, day_of(unix_ms));
    account_turn(account, day_of(unix_ms));
    ask_store(ledger, stripe, account);
    touch(stripe, account);
    reservation.account = account;
    reservation.day = account->day;
    reservation.tabs[0] = &account->all;
    reservation.tabs[1] = account_agent(account, agent);
    bool held = hold(&reservation, wanted, e);
    if (held) account->calls_out++;
    pthread_mutex_unlock(&stripe->lock);
    if (held) *ret = reservation;
    return held;
}

static int64_t beyond(int64_t used, int64_t held) {
    return used > held ? used - held : 0;
}

bool ledger_use(struct reservation *reservation, struct amount used, struct err *e) {
    assert(reservation->ledger);
    struct amount more = {beyond(used.cost_nano, reservation->held.cost_nano),
                          beyond(used.tokens, reservation->held.tokens)};
    struct stripe *stripe = stripe_of(reservation->ledger, reservation->workspace);
    pthread_mutex_lock(&stripe->lock);
    bool held = hold(reservation, more, e);
    pthread_mutex_unlock(&stripe->lock);
    return held;
}

void ledger_settle(struct reservation *reservation, struct amount spent) {
    if (!reservation->ledger) return;
    assert(spent.cost_nano >= 0 && spent.tokens >= 0);
    struct stripe *stripe = stripe_of(reservation->ledger, reservation->workspace);
    pthread_mutex_lock(&stripe->lock);
    for (size_t i = 0; i < ARRAY_LEN(reservation->tabs); i++) {
        account_book(reservation->tabs[i], reservation->day, reservation->held, spent);
    }
    reservation->account->calls_out--;
    touch(stripe, reservation->account);
    pthread_mutex_unlock(&stripe->lock);
    *reservation = (struct reservation){0};
}
