#include "run/account.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

#define DAY_S (INT64_C(24) * 60 * 60)

struct seat {
    struct seat *next;
    struct text agent;
    struct tab tab;
};

/* --- amounts ------------------------------------------------------------------------------ */

static int64_t add(int64_t a, int64_t b) {
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

struct amount amount_add(struct amount a, struct amount b) {
    return (struct amount){add(a.cost_nano, b.cost_nano), add(a.tokens, b.tokens)};
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
    struct seat *next;
    for (struct seat *seat = account->agents; seat; seat = next) {
        next = seat->next;
        text_done(&seat->agent);
        free(seat);
    }
    text_done(&account->workspace);
    free(account);
}

/* --- days --------------------------------------------------------------------------------- */

/* The first day of the month that `day` (since 1970-01-01, UTC) is in. */
static int64_t first_of_month(int64_t day) {
    time_t at = (time_t)(day * DAY_S);
    struct tm date;
    gmtime_r(&at, &date);
    return day - (date.tm_mday - 1);
}

static int64_t beginning(enum budget_period period, int64_t day) {
    return period == BUDGET_DAY ? day : first_of_month(day);
}

static void turn_pages(struct tab *tab, int64_t day) {
    for (int period = BUDGET_DAY; period <= BUDGET_MONTH; period++) {
        struct tally *tally = &tab->periods[period];
        int64_t begins = beginning((enum budget_period)period, day);
        if (begins != tally->begins_day) *tally = (struct tally){.begins_day = begins};
    }
}

void account_turn(struct account *account, int64_t day) {
    if (day <= account->day) return;
    account->day = day;
    turn_pages(&account->all, day);
    for (struct seat *seat = account->agents; seat; seat = seat->next) {
        turn_pages(&seat->tab, day);
    }
}

int64_t account_first_day(const struct account *account) {
    return first_of_month(account->day);
}

struct tab *account_agent(struct account *account, struct str agent) {
    for (struct seat *seat = account->agents; seat; seat = seat->next) {
        if (str_equal(text_str(seat->agent), agent)) return &seat->tab;
    }
    struct seat *seat = MEM_NEW(struct seat);
    seat->agent = text_copy(agent);
    seat->next = account->agents;
    account->agents = seat;
    turn_pages(&seat->tab, account->day);
    return &seat->tab;
}

void account_book(struct tab *tab, int64_t day, struct amount held, struct amount spent) {
    assert(tab->calls_out > 0);
    assert(tab->held.cost_nano >= held.cost_nano && tab->held.tokens >= held.tokens);
    tab->held.cost_nano -= held.cost_nano;
    tab->held.tokens -= held.tokens;
    tab->calls_out--;
    for (int period = BUDGET_DAY; period <= BUDGET_MONTH; period++) {
        struct tally *tally = &tab->periods[period];
        if (beginning((enum budget_period)period, day) == tally->begins_day)
            tally->spent = amount_add(tally->spent, spent);
    }
}

/* --- what the store knows ----------------------------------------------------------------- */

static void ask_tab(struct tab *tab) {
    for (int period = BUDGET_DAY; period <= BUDGET_MONTH; period++) {
        struct tally *tally = &tab->periods[period];
        tally->known = tally->spent;
        tally->read = (struct amount){0};
    }
}

void account_ask(struct account *account) {
    assert(account->past == PAST_UNREAD);
    account->past = PAST_ASKED;
    ask_tab(&account->all);
    for (struct seat *seat = account->agents; seat; seat = seat->next) ask_tab(&seat->tab);
}

static void read_usage(struct tab *tab, const struct store_usage *usage) {
    for (int period = BUDGET_DAY; period <= BUDGET_MONTH; period++) {
        struct tally *tally = &tab->periods[period];
        if (usage->day < tally->begins_day) continue;
        tally->read =
            amount_add(tally->read, (struct amount){usage->sums.cost_nano, usage->sums.total});
        tally->read = amount_add(
            tally->read, (struct amount){usage->estimate_cost_nano, usage->estimate_tokens});
    }
}

/* What was spent before the question is in the answer, but for what was still on its way. */
static void take_tab(struct tab *tab) {
    for (int period = BUDGET_DAY; period <= BUDGET_MONTH; period++) {
        struct tally *tally = &tab->periods[period];
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
        read_usage(&account->all, &usages[i]);
        read_usage(account_agent(account, usages[i].agent), &usages[i]);
    }
    take_tab(&account->all);
    for (struct seat *seat = account->agents; seat; seat = seat->next) take_tab(&seat->tab);
}

void account_ask_failed(struct account *account) {
    assert(account->past == PAST_ASKED);
    account->past = PAST_UNREAD;
}
