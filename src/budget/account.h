/* account: what one workspace, and each agent in it, has used today and this month.
 *
 *     account ─┬─ totals of all its agents      totals: reserved now, and for the day and
 *              ├─ totals of an agent                    the month: begins, spent
 *              └─ totals of another
 *
 * When a day or a month begins, earlier spending stops counting. If the clock is set back, the
 * account stays in the later day.
 *
 * The store's sums are added once. They include what was spent here before the store was asked,
 * and nothing spent after. `known` holds that first part, so nothing counts twice, even when
 * the store fails to answer and is asked again. Among replicas they are read again now and then,
 * for what the others have spent.
 *
 * Memory   an account owns its totals, which do not move while it lives.
 * Threads  none of its own: the ledger locks. */
#ifndef WEIR_BUDGET_ACCOUNT_H
#define WEIR_BUDGET_ACCOUNT_H

#include "base/list.h"
#include "base/text.h"
#include "budget/ledger.h"
#include "store/store.h"

struct tally {
    int64_t begins_day;
    struct amount spent;
    struct amount known; /* the part of it spent before the store was asked */
    struct amount read;  /* what the store counted */
};

struct spend_totals {
    struct tally periods[2]; /* by enum budget_period */
    struct amount held;      /* reserved by calls in flight */
    size_t calls_out;
};

enum account_past {
    PAST_UNREAD,
    PAST_ASKED,
    PAST_READ,
};

struct agent_totals;

struct account {
    struct text workspace;
    int64_t day; /* the latest day of any reservation */
    struct spend_totals all;
    struct agent_totals *agents;
    enum account_past past;
    int64_t asked_ms; /* when the store was asked, Unix time */
    size_t calls_out;
    struct list waiting; /* calls waiting for room, oldest first */
    struct list link;    /* the ledger's: ordered by last use */
    int64_t used_ms;     /* last use, Unix time */
};

struct account *account_new(struct str workspace, int64_t day);
void account_free(struct account *account); /* NULL is fine */

/* The totals of an agent, created if there are none. */
struct spend_totals *account_agent(struct account *account, struct str agent);

/* Advance the account to `day`. An earlier day changes nothing. */
void account_turn(struct account *account, int64_t day);

/* A call that began on `day` is over: release what it held and count what it spent. */
void account_book(struct spend_totals *totals, int64_t day, struct amount held,
                  struct amount spent);

/* The first day the store must be asked for, to cover all periods. */
int64_t account_first_day(const struct account *account);

/* Call when the store is asked. */
void account_ask(struct account *account);

/* Call when it has answered, or has failed to. */
void account_take(struct account *account, const struct store_usage *usages, size_t count);
void account_ask_failed(struct account *account);

/* Sums saturate at the largest number. */
struct amount amount_add(struct amount a, struct amount b);

#endif
