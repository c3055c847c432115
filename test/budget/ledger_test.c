#include "budget/ledger.h"

#include "budget/account.h"
#include "helper/assert_str.h"
#include "loop/loop.h"
#include "store/task.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define DAY_MS (INT64_C(24) * 60 * 60 * 1000)
#define DAY INT64_C(20787) /* 2026-11-30, the last of its month */
#define NOON (DAY * DAY_MS + DAY_MS / 2)
#define DOLLAR INT64_C(1000000000)

/* --- a store that answers when the test says so ------------------------------------------- */

#define ASKED_MAX 1024
static struct store_load *asked[ASKED_MAX];
static size_t asked_count;

void store_load(struct store *store, struct store_load *load) {
    assert_non_null(store);
    assert_int_equal(load->question, STORE_USAGE);
    assert_false(load->all_workspaces);
    assert_true(asked_count < ASKED_MAX);
    asked[asked_count++] = load;
}

static size_t living; /* replicas; 0: the store is not shared */

bool store_is_shared(const struct store *store) {
    assert_non_null(store);
    return living > 0;
}

size_t store_living(const struct store *store) {
    assert_non_null(store);
    return living;
}

/* It keeps nothing of what calls usually cost, and says so when all is over. */
static struct store_task *tasks[8];
static size_t task_count;

void store_run(struct store *store, struct loop *home, struct store_task *task, void *ctx) {
    assert_non_null(store);
    task->home = home;
    task->ctx = ctx;
    assert_true(task_count < ARRAY_LEN(tasks));
    tasks[task_count++] = task;
}

static void fail_tasks(void) {
    struct err why;
    err_set(&why, ERR_UNAVAILABLE, "no tables");
    while (task_count > 0) {
        struct store_task *task = tasks[--task_count];
        task->on_done(&why, task->ctx);
    }
}

static struct store *some_store(void) {
    static char place;
    return (struct store *)(void *)&place;
}

static struct store_usage usage(const char *agent, int64_t day, int64_t cost, int64_t tokens) {
    return (struct store_usage){
        .workspace = STR("w"),
        .agent = str_from(agent),
        .day = day,
        .calls = 1,
        .sums = {.model = STR_INIT("m"), .total = tokens, .cost_nano = cost}};
}

static void answer_with(struct store_usage *usages, size_t count) {
    assert_true(asked_count > 0);
    struct store_load *load = asked[0];
    memmove(asked, asked + 1, --asked_count * sizeof(struct store_load *));
    load->usages = usages;
    load->usage_count = count;
    load->on_loaded(load, NULL, load->ctx);
}

static void refuse_answer(void) {
    struct store_load *load = asked[0];
    struct err e;
    asked_count--;
    err_set(&e, ERR_UNAVAILABLE, "the disk is full");
    load->on_loaded(load, &e, load->ctx);
}

/* --- words -------------------------------------------------------------------------------- */

static struct ledger *ledger;
static struct err e;

static int setup(void **state) {
    (void)state;
    ledger = ledger_new(NULL, NULL);
    asked_count = 0;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    living = 0;
    ledger_free(ledger);
    fail_tasks();
    return 0;
}

static struct budget money(const char *workspace, const char *agent, enum budget_period period,
                           int64_t cost) {
    return (struct budget){str_from(workspace), str_from(agent), period, cost, 0};
}

static bool reserve_of(const struct budget *budgets, size_t count, const char *workspace,
                       const char *agent, int64_t at_ms, int64_t cost,
                       struct reservation *ret) {
    return ledger_reserve(ledger, budgets, count, str_from(workspace), str_from(agent), at_ms,
                          (struct amount){cost, 0}, ret, &e);
}

/* By the agent "a" of "w", under one budget. */
static bool reserve(const struct budget *budget, int64_t at_ms, int64_t cost,
                    struct reservation *ret) {
    return reserve_of(budget, 1, "w", "a", at_ms, cost, ret);
}

static void spend(const struct budget *budget, int64_t at_ms, int64_t cost) {
    struct reservation reservation;
    assert_true(reserve(budget, at_ms, 0, &reservation));
    ledger_settle(&reservation, (struct amount){cost, 0});
}

