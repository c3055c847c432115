#include "budget/ledger.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/striped.h"
#include "base/text.h"
#include "budget/account.h"
#include "budget/usual.h"
#include "provider/price.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#define STRIPES 16
#define STRIPE_ACCOUNTS 256 /* more are kept only while they are used */
#define REST_MS 5000        /* after this time a call's usage is certain to be in the store */
#define READ_AGAIN_MS 1000  /* among replicas */
#define LOOK_AT 8           /* accounts to check for one to forget */
#define DAY_MS (INT64_C(24) * 60 * 60 * 1000)
#define ANSWER_MAX_BYTES (16 * MIB)

struct account_stripe {
    pthread_mutex_t lock;
    struct map *accounts; /* by workspace */
    struct list by_use;   /* the same accounts, last used at the end */
    struct list asks;     /* requests to the store, on their way */
    int64_t now_ms;       /* the latest time passed in */
};

struct ledger {
    struct store *store;
    struct loop *loop;
    struct usuals *usuals;
    struct striped *stripes; /* by workspace */
};

/* A request to the store; owns its workspace name. */
struct ask {
    struct list link;
    struct account_stripe *stripe; /* NULL: the ledger is gone */
    struct account *account;
    struct text workspace;
    struct store_load load;
};

struct ledger *ledger_new(struct store *store, struct loop *loop) {
    struct ledger *ledger = MEM_NEW(struct ledger);
    ledger->store = store;
    ledger->loop = loop;
    ledger->usuals = usuals_new(store, loop);
    ledger->stripes = STRIPED_NEW(STRIPES, struct account_stripe);
    struct account_stripe *stripe;
    for (size_t i = 0; (stripe = striped_at(ledger->stripes, i)); i++) {
        stripe->accounts = map_new();
        list_init(&stripe->by_use);
        list_init(&stripe->asks);
    }
    return ledger;
}

static void empty_stripe(struct account_stripe *stripe) {
    LIST_EACH(&stripe->asks, link) {
        struct ask *ask = CONTAINER_OF(link, struct ask, link);
        list_remove(link);
        ask->stripe = NULL;
    }
    for (struct list *link; (link = list_pop(&stripe->by_use));) {
        struct account *account = CONTAINER_OF(link, struct account, link);
        assert(account->calls_out == 0 && list_empty(&account->waiting));
        account_free(account);
    }
    map_free(stripe->accounts);
}

void ledger_free(struct ledger *ledger) {
    if (!ledger) return;
    struct account_stripe *stripe;
    for (size_t i = 0; (stripe = striped_at(ledger->stripes, i)); i++) empty_stripe(stripe);
    striped_free(ledger->stripes);
    usuals_free(ledger->usuals);
    free(ledger);
}

size_t ledger_accounts(struct ledger *ledger) {
    size_t count = 0;
    struct account_stripe *stripe;
    for (size_t i = 0; (stripe = striped_at(ledger->stripes, i)); i++) {
        pthread_mutex_lock(&stripe->lock);
        count += map_count(stripe->accounts);
        pthread_mutex_unlock(&stripe->lock);
    }
    return count;
}

/* --- earlier spending --------------------------------------------------------------------- */

static void ledger_serve(struct account *account);

static void ledger_on_loaded(struct store_load *load, const struct err *failed, void *ctx) {
    struct ask *ask = ctx;
    if (ask->stripe) {
        pthread_mutex_lock(&ask->stripe->lock);
        list_remove(&ask->link);
        if (failed) {
            account_ask_failed(ask->account);
        } else {
            account_take(ask->account, load->usages, load->usage_count);
        }
        ledger_serve(ask->account);
        pthread_mutex_unlock(&ask->stripe->lock);
    }
    if (failed)
        log_often(LOG_WARNING, "budgets: what was spent before is not known yet: %s",
                  failed->text);
    arena_free(load->arena);
    text_done(&ask->workspace);
    free(ask);
}

static bool is_shared(const struct ledger *ledger) {
    return ledger->store && store_is_shared(ledger->store);
}

