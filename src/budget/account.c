#include "budget/account.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

#define DAY_S (INT64_C(24) * 60 * 60)

struct agent_totals {
    struct agent_totals *next;
    struct text agent;
    struct spend_totals totals;
};

/* --- amounts ------------------------------------------------------------------------------ */

static int64_t account_add(int64_t a, int64_t b) {
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

struct amount amount_add(struct amount a, struct amount b) {
    return (struct amount){account_add(a.cost_nano, b.cost_nano),
                           account_add(a.tokens, b.tokens)};
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* --- accounts ----------------------------------------------------------------------------- */

struct account *account_new(struct str workspace, int64_t day) {
    struct account *account = MEM_NEW(struct account);
    account->workspace = text_copy(workspace);
    account->day = INT64_MIN;
    list_init(&account->link);
    list_init(&account->waiting);
    account_turn(account, day);
    return account;
}

void account_free(struct account *account) {
    if (!account) return;
    struct agent_totals *next;
    for (struct agent_totals *agent_totals = account->agents; agent_totals;
         agent_totals = next) {
        next = agent_totals->next;
        text_done(&agent_totals->agent);
        free(agent_totals);
    }
    text_done(&account->workspace);
    free(account);
}

/* --- days --------------------------------------------------------------------------------- */

/* The first day of the month of `day` (days since 1970-01-01, UTC). */
static int64_t first_of_month(int64_t day) {
    time_t at = (time_t)(day * DAY_S);
    struct tm date;
    gmtime_r(&at, &date);
    return day - (date.tm_mday - 1);
}

static int64_t beginning(enum budget_period period, int64_t day) {
    return period == BUDGET_DAY ? day : first_of_month(day);
}

static void turn_pages(struct spend_totals *totals, int64_t day) {
    for (int period = BUDGET_DAY; period <= BUDGET_MONTH; period++) {
        struct tally *tally = &totals->periods[period];
        int64_t begins = beginning((enum budget_period)period, day);
        if (begins != tally->begins_day) *tally = (struct tally){.begins_day = begins};
    }
}

void account_turn(struct account *account, int64_t day) {
    if (day <= account->day) return;
    account->day = day;
    turn_pages(&account->all, day);
    for (struct agent_totals *agent_totals = account->agents; agent_totals;
         agent_totals = agent_totals->next) {
        turn_pages(&agent_totals->totals, day);
    }
}

int64_t account_first_day(const struct account *account) {
    return first_of_month(account->day);
}

struct spend_totals *account_agent(struct account *account, struct str agent) {
    for (struct agent_totals *agent_totals = account->agents; agent_totals;
         agent_totals = agent_totals->next) {
        if (str_equal(text_str(agent_totals->agent), agent)) return &agent_totals->totals;
    }
    struct agent_totals *agent_totals = MEM_NEW(struct agent_totals);
    agent_totals->agent = text_copy(agent);
    agent_totals->next = account->agents;
    account->agents = agent_totals;
    turn_pages(&agent_totals->totals, account->day);
    return &agent_totals->totals;
}

void account_book(struct spend_totals *totals, int64_t day, struct amount held,
                  struct amount spent) {
    assert(totals->calls_out > 0);
    assert(totals->held.cost_nano >= held.cost_nano && totals->held.tokens >= held.tokens);
    totals->held.cost_nano -= held.cost_nano;
    totals->held.tokens -= held.tokens;
    totals->calls_out--;
    for (int period = BUDGET_DAY; period <= BUDGET_MONTH; period++) {
        struct tally *tally = &totals->periods[period];
        if (beginning((enum budget_period)period, day) == tally->begins_day)
            tally->spent = amount_add(tally->spent, spent);
    }
}

/* --- sums from the store ------------------------------------------------------------------ */

static void ask_totals(struct spend_totals *totals) {
    for (int period = BUDGET_DAY; period <= BUDGET_MONTH; period++) {
        struct tally *tally = &totals->periods[period];
        tally->known = tally->spent;
        tally->read = (struct amount){0};
    }
}

void account_ask(struct account *account) {
    assert(account->past != PAST_ASKED);
    account->past = PAST_ASKED;
    ask_totals(&account->all);
    for (struct agent_totals *agent_totals = account->agents; agent_totals;
         agent_totals = agent_totals->next)
        ask_totals(&agent_totals->totals);
}

static void account_read_usage(struct spend_totals *totals, const struct store_usage *usage) {
    for (int period = BUDGET_DAY; period <= BUDGET_MONTH; period++) {
        struct tally *tally = &totals->periods[period];
        if (usage->day < tally->begins_day) continue;
        tally->read =
            amount_add(tally->read, (struct amount){usage->sums.cost_nano, usage->sums.total});
        tally->read = amount_add(
            tally->read, (struct amount){usage->estimate_cost_nano, usage->estimate_tokens});
    }
}

/* The store's answer includes what was spent before it was asked, except usage not written
 * yet. */
static void take_totals(struct spend_totals *totals) {
    for (int period = BUDGET_DAY; period <= BUDGET_MONTH; period++) {
        struct tally *tally = &totals->periods[period];
        struct amount since = {tally->spent.cost_nano - tally->known.cost_nano,
                               tally->spent.tokens - tally->known.tokens};
        struct amount before = {larger(tally->read.cost_nano, tally->known.cost_nano),
                                larger(tally->read.tokens, tally->known.tokens)};
        tally->spent = amount_add(before, since);
    }
}

void account_take(struct account *account, const struct store_usage *usages, size_t count) {
    assert(account->past == PAST_ASKED);
    account->past = PAST_READ;
    for (size_t i = 0; i < count; i++) {
        account_read_usage(&account->all, &usages[i]);
        account_read_usage(account_agent(account, usages[i].agent), &usages[i]);
    }
    take_totals(&account->all);
    for (struct agent_totals *agent_totals = account->agents; agent_totals;
         agent_totals = agent_totals->next)
        take_totals(&agent_totals->totals);
}

void account_ask_failed(struct account *account) {
    assert(account->past == PAST_ASKED);
    account->past = PAST_UNREAD;
}