static int64_t room_of(const struct budget *budgets, size_t count, const char *workspace,
                       const char *agent, int64_t at_ms) {
    int64_t low = -1, high = INT64_MAX / 4; /* fits, does not */
    while (high - low > 1) {
        struct reservation reservation;
        int64_t middle = low + (high - low) / 2;
        if (reserve_of(budgets, count, workspace, agent, at_ms, middle, &reservation)) {
            ledger_settle(&reservation, (struct amount){0});
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static int64_t room(const struct budget *budget, int64_t at_ms) {
    return room_of(budget, 1, "w", "a", at_ms);
}

/* --- reserving ---------------------------------------------------------------------------- */

static void two_calls_at_once_cannot_spend_the_last_cent(void **state) {
    (void)state;
    const struct budget budget = money("", "", BUDGET_DAY, 100);
    struct reservation first, second;
    assert_true(reserve(&budget, NOON, 60, &first));
    assert_false(reserve(&budget, NOON, 41, &second));
    assert_int_equal(e.code, ERR_RESOURCE_EXHAUSTED);
    assert_null(second.ledger);
    assert_true(reserve(&budget, NOON, 40, &second));
    assert_false(reserve(&budget, NOON, 1, &(struct reservation){0}));
    ledger_settle(&first, (struct amount){60, 0});
    ledger_settle(&second, (struct amount){40, 0});
    assert_false(reserve(&budget, NOON, 1, &first));
    assert_int_equal(room(&budget, NOON), 0);
}

static void reserved_amounts_that_are_not_spent_are_given_back(void **state) {
    (void)state;
    const struct budget budget = money("", "", BUDGET_MONTH, 100);
    struct reservation reservation;
    assert_true(reserve(&budget, NOON, 100, &reservation));
    ledger_settle(&reservation, (struct amount){30, 0});
    assert_null(reservation.ledger);
    ledger_settle(&reservation, (struct amount){30, 0}); /* it is over: harmless */
    assert_int_equal(room(&budget, NOON), 70);
}

static void a_call_that_grows_leaves_less_to_others_and_goes_on(void **state) {
    (void)state;
    const struct budget budget = money("", "", BUDGET_DAY, 100);
    struct reservation growing, other;
    assert_true(reserve(&budget, NOON, 10, &growing));
    ledger_use(&growing, (struct amount){5, 0}); /* less than it holds */
    assert_int_equal(growing.held.cost_nano, 10);
    ledger_use(&growing, (struct amount){60, 0});
    assert_int_equal(growing.held.cost_nano, 60);
    assert_true(reserve(&budget, NOON, 40, &other));
    ledger_use(&growing, (struct amount){61, 0});
    assert_int_equal(growing.held.cost_nano, 61);
    ledger_settle(&other, (struct amount){0});
    assert_int_equal(room(&budget, NOON), 39);
    ledger_settle(&growing, (struct amount){100, 0});
    assert_int_equal(room(&budget, NOON), 0);
}

static void a_call_that_cost_more_than_anybody_thought_leaves_no_room(void **state) {
    (void)state;
    const struct budget budget = money("", "", BUDGET_DAY, 100);
    spend(&budget, NOON, 250);
    assert_int_equal(room(&budget, NOON), -1); /* not even for what costs nothing */
    assert_int_equal(room(&budget, NOON + DAY_MS), 100);
}

static void money_and_tokens_are_limited_each_by_itself(void **state) {
    (void)state;
    const struct budget budget = {STR_EMPTY, STR_EMPTY, BUDGET_DAY, 100, 10};
    struct reservation reservation;
    struct str w = STR("w"), a = STR("a");
    assert_false(ledger_reserve(ledger, &budget, 1, w, a, NOON, (struct amount){101, 1},
                                &reservation, &e));
    assert_false(ledger_reserve(ledger, &budget, 1, w, a, NOON, (struct amount){1, 11},
                                &reservation, &e));
    assert_true(ledger_reserve(ledger, &budget, 1, w, a, NOON, (struct amount){100, 10},
                               &reservation, &e));
    ledger_use(&reservation, (struct amount){0, 11});
    assert_int_equal(reservation.held.cost_nano, 100);
    assert_int_equal(reservation.held.tokens, 11);
    ledger_settle(&reservation, (struct amount){0});
}

static void a_refusal_says_whose_budget_how_much_and_when(void **state) {
    (void)state;
    struct reservation reservation;
    const struct budget day = money("", "", BUDGET_DAY, DOLLAR * 5 / 2);
    assert_false(reserve(&day, NOON, 3 * DOLLAR, &reservation));
    assert_string_equal(e.text,
                        "the budget of this workspace for the day, $2.50, has no room for "
                        "this; it begins anew with the next day (UTC), or raise it in "
                        "the settings under 'budgets'");
    const struct budget month = {STR_EMPTY, STR("a"), BUDGET_MONTH, 0, 10};
    assert_false(ledger_reserve(ledger, &month, 1, STR("w"), STR("a"), NOON,
                                (struct amount){0, 11}, &reservation, &e));
    assert_string_equal(e.text,
                        "the budget of this agent for the month, 10 tokens, has no room "
                        "for this; it begins anew with the next month (UTC), or raise it "
                        "in the settings under 'budgets'");
}

/* --- whose budget ------------------------------------------------------------------------- */

static void workspaces_and_agents_have_their_own(void **state) {
    (void)state;
    const struct budget budgets[] = {
        money("", "", BUDGET_DAY, 100),    /* each workspace */
        money("big", "", BUDGET_DAY, 80),  /* and this one less */
        money("", "wally", BUDGET_DAY, 50) /* an agent, in each */
    };
    struct reservation reservation;
    assert_int_equal(room_of(budgets, 3, "w", "a", NOON), 100);
    assert_int_equal(room_of(budgets, 3, "big", "a", NOON), 80);
    assert_int_equal(room_of(budgets, 3, "w", "wally", NOON), 50);
    assert_true(reserve_of(budgets, 3, "w", "wally", NOON, 30, &reservation));
    ledger_settle(&reservation, (struct amount){30, 0});
    assert_int_equal(room_of(budgets, 3, "w", "wally", NOON), 20);
    assert_int_equal(room_of(budgets, 3, "w", "a", NOON), 70);
    assert_int_equal(room_of(budgets, 3, "big", "wally", NOON), 50);
    assert_true(reserve_of(budgets, 3, "w", "a", NOON, 60, &reservation));
    ledger_settle(&reservation, (struct amount){60, 0});
    assert_int_equal(room_of(budgets, 3, "w", "wally", NOON), 10); /* the workspace's is less */
}

/* An agent's budget alone: the others are not limited, but counted for the day that they are.
 */
static void a_workspace_that_a_budget_concerns_is_counted_whole(void **state) {
    (void)state;
    const struct budget agent = money("", "wally", BUDGET_DAY, 50), all = money("", "", 0, 100);
    struct reservation reservation;
    assert_true(reserve_of(&agent, 1, "w", "a", NOON, 1000, &reservation));
    ledger_settle(&reservation, (struct amount){70, 0});
    assert_int_equal(room(&all, NOON), 30);
}

static void nothing_is_kept_of_workspaces_that_no_budget_concerns(void **state) {
    (void)state;
    const struct budget other = money("x", "", BUDGET_DAY, 1);
    struct reservation reservation;
    assert_true(reserve(&other, NOON, 1000, &reservation));
    assert_null(reservation.ledger);
    ledger_settle(&reservation, (struct amount){1000, 0});
    assert_true(reserve_of(NULL, 0, "w", "a", NOON, 1000, &reservation));
    assert_int_equal(ledger_accounts(ledger), 0);
}

/* --- days --------------------------------------------------------------------------------- */

static void day_and_month_turn_over_in_utc(void **state) {
    (void)state;
    const struct budget day = money("", "", BUDGET_DAY, 100);
    const struct budget month = money("", "", BUDGET_MONTH, 1000);
    spend(&day, DAY * DAY_MS, 100);
    assert_int_equal(room(&day, (DAY + 1) * DAY_MS - 1), 0);
    assert_int_equal(room(&month, (DAY + 1) * DAY_MS - 1), 900);
    assert_int_equal(room(&day, (DAY + 1) * DAY_MS), 100); /* the first of December */
    assert_int_equal(room(&month, (DAY + 1) * DAY_MS), 1000);
    spend(&day, (DAY + 1) * DAY_MS, 10);
    assert_int_equal(room(&month, (DAY + 31) * DAY_MS + DAY_MS - 1), 990); /* the 31st */
    assert_int_equal(room(&month, (DAY + 32) * DAY_MS), 1000);
}

static void a_call_belongs_to_the_day_it_began_on(void **state) {
    (void)state;
    const struct budget day = money("", "", BUDGET_DAY, 100);
    const int64_t midnight = (DAY + 1) * DAY_MS;
    struct reservation late;
    assert_true(reserve(&day, midnight - 1, 80, &late));
    assert_int_equal(room(&day, midnight), 20); /* it is out, and may yet cost that */
    ledger_settle(&late, (struct amount){80, 0});
    assert_int_equal(room(&day, midnight), 100);
}

static void a_clock_that_is_set_back_spends_nothing_twice(void **state) {
    (void)state;
    const struct budget day = money("", "", BUDGET_DAY, 100);
    spend(&day, NOON, 60);
    assert_int_equal(room(&day, NOON + DAY_MS), 100);
    spend(&day, NOON + DAY_MS, 10);
    spend(&day, NOON, 50); /* it counts for the later day, which has begun */
    assert_int_equal(room(&day, NOON), 40);
    assert_int_equal(room(&day, NOON + DAY_MS), 40);
}

static void amounts_that_have_no_room_are_refused_or_stay_at_the_largest(void **state) {
    (void)state;
    const struct budget day = money("", "", BUDGET_DAY, 100), agent = money("", "wally", 0, 1);
    struct reservation one, two;
    assert_true(reserve(&agent, NOON, INT64_MAX, &one)); /* nothing limits this agent */
    assert_true(reserve(&agent, NOON, INT64_MAX, &two));
    assert_int_equal(room(&day, NOON), -1);
    ledger_settle(&two, (struct amount){INT64_MAX, INT64_MAX});
    ledger_settle(&one, (struct amount){INT64_MAX, INT64_MAX});
    assert_int_equal(room(&day, NOON), -1);
    assert_int_equal(room(&day, NOON + DAY_MS), 100);
}

/* --- what was spent before ---------------------------------------------------------------- */

static void with_store(void) {
    ledger_free(ledger);
    ledger = ledger_new(some_store(), NULL);
}

static void the_store_is_asked_once_for_the_month(void **state) {
    (void)state;
    const struct budget day = money("", "", BUDGET_DAY, 100);
    const struct budget month = money("", "", BUDGET_MONTH, 100);
    with_store();
    assert_int_equal(asked_count, 0);
    assert_int_equal(room(&day, NOON), 100); /* until it has answered */
    assert_int_equal(asked_count, 1);
    assert_str(asked[0]->workspace, "w");
    assert_int_equal(asked[0]->from_day, DAY - 29);
    struct store_usage before[] = {usage("a", DAY - 1, 20, 0), usage("b", DAY, 30, 0),
                                   usage("a", DAY, 5, 0)};
    answer_with(before, 3);
    assert_int_equal(room(&day, NOON), 65);
    assert_int_equal(room(&month, NOON), 45);
    const struct budget of_a = money("", "a", BUDGET_MONTH, 100);
    assert_int_equal(room(&of_a, NOON), 75);
    assert_int_equal(room(&day, NOON + DAY_MS), 100);
    assert_int_equal(asked_count, 0);
}

static void spending_while_the_store_answers_counts_once(void **state) {
    (void)state;
    const struct budget day = money("", "", BUDGET_DAY, 100);
    struct reservation out;
    with_store();
    assert_true(reserve(&day, NOON, 10, &out));
    spend(&day, NOON, 7);
    answer_with((struct store_usage[]){usage("a", DAY, 50, 0)}, 1);
    assert_int_equal(room(&day, NOON), 100 - 50 - 7 - 10);
    ledger_use(&out, (struct amount){43, 0});
    ledger_settle(&out, (struct amount){43, 0});
    assert_int_equal(room(&day, NOON), 0);
}

static void a_call_that_is_out_goes_on_when_the_answer_is_large(void **state) {
    (void)state;
    const struct budget day = money("", "", BUDGET_DAY, 100);
    struct reservation out;
    with_store();
    assert_true(reserve(&day, NOON, 10, &out));
    answer_with((struct store_usage[]){usage("a", DAY, 95, 0)}, 1);
    ledger_use(&out, (struct amount){11, 0});
    assert_int_equal(out.held.cost_nano, 11);
    ledger_settle(&out, (struct amount){1, 0});
    assert_int_equal(room(&day, NOON), 4);
}

static void estimates_before_a_restart_count_as_well(void **state) {
    (void)state;
    const struct budget day = money("", "", BUDGET_DAY, 100);
    struct store_usage cut = usage("a", DAY, 20, 0);
    cut.estimated = 2;
    cut.estimate_cost_nano = 30;
    with_store();
    spend(&day, NOON, 0);
    answer_with(&cut, 1);
    assert_int_equal(room(&day, NOON), 50);
}

static void a_store_that_failed_is_asked_again_and_nothing_counts_twice(void **state) {
    (void)state;
    const struct budget day = money("", "", BUDGET_DAY, 100);
    struct reservation out;
    with_store();
    spend(&day, NOON, 10);
    assert_int_equal(asked_count, 1);
    refuse_answer();
    assert_true(reserve(&day, NOON, 0, &out)); /* asks again: those 10 are in the log by now */
    ledger_settle(&out, (struct amount){5, 0});
    answer_with((struct store_usage[]){usage("a", DAY, 40 + 10, 0)}, 1);
    assert_int_equal(room(&day, NOON), 100 - 40 - 10 - 5);
    assert_int_equal(asked_count, 0);
}

static void the_answer_of_a_month_that_is_over_counts_for_nothing(void **state) {
    (void)state;
    const struct budget month = money("", "", BUDGET_MONTH, 100);
    with_store();
    spend(&month, NOON, 10);
    spend(&month, NOON + DAY_MS, 1); /* the first of December */
    answer_with((struct store_usage[]){usage("a", DAY, 60, 0), usage("a", DAY + 1, 2, 0)}, 2);
    assert_int_equal(room(&month, NOON + DAY_MS), 97);
}

static void a_ledger_may_end_before_the_store_answers(void **state) {
    (void)state;
    const struct budget day = money("", "", BUDGET_DAY, 100);
    with_store();
    spend(&day, NOON, 10);
    ledger_free(ledger);
    ledger = NULL;
    answer_with(NULL, 0);
    assert_int_equal(asked_count, 0);
}

static void workspaces_that_rest_are_forgotten_and_read_again(void **state) {
    (void)state;
    const struct budget day = money("", "", BUDGET_DAY, 100);
    struct reservation out;
    enum { MANY = 40000, PAUSE_MS = 20 };
    with_store();
    assert_true(reserve_of(&day, 1, "busy", "a", NOON, 10, &out));
    answer_with(NULL, 0);
    size_t most = 0;
    for (int i = 0; i < MANY; i++) {
        char name[16];
        struct reservation reservation;
        snprintf(name, sizeof(name), "w%d", i);
        assert_true(reserve_of(&day, 1, name, "a", NOON + i * PAUSE_MS, 10, &reservation));
        if (i) answer_with(NULL, 0); /* later ones are asked while the first one still waits */
        ledger_settle(&reservation, (struct amount){10, 0});
        if (ledger_accounts(ledger) > most) most = ledger_accounts(ledger);
        if (i == 0) answer_with(NULL, 0);
    }
    assert_in_range(most, 1000, 5000);
    int64_t later = NOON + (int64_t)MANY * PAUSE_MS;
    assert_int_equal(room_of(&day, 1, "busy", "a", later), 90); /* a call of it is out */
    assert_int_equal(asked_count, 0);
    assert_int_equal(room_of(&day, 1, "w0", "a", later), 100);
    assert_int_equal(asked_count, 1); /* forgotten, and asked for */
    answer_with((struct store_usage[]){usage("a", DAY, 10, 0)}, 1);
    assert_int_equal(room_of(&day, 1, "w0", "a", later), 90);
    ledger_settle(&out, (struct amount){0});
}

/* --- calls that may wait ------------------------------------------------------------------ */

enum { LINE_MAX_CALLS = 1200 };

static struct caller {
    struct ledger_wait wait;
    enum ledger_answer answer;
    bool answered, refused;
} callers[LINE_MAX_CALLS];

static struct loop *loop;

static void on_answered(const struct err *refused, void *ctx) {
    struct caller *caller = ctx;
    assert_false(caller->answered);
    caller->answered = true;
    caller->refused = refused != NULL;
    if (refused) assert_int_equal(refused->code, ERR_RESOURCE_EXHAUSTED);
}

static int setup_line(void **state) {
    loop = loop_new_fake();
    memset(callers, 0, sizeof(callers));
    return setup(state);
}

static int teardown_line(void **state) {
    teardown(state);
    loop_free(loop);
    return 0;
}

/* One whose prompt costs 1, and at most `most`; 0: unknown. */
static struct caller *ask_as(size_t nth, const char *agent, const struct budget *budget,
                             int64_t most) {
    struct caller *caller = &callers[nth];
    *caller = (struct caller){0};
    caller->wait = (struct ledger_wait){
        .call = {.workspace = STR("w"),
                 .agent = str_from(agent),
                 .model = STR("m"),
                 .budgets = budget,
                 .budget_count = 1,
                 .unix_ms = NOON,
                 .prompt = {1, 1},
                 .most = {most, most ? 10 : 0},
                 .priced = true},
        .loop = loop,
        .answered = on_answered,
        .ctx = caller,
    };
    caller->answer = ledger_ask(ledger, &caller->wait, &e);
    return caller;
}

static struct caller *ask(size_t nth, const struct budget *budget, int64_t most) {
    return ask_as(nth, "a", budget, most);
}

static bool is_out(struct caller *caller) {
    loop_turn(loop);
    return caller->answer == LEDGER_GRANTED || (caller->answered && !caller->refused);
}

static void end_call(struct caller *caller, int64_t cost) {
    assert_true(is_out(caller));
    ledger_learn(ledger, caller->wait.call.agent, STR("m"), (struct amount){cost, 1});
    ledger_settle(&caller->wait.reserved, (struct amount){cost, 1});
}

static void calls_of_unknown_cost_go_one_by_one(void **state) {
    (void)state;
    const struct budget budget = money("", "", BUDGET_DAY, 100);
    struct caller *one = ask(0, &budget, 0), *two = ask(1, &budget, 0);
    assert_true(is_out(one));
    assert_int_equal(two->answer, LEDGER_WAITS);
    assert_false(is_out(two));
    end_call(one, 30);
    assert_true(is_out(two));
    end_call(two, 30);
    assert_int_equal(room(&budget, NOON), 40);
}

static void until_enough_are_known_the_longest_answer_is_reserved(void **state) {
    (void)state;
    const struct budget budget = money("", "", BUDGET_DAY, 100);
    struct caller *one = ask(0, &budget, 40), *two = ask(1, &budget, 40),
                  *three = ask(2, &budget, 40);
    assert_true(is_out(one) && is_out(two));
    assert_false(is_out(three));
    assert_int_equal(one->wait.reserved.held.cost_nano, 40);
    end_call(one, 5);
    assert_true(is_out(three));
    end_call(two, 5);
    end_call(three, 5);
}

static void then_what_they_usually_cost(void **state) {
    (void)state;
    const struct budget budget = money("", "", BUDGET_DAY, 1000);
    for (int i = 0; i < 19; i++) end_call(ask(0, &budget, 500), 10);
    assert_int_equal(ask(0, &budget, 500)->wait.reserved.held.cost_nano, 500);
    end_call(&callers[0], 10);
    size_t begun = 0;
    while (ask(begun, &budget, 500)->answer == LEDGER_GRANTED) begun++;
    assert_int_equal(begun, 80); /* of 800 that are left */
    assert_int_equal(callers[0].wait.reserved.held.cost_nano, 10);
    for (size_t i = 0; i < begun; i++) end_call(&callers[i], 10);
    loop_turn(loop);
    assert_true(callers[begun].refused); /* all is spent: it would have waited for nothing */
    assert_int_equal(room(&budget, NOON), 0);
}

static void alone_a_call_begins_whose_usual_cost_fits(void **state) {
    (void)state;
    const struct budget budget = money("", "", BUDGET_DAY, 100);
    end_call(ask(0, &budget, 90), 40);
    struct caller *one = ask(0, &budget, 90), *two = ask(1, &budget, 90);
    assert_true(is_out(one)); /* 60 are left */
    assert_int_equal(one->wait.reserved.held.cost_nano, 40);
    assert_false(is_out(two));
    end_call(one, 40);
    loop_turn(loop);
    assert_true(two->refused); /* 20 are */
}

static void a_request_that_never_fits_is_refused_at_once(void **state) {
    (void)state;
    const struct budget budget = money("", "", BUDGET_DAY, 100);
    spend(&budget, NOON, 100);
    assert_int_equal(ask(0, &budget, 5)->answer, LEDGER_REFUSED);
    assert_int_equal(e.code, ERR_RESOURCE_EXHAUSTED);
    assert_null(callers[0].wait.reserved.ledger);
}

static void a_dear_call_is_not_passed_by_cheap_ones_of_its_agent(void **state) {
    (void)state;
    const struct budget budget = money("", "", BUDGET_DAY, 100);
    struct caller *one = ask(0, &budget, 60), *dear = ask(1, &budget, 80),
                  *cheap = ask(2, &budget, 10), *other = ask_as(3, "b", &budget, 10);
    assert_true(is_out(one) && is_out(other));
    assert_false(is_out(dear) || is_out(cheap));
    end_call(other, 1);
    end_call(one, 1);
    assert_true(is_out(dear) && is_out(cheap));
    end_call(dear, 1);
    end_call(cheap, 1);
}

static void a_turn_that_stops_waiting_lets_the_next_one_in(void **state) {
    (void)state;
    const struct budget budget = money("", "", BUDGET_DAY, 100);
    struct caller *one = ask(0, &budget, 60), *two = ask(1, &budget, 80),
                  *three = ask(2, &budget, 40);
    assert_false(is_out(two) || is_out(three));
    assert_true(ledger_withdraw(&two->wait));
    assert_true(is_out(three));
    assert_false(ledger_withdraw(&two->wait));
    assert_false(two->answered);
    end_call(one, 1);
    end_call(three, 1);
}

static void no_more_than_so_many_wait(void **state) {
    (void)state;
    const struct budget budget = money("", "", BUDGET_DAY, 100);
    struct caller *out = ask(0, &budget, 0);
    for (size_t i = 1; i <= LEDGER_WAITERS_MAX; i++)
        assert_int_equal(ask(i, &budget, 0)->answer, LEDGER_WAITS);
    assert_int_equal(ask(LEDGER_WAITERS_MAX + 1, &budget, 0)->answer, LEDGER_REFUSED);
    assert_int_equal(e.code, ERR_RESOURCE_EXHAUSTED);
    for (size_t i = 1; i <= LEDGER_WAITERS_MAX; i++)
        assert_true(ledger_withdraw(&callers[i].wait));
    end_call(out, 1);
}

static void a_model_without_a_price_does_not_wait_for_money(void **state) {
    (void)state;
    const struct budget budget = money("", "", BUDGET_DAY, 100);
    struct caller *one = &callers[0], *two = &callers[1];
    for (size_t i = 0; i < 2; i++) {
        callers[i].wait = (struct ledger_wait){.call = {.workspace = STR("w"),
                                                        .agent = STR("a"),
                                                        .model = STR("m"),
                                                        .budgets = &budget,
                                                        .budget_count = 1,
                                                        .unix_ms = NOON,
                                                        .prompt = {0, 5}},
                                               .loop = loop,
                                               .answered = on_answered};
        assert_int_equal(ledger_ask(ledger, &callers[i].wait, &e), LEDGER_GRANTED);
    }
    ledger_settle(&one->wait.reserved, (struct amount){0});
    ledger_settle(&two->wait.reserved, (struct amount){0});
}

/* K33: spent <= cap + calls out x (dearest call - reservation), and it can be all of that: a
 * model that suddenly bills what nobody saw it say. */
static void the_worst_overshoot_is_what_the_formula_says(void **state) {
    (void)state;
    const int64_t cap = 1000, usual = 10, dearest = 100;
    const struct budget budget = money("", "", BUDGET_DAY, cap);
    int64_t all = 0;
    for (int i = 0; i < 20; i++, all += usual) end_call(ask(0, &budget, dearest), usual);
    size_t out_at_once = 0;
    while (ask(out_at_once, &budget, dearest)->answer == LEDGER_GRANTED) out_at_once++;
    for (size_t i = 0; i < out_at_once; i++, all += dearest) end_call(&callers[i], dearest);
    loop_turn(loop);
    assert_true(callers[out_at_once].refused);
    assert_int_equal(out_at_once, 80);
    assert_int_equal(all, cap + (int64_t)out_at_once * (dearest - usual));
    assert_int_equal(ask(0, &budget, dearest)->answer, LEDGER_REFUSED);
}

/* --- against a simple model --------------------------------------------------------------- */

enum { WORKSPACES = 3, AGENTS = 3, OUT = 8, SPENT_MAX = 40000 };
static const char *const workspaces[] = {"w", "x", "yy"};
static const char *const agents[] = {"a", "b", "wally"};

static struct model_call {
    int workspace, agent;
    int64_t day;
    struct amount amount;
    struct reservation reservation;
    bool out;
} out[OUT], spent[SPENT_MAX];
static size_t spent_count;

static bool same_period(enum budget_period period, int64_t a, int64_t b) {
    if (period == BUDGET_DAY) return a == b;
    time_t at[] = {(time_t)(a * 86400), (time_t)(b * 86400)};
    struct tm date[2];
    gmtime_r(&at[0], &date[0]);
    gmtime_r(&at[1], &date[1]);
    return date[0].tm_year == date[1].tm_year && date[0].tm_mon == date[1].tm_mon;
}

static bool model_concerns(const struct budget *budget, int workspace, int agent) {
    return (!budget->workspace.len ||
            str_equal(budget->workspace, str_from(workspaces[workspace]))) &&
           (!budget->agent.len || str_equal(budget->agent, str_from(agents[agent])));
}

/* Everything that was spent in the budget's period, and all that is out, and `more`. */
static bool model_fits(const struct budget *budget, int workspace, int agent, int64_t day,
                       struct amount more) {
    struct amount sum = more;
    for (size_t i = 0; i < spent_count; i++) {
        if (spent[i].workspace != workspace) continue;
        if (budget->agent.len && spent[i].agent != agent) continue;
        if (same_period(budget->period, spent[i].day, day))
            sum = amount_add(sum, spent[i].amount);
    }
    for (size_t i = 0; i < OUT; i++) {
        if (!out[i].out || out[i].workspace != workspace) continue;
        if (budget->agent.len && out[i].agent != agent) continue;
        sum = amount_add(sum, out[i].amount);
    }
    return (!budget->cost_nano_max || sum.cost_nano <= budget->cost_nano_max) &&
           (!budget->tokens_max || sum.tokens <= budget->tokens_max);
}

static bool model_accepts(const struct budget *budgets, size_t count, int workspace, int agent,
                          int64_t day, struct amount more) {
    for (size_t i = 0; i < count; i++) {
        if (model_concerns(&budgets[i], workspace, agent) &&
            !model_fits(&budgets[i], workspace, agent, day, more))
            return false;
    }
    return true;
}

static struct amount small_amount(void) {
    return (struct amount){rand() % 60, rand() % 6};
}

static int64_t more_of(int64_t used, int64_t held) {
    return used > held ? used - held : 0;
}

static void random_calls_are_judged_as_a_simple_model_judges_them(void **state) {
    (void)state;
    const struct budget budgets[] = {
        {STR_EMPTY, STR_EMPTY, BUDGET_DAY, 400, 0},
        {STR_EMPTY, STR_EMPTY, BUDGET_MONTH, 0, 600},
        {STR("x"), STR_EMPTY, BUDGET_DAY, 300, 0},
        {STR_EMPTY, STR("wally"), BUDGET_MONTH, 2500, 90},
        {STR("yy"), STR("a"), BUDGET_DAY, 0, 20},
    };
    const size_t count = ARRAY_LEN(budgets);
    int64_t now = NOON;
    size_t accepted = 0, refused = 0, grown = 0;
    srand(7);
    for (int step = 0; step < 60000; step++) {
        struct model_call *call = &out[rand() % OUT];
        struct amount amount = small_amount();
        if (step % 500 == 499) now += rand() % (3 * DAY_MS);
        if (!call->out) {
            call->workspace = rand() % WORKSPACES;
            call->agent = rand() % AGENTS;
            call->day = now / DAY_MS;
            bool fits =
                model_accepts(budgets, count, call->workspace, call->agent, call->day, amount);
            assert_int_equal(ledger_reserve(ledger, budgets, count,
                                            str_from(workspaces[call->workspace]),
                                            str_from(agents[call->agent]), now, amount,
                                            &call->reservation, &e),
                             fits);
            fits ? accepted++ : refused++;
            call->out = fits;
            call->amount = amount;
        } else if (rand() % 3) {
            struct amount used = amount_add(call->amount, small_amount());
            if (rand() % 2) used.cost_nano /= 2;
            struct amount more = {more_of(used.cost_nano, call->amount.cost_nano),
                                  more_of(used.tokens, call->amount.tokens)};
            ledger_use(&call->reservation, used);
            call->amount = amount_add(call->amount, more);
            grown += more.cost_nano || more.tokens;
        } else {
            assert_true(spent_count < SPENT_MAX);
            spent[spent_count] = *call;
            spent[spent_count].amount = amount;
            if (amount.cost_nano % 7 == 0) spent[spent_count].amount.cost_nano *= 9;
            ledger_settle(&call->reservation, spent[spent_count++].amount);
            call->out = false;
        }
    }
    assert_true(accepted > 1000 && refused > 1000 && grown > 1000);
    for (size_t i = 0; i < OUT; i++) {
        if (out[i].out) ledger_settle(&out[i].reservation, (struct amount){0});
    }
}

/* --- threads ------------------------------------------------------------------------------ */

enum { CALLS = 20000 };
static const struct budget shared[] = {
    {STR_INIT("one"), STR_INIT(""), BUDGET_DAY, 1000, 0},
    {STR_INIT(""), STR_INIT("wally"), BUDGET_DAY, 100000, 0}};

static void *make_calls(void *ctx) {
    int64_t *total = ctx;
    for (int i = 0; i < CALLS; i++) {
        char name[16];
        struct err why;
        struct reservation reservation;
        snprintf(name, sizeof(name), "w%d", i % 64);
        struct str workspace = i % 2 ? STR("one") : str_from(name);
        if (!ledger_reserve(ledger, shared, 2, workspace, STR("a"), NOON, (struct amount){3, 1},
                            &reservation, &why))
            continue;
        ledger_use(&reservation, (struct amount){3, 2});
        if (i % 2) *total += 3;
        ledger_settle(&reservation, (struct amount){3, 0});
    }
    return NULL;
}

static void threads_together_never_spend_more_than_there_is(void **state) {
    (void)state;
    pthread_t thread[3];
    int64_t total[3] = {0};
    for (size_t i = 0; i < 3; i++) pthread_create(&thread[i], NULL, make_calls, &total[i]);
    for (size_t i = 0; i < 3; i++) pthread_join(thread[i], NULL);
    int64_t sum = total[0] + total[1] + total[2];
    assert_in_range(sum, 998, 1000); /* less than a call is left */
    assert_int_equal(room_of(shared, 2, "one", "a", NOON), 1000 - sum);
    assert_int_equal(ledger_accounts(ledger), 33);
}

/* --- among replicas ----------------------------------------------------------------------- */

static void what_other_replicas_spend_is_read_a_second_later(void **state) {
    (void)state;
    const struct budget day = money("", "", BUDGET_DAY, 100);
    living = 2;
    with_store();
    assert_int_equal(room(&day, NOON), 100);
    answer_with((struct store_usage[]){usage("a", DAY, 20, 0)}, 1);
    spend(&day, NOON, 7);
    assert_int_equal(room(&day, NOON + 999), 73);
    assert_int_equal(asked_count, 0);
    assert_int_equal(room(&day, NOON + 1000), 73);
    assert_int_equal(asked_count, 1);
    spend(&day, NOON + 1500, 1);
    answer_with((struct store_usage[]){usage("a", DAY, 57, 0)}, 1); /* 30 are another's */
    assert_int_equal(room(&day, NOON + 1999), 42);
    assert_int_equal(asked_count, 0);
    assert_int_equal(room(&day, NOON + 2000), 42);
    refuse_answer(); /* nothing is forgotten, and it is asked again */
    assert_int_equal(room(&day, NOON + 2001), 42);
    answer_with((struct store_usage[]){usage("a", DAY, 58, 0)}, 1);
    assert_int_equal(room(&day, NOON + 2001), 42);
}

static void alone_the_store_is_asked_once(void **state) {
    (void)state;
    const struct budget day = money("", "", BUDGET_DAY, 100);
    with_store();
    assert_int_equal(room(&day, NOON), 100);
    answer_with((struct store_usage[]){usage("a", DAY, 20, 0)}, 1);
    assert_int_equal(room(&day, NOON + 60000), 80);
    assert_int_equal(asked_count, 0);
}

/* Each of four may reserve a quarter of what is left, or one call. */
static void each_replica_reserves_its_share(void **state) {
    (void)state;
    const struct budget budget = money("", "", BUDGET_DAY, 100);
    living = 4;
    with_store();
    struct caller *one = ask(0, &budget, 20), *two = ask(1, &budget, 5),
                  *three = ask(2, &budget, 1);
    assert_false(is_out(one)); /* what was spent before is not known yet */
    answer_with(NULL, 0);
    assert_true(is_out(one) && is_out(two)); /* 25 of 100 */
    assert_false(is_out(three));
    end_call(two, 1);
    assert_true(is_out(three));
    end_call(one, 20);
    end_call(three, 1);
    struct caller *dear = ask(3, &budget, 70), *cheap = ask(4, &budget, 1);
    assert_true(is_out(dear)); /* it is the only one of this replica */
    assert_false(is_out(cheap));
    end_call(dear, 10);
    assert_true(is_out(cheap));
    end_call(cheap, 1);
}

static void a_wait_makes_only_the_moves_of_its_table(void **state) {
    (void)state;
    static const char *const rows[LEDGER_WAIT_STATE_COUNT] = {
        [LEDGER_WAIT_NONE] = ".#.",
        [LEDGER_WAITING] = "#.#",
        [LEDGER_WAIT_ANSWERED] = "#..",
    };
    for (enum ledger_wait_state from = 0; from < LEDGER_WAIT_STATE_COUNT; from++) {
        for (enum ledger_wait_state to = 0; to < LEDGER_WAIT_STATE_COUNT; to++)
            assert_int_equal(states_allow(ledger_wait_states, from, to), rows[from][to] == '#');
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define LINE(name) cmocka_unit_test_setup_teardown(name, setup_line, teardown_line)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(two_calls_at_once_cannot_spend_the_last_cent),
        TEST(reserved_amounts_that_are_not_spent_are_given_back),
        TEST(a_call_that_grows_leaves_less_to_others_and_goes_on),
        TEST(a_call_that_cost_more_than_anybody_thought_leaves_no_room),
        TEST(money_and_tokens_are_limited_each_by_itself),
        TEST(a_refusal_says_whose_budget_how_much_and_when),
        TEST(workspaces_and_agents_have_their_own),
        TEST(a_workspace_that_a_budget_concerns_is_counted_whole),
        TEST(nothing_is_kept_of_workspaces_that_no_budget_concerns),
        TEST(day_and_month_turn_over_in_utc),
        TEST(a_call_belongs_to_the_day_it_began_on),
        TEST(a_clock_that_is_set_back_spends_nothing_twice),
        TEST(amounts_that_have_no_room_are_refused_or_stay_at_the_largest),
        TEST(the_store_is_asked_once_for_the_month),
        TEST(spending_while_the_store_answers_counts_once),
        TEST(a_call_that_is_out_goes_on_when_the_answer_is_large),
        TEST(estimates_before_a_restart_count_as_well),
        TEST(a_store_that_failed_is_asked_again_and_nothing_counts_twice),
        TEST(the_answer_of_a_month_that_is_over_counts_for_nothing),
        TEST(a_ledger_may_end_before_the_store_answers),
        TEST(workspaces_that_rest_are_forgotten_and_read_again),
        TEST(a_wait_makes_only_the_moves_of_its_table),
        LINE(calls_of_unknown_cost_go_one_by_one),
        LINE(until_enough_are_known_the_longest_answer_is_reserved),
        LINE(then_what_they_usually_cost),
        LINE(alone_a_call_begins_whose_usual_cost_fits),
        LINE(a_request_that_never_fits_is_refused_at_once),
        LINE(a_dear_call_is_not_passed_by_cheap_ones_of_its_agent),
        LINE(a_turn_that_stops_waiting_lets_the_next_one_in),
        LINE(no_more_than_so_many_wait),
        LINE(a_model_without_a_price_does_not_wait_for_money),
        LINE(the_worst_overshoot_is_what_the_formula_says),
        TEST(what_other_replicas_spend_is_read_a_second_later),
        TEST(alone_the_store_is_asked_once),
        LINE(each_replica_reserves_its_share),
        TEST(random_calls_are_judged_as_a_simple_model_judges_them),
        TEST(threads_together_never_spend_more_than_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