/* Other replicas have spent meanwhile. */
static bool is_old(const struct ledger *ledger, const struct account_stripe *stripe,
                   const struct account *account) {
    return account->past == PAST_READ && is_shared(ledger) &&
           stripe->now_ms - account->asked_ms >= READ_AGAIN_MS;
}

/* Locked. The answer includes everything written by now, and nothing later. */
static void ask_store(struct ledger *ledger, struct account_stripe *stripe,
                      struct account *account) {
    if (!ledger->store) return;
    if (account->past != PAST_UNREAD && !is_old(ledger, stripe, account)) return;
    account->asked_ms = stripe->now_ms;
    struct ask *ask = MEM_NEW(struct ask);
    ask->stripe = stripe;
    ask->account = account;
    ask->workspace = text_copy(text_str(account->workspace));
    ask->load = (struct store_load){.question = STORE_USAGE,
                                    .workspace = text_str(ask->workspace),
                                    .from_day = account_first_day(account),
                                    .to_day = INT64_MAX,
                                    .max_bytes = ANSWER_MAX_BYTES,
                                    .home = ledger->loop,
                                    .on_loaded = ledger_on_loaded,
                                    .ctx = ask};
    list_append(&stripe->asks, &ask->link);
    account_ask(account);
    store_load(ledger->store, &ask->load);
}

/* --- accounts ----------------------------------------------------------------------------- */

static void touch(struct account_stripe *stripe, struct account *account) {
    account->used_ms = stripe->now_ms;
    list_remove(&account->link);
    list_append(&stripe->by_use, &account->link);
}

static bool may_forget(const struct account_stripe *stripe, const struct account *account) {
    return account->calls_out == 0 && list_empty(&account->waiting) &&
           account->past == PAST_READ && stripe->now_ms - account->used_ms >= REST_MS;
}

/* If there are many accounts, forget one of the oldest that is unused. */
static void forget_one(struct account_stripe *stripe) {
    if (map_count(stripe->accounts) < STRIPE_ACCOUNTS) return;
    size_t looked = 0;
    LIST_EACH(&stripe->by_use, link) {
        struct account *account = CONTAINER_OF(link, struct account, link);
        if (looked++ == LOOK_AT) return;
        if (!may_forget(stripe, account)) continue;
        list_remove(link);
        map_remove(stripe->accounts, text_str(account->workspace));
        account_free(account);
        return;
    }
}

static struct account *account_of(struct account_stripe *stripe, struct str workspace,
                                  int64_t day) {
    struct account *account = map_find(stripe->accounts, workspace);
    if (account) return account;
    forget_one(stripe);
    forget_one(stripe); /* two per new one, so that a rush is cleared in time */
    account = account_new(workspace, day);
    map_put(stripe->accounts, workspace, account);
    return account;
}

/* --- budgets ------------------------------------------------------------------------------ */

static bool ledger_is_of(const struct budget *budget, struct str workspace) {
    return budget->workspace.len == 0 || str_equal(budget->workspace, workspace);
}

static bool concerns(const struct budget *budget, struct str workspace, struct str agent) {
    return ledger_is_of(budget, workspace) &&
           (budget->agent.len == 0 || str_equal(budget->agent, agent));
}

static bool ledger_fits(const struct budget *budget, const struct spend_totals *totals,
                        struct amount held, struct amount more) {
    struct amount all =
        amount_add(amount_add(totals->periods[budget->period].spent, held), more);
    return (budget->cost_nano_max == 0 || all.cost_nano <= budget->cost_nano_max) &&
           (budget->tokens_max == 0 || all.tokens <= budget->tokens_max);
}

static int64_t times(int64_t amount, size_t count) {
    int64_t product;
    return __builtin_mul_overflow(amount, (int64_t)count, &product) ? INT64_MAX : product;
}

/* What is reserved elsewhere is not known here, so each replica reserves an equal share of what
 * is left at most. */
static bool fits_share(const struct ledger *ledger, const struct budget *budget,
                       const struct spend_totals *totals, struct amount more) {
    size_t count = is_shared(ledger) ? store_living(ledger->store) : 1;
    struct amount ours = amount_add(totals->held, more);
    return ledger_fits(
        budget, totals, (struct amount){0},
        (struct amount){times(ours.cost_nano, count), times(ours.tokens, count)});
}

