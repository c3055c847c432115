/* account: what one workspace, and each agent in it, used in this day and this month.
 *
 *     account ─┬─ tab of all its agents together      tab: reserved now, and for the day and
 *              ├─ tab of an agent                           the month: begins, spent
 *              └─ tab of another
 *
 * A page turns when a day or a month begins: what was spent before does not count any more. A
 * clock that is set back turns none: the account stays in the later day.
 *
 * What the store knows is taken in once. It holds what was spent here before it was asked, and
 * nothing of what came after; `known` remembers that, so that nothing counts twice, also when
 * an answer failed to come and the store is asked again.
 *
 * Memory   an account owns its tabs; they stay where they are as long as it lives.
 * Threads  none: who has it locks.
 */
#ifndef WEIR_RUN_ACCOUNT_H
#define WEIR_RUN_ACCOUNT_H

#include "base/list.h"
#include "base/text.h"
#include "run/ledger.h"
#include "store/store.h"

struct tally {
    int64_t begins_day;
    struct amount spent;
    struct amount known; /* of it, what was spent before the store was asked */
    struct amount read;  /* what the store says of it */
};

struct tab {
    struct tally periods[2]; /* by enum budget_period */
    struct amount held;      /* reserved by calls that are out */
    size_t calls_out;
};

enum account_past {
    PAST_UNREAD,
    PAST_ASKED,
    PAST_READ,
};

struct seat;

struct account {
    struct text workspace;
    int64_t day; /* the latest that anybody reserved on */
    struct tab all;
    struct seat *agents;
    enum account_past past;
    size_t calls_out;
    struct list waiting; /* for room, the oldest first */
    struct list link;    /* the ledger's: by when it was last used */
    int64_t used_ms;     /* that, by Unix time */
};

struct account *account_new(struct str workspace, int64_t day);
void account_free(struct account *account); /* NULL is fine */

/* The tab of an agent, made when it is missing. */
struct tab *account_agent(struct account *account, struct str agent);

/* It is `day` now, or later. */
void account_turn(struct account *account, int64_t day);

/* A call that began on `day` is over: give back what it held, and count what it spent. */
void account_book(struct tab *tab, int64_t day, struct amount held, struct amount spent);

/* From which day on the store must be asked for all periods. */
int64_t account_first_day(const struct account *account);

/* The store is being asked. */
void account_ask(struct account *account);

/* It has answered, or failed to. */
void account_take(struct account *account, const struct store_usage *usages, size_t count);
void account_ask_failed(struct account *account);

/* Sums that have no room stay at the largest number. */
struct amount amount_add(struct amount a, struct amount b);

#endif