static bool ledger_refuse(const struct budget *budget, struct err *e) {
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

static struct spend_totals *totals_of(const struct budget *budget,
                                      struct spend_totals *const both_totals[static 2]) {
    return both_totals[budget->agent.len ? 1 : 0];
}

/* Locked. Whether every budget has room for `more`. */
static bool has_room(const struct reservation *reservation, struct amount more, struct err *e) {
    for (size_t i = 0; i < reservation->budget_count; i++) {
        const struct budget *budget = &reservation->budgets[i];
        if (!concerns(budget, reservation->workspace, reservation->agent)) continue;
        const struct spend_totals *totals = totals_of(budget, reservation->both_totals);
        if (!ledger_fits(budget, totals, totals->held, more)) return ledger_refuse(budget, e);
    }
    return true;
}

/* Locked. Reserve `more` in addition. The workspace's total is at least that of each agent, so
 * limiting by the workspace's keeps both from overflowing. */
static void hold(struct reservation *reservation, struct amount more) {
    const struct amount held = reservation->both_totals[0]->held;
    more.cost_nano = at_most(more.cost_nano, held.cost_nano);
    more.tokens = at_most(more.tokens, held.tokens);
    for (size_t i = 0; i < ARRAY_LEN(reservation->both_totals); i++) {
        reservation->both_totals[i]->held = amount_add(reservation->both_totals[i]->held, more);
    }
    reservation->held = amount_add(reservation->held, more);
}

/* Locked. Count one more call in flight. */
static void ledger_begin(struct reservation *reservation, struct amount held) {
    hold(reservation, held);
    reservation->account->calls_out++;
    for (size_t i = 0; i < ARRAY_LEN(reservation->both_totals); i++)
        reservation->both_totals[i]->calls_out++;
}

/* --- a call ------------------------------------------------------------------------------- */

static bool any_concerns(const struct budget *budgets, size_t count, struct str workspace) {
    for (size_t i = 0; i < count; i++) {
        if (ledger_is_of(&budgets[i], workspace)) return true;
    }
    return false;
}

static int64_t day_of(int64_t unix_ms) {
    return unix_ms / DAY_MS - (unix_ms % DAY_MS < 0);
}

/* Find the account, lock its stripe, and advance it to the day. */
static struct account_stripe *lock_account(struct reservation *reservation, int64_t unix_ms) {
    struct account_stripe *stripe =
        striped_lock(reservation->ledger->stripes, reservation->workspace);
    if (unix_ms > stripe->now_ms) stripe->now_ms = unix_ms;
    struct account *account = account_of(stripe, reservation->workspace, day_of(unix_ms));
    account_turn(account, day_of(unix_ms));
    ask_store(reservation->ledger, stripe, account);
    touch(stripe, account);
    reservation->account = account;
    reservation->day = account->day;
    reservation->both_totals[0] = &account->all;
    reservation->both_totals[1] = account_agent(account, reservation->agent);
    return stripe;
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
    struct account_stripe *stripe = lock_account(&reservation, unix_ms);
    bool held = has_room(&reservation, wanted, e);
    if (held) ledger_begin(&reservation, wanted);
    pthread_mutex_unlock(&stripe->lock);
    if (held) *ret = reservation;
    return held;
}

static int64_t beyond(int64_t used, int64_t held) {
    return used > held ? used - held : 0;
}

void ledger_use(struct reservation *reservation, struct amount used) {
    assert(reservation->ledger);
    struct amount more = {beyond(used.cost_nano, reservation->held.cost_nano),
                          beyond(used.tokens, reservation->held.tokens)};
    struct account_stripe *stripe =
        striped_lock(reservation->ledger->stripes, reservation->workspace);
    hold(reservation, more);
    pthread_mutex_unlock(&stripe->lock);
}

void ledger_settle(struct reservation *reservation, struct amount spent) {
    if (!reservation->ledger) return;
    assert(spent.cost_nano >= 0 && spent.tokens >= 0);
    struct account_stripe *stripe =
        striped_lock(reservation->ledger->stripes, reservation->workspace);
    for (size_t i = 0; i < ARRAY_LEN(reservation->both_totals); i++) {
        account_book(reservation->both_totals[i], reservation->day, reservation->held, spent);
    }
    reservation->account->calls_out--;
    touch(stripe, reservation->account);
    ledger_serve(reservation->account);
    pthread_mutex_unlock(&stripe->lock);
    *reservation = (struct reservation){0};
}

void ledger_learn(struct ledger *ledger, struct str agent, struct str model,
                  struct amount spent) {
    usuals_add(ledger->usuals, agent, model, spent);
}

bool ledger_usual(struct ledger *ledger, struct str agent, struct str model,
                  struct amount *ret) {
    struct usual usual = usuals_of(ledger->usuals, agent, model);
    if (usual.known < USUAL_ENOUGH) return false;
    *ret = usual.amount;
    return true;
}

/* --- calls that may wait ------------------------------------------------------------------ */

const struct state ledger_wait_states[LEDGER_WAIT_STATE_COUNT] = {
    /* clang-format off */
    [LEDGER_WAIT_NONE] = {"none",    TO(LEDGER_WAITING)},
    [LEDGER_WAITING]   = {"waiting", TO(LEDGER_WAIT_ANSWERED) | TO(LEDGER_WAIT_NONE)},
    [LEDGER_WAIT_ANSWERED] = {"answered", TO(LEDGER_WAIT_NONE)},
    /* clang-format on */
};

/* The only function that writes wait->state. */
static void ledger_wait_move(struct ledger_wait *wait, enum ledger_wait_state next) {
    assert(states_allow(ledger_wait_states, wait->state, next));
    wait->state = next;
}

/* The amounts that a call would reserve. */
struct wish {
    struct amount beside; /* while others are in flight */
    struct amount alone;  /* while no other is in flight */
    bool only_alone;      /* must be the only one: its cost is unknown */
};

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static struct wish wish_of(struct ledger *ledger, const struct ledger_call *call) {
    struct usual usual = usuals_of(ledger->usuals, call->agent, call->model);
    struct wish wish = {.beside = call->most, .alone = call->prompt};
    wish.only_alone = usual.known < USUAL_ENOUGH && call->most.tokens == 0;
    if (usual.known)
        wish.alone = (struct amount){larger(usual.amount.cost_nano, call->prompt.cost_nano),
                                     larger(usual.amount.tokens, call->prompt.tokens)};
    if (usual.known >= USUAL_ENOUGH || wish.only_alone) wish.beside = wish.alone;
    if (!call->priced) wish.beside.cost_nano = wish.alone.cost_nano = 0;
    return wish;
}

/* Whether the budget limits an amount that is known for the call. */
static bool measures(const struct budget *budget, const struct ledger_call *call) {
    return budget->tokens_max || (budget->cost_nano_max && call->priced);
}

/* Locked. Whether the call may begin now with *ret_held reserved, must wait, or is refused. */
static enum ledger_answer ledger_judge(const struct reservation *reservation,
                                       const struct ledger_call *call, struct amount *ret_held,
                                       struct err *e) {
    struct wish wish = wish_of(reservation->ledger, call);
    bool waits = reservation->ledger->store && reservation->account->past == PAST_ASKED;
    *ret_held = wish.beside;
    for (size_t i = 0; i < call->budget_count; i++) {
        const struct budget *budget = &call->budgets[i];
        if (!concerns(budget, call->workspace, call->agent)) continue;
        const struct spend_totals *totals = totals_of(budget, reservation->both_totals);
        if (!ledger_fits(budget, totals, (struct amount){0}, wish.alone)) {
            ledger_refuse(budget, e);
            return LEDGER_REFUSED;
        }
        bool fits_beside = fits_share(reservation->ledger, budget, totals, wish.beside);
        if (totals->calls_out == 0 && !fits_beside) *ret_held = wish.alone;
        if (totals->calls_out == 0) continue;
        waits = waits || !fits_beside || (wish.only_alone && measures(budget, call));
    }
    return waits ? LEDGER_WAITS : LEDGER_GRANTED;
}

static void ledger_report(void *ctx) {
    struct ledger_wait *wait = ctx;
    ledger_wait_move(wait, LEDGER_WAIT_NONE);
    wait->answered(wait->refused.code ? &wait->refused : NULL, wait->ctx);
}

/* Calls of one agent are admitted in order, so that cheap calls do not overtake an expensive
 * one for ever. */
static bool one_before(const struct account *account, const struct ledger_wait *wait) {
    LIST_EACH(&account->waiting, link) {
        const struct ledger_wait *other = CONTAINER_OF(link, struct ledger_wait, link);
        if (other == wait) return false;
        if (str_equal(other->call.agent, wait->call.agent)) return true;
    }
    return false;
}

/* Locked. Call after a change: admit waiting calls that fit now, refuse calls that never
 * will. */
static void ledger_serve(struct account *account) {
    LIST_EACH(&account->waiting, link) {
        struct ledger_wait *wait = CONTAINER_OF(link, struct ledger_wait, link);
        struct amount held;
        if (one_before(account, wait)) continue;
        enum ledger_answer answer =
            ledger_judge(&wait->reserved, &wait->call, &held, &wait->refused);
        if (answer == LEDGER_WAITS) continue;
        if (answer == LEDGER_GRANTED) ledger_begin(&wait->reserved, held);
        if (answer == LEDGER_REFUSED) wait->reserved = (struct reservation){0};
        list_remove(link);
        ledger_wait_move(wait, LEDGER_WAIT_ANSWERED);
        loop_post(wait->loop, &wait->mail, ledger_report, wait);
    }
}

static size_t count_waiting(const struct account *account) {
    size_t count = 0;
    for (const struct list *link = account->waiting.next; link != &account->waiting;
         link = link->next)
        count++;
    return count;
}

static enum ledger_answer stand_in_line(struct ledger_wait *wait, struct err *e) {
    struct account *account = wait->reserved.account;
    if (count_waiting(account) >= LEDGER_WAITERS_MAX) {
        err_set(e, ERR_RESOURCE_EXHAUSTED,
                "calls that are out hold what is left of the budget, and %d wait for it "
                "already; try again later",
                LEDGER_WAITERS_MAX);
        return LEDGER_REFUSED;
    }
    ledger_wait_move(wait, LEDGER_WAITING);
    list_append(&account->waiting, &wait->link);
    return LEDGER_WAITS;
}

enum ledger_answer ledger_ask(struct ledger *ledger, struct ledger_wait *wait, struct err *e) {
    const struct ledger_call *call = &wait->call;
    assert(wait->state == LEDGER_WAIT_NONE);
    wait->ledger = ledger;
    wait->reserved = (struct reservation){0};
    wait->refused.code = ERR_NONE;
    list_init(&wait->link);
    if (!any_concerns(call->budgets, call->budget_count, call->workspace))
        return LEDGER_GRANTED;
    wait->reserved = (struct reservation){.ledger = ledger,
                                          .workspace = call->workspace,
                                          .agent = call->agent,
                                          .budgets = call->budgets,
                                          .budget_count = call->budget_count};
    struct account_stripe *stripe = lock_account(&wait->reserved, call->unix_ms);
    struct amount held;
    enum ledger_answer answer = ledger_judge(&wait->reserved, call, &held, e);
    if (answer == LEDGER_GRANTED && one_before(wait->reserved.account, wait))
        answer = LEDGER_WAITS;
    if (answer == LEDGER_GRANTED) ledger_begin(&wait->reserved, held);
    if (answer == LEDGER_WAITS) answer = stand_in_line(wait, e);
    pthread_mutex_unlock(&stripe->lock);
    if (answer == LEDGER_REFUSED) wait->reserved = (struct reservation){0};
    return answer;
}

bool ledger_withdraw(struct ledger_wait *wait) {
    struct account_stripe *stripe = striped_lock(wait->ledger->stripes, wait->call.workspace);
    bool waited = wait->state == LEDGER_WAITING;
    if (waited) {
        struct account *account = wait->reserved.account;
        list_remove(&wait->link);
        ledger_wait_move(wait, LEDGER_WAIT_NONE);
        wait->reserved = (struct reservation){0};
        ledger_serve(account);
    }
    pthread_mutex_unlock(&stripe->lock);
    return waited;
}
