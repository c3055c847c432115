#include "job/expense.h"

#include "base/clock.h"

#define REPORT_BYTES 1024 /* the ledger is updated in steps of this size */

static const struct price *price_now(const struct expense *expense, struct str model) {
    const struct price_book *prices = expense->engine->prices;
    return prices ? price_find(prices, model, clock_unix_ms()) : NULL;
}

struct amount expense_amount(const struct price *price, size_t prompt_bytes,
                             int64_t output_tokens) {
    struct event_usage guess = USAGE_UNKNOWN;
    guess.prompt = expense_tokens(prompt_bytes);
    guess.completion = output_tokens;
    int64_t cost = price ? price_of(price, &guess) : 0;
    return (struct amount){cost == TOKENS_UNKNOWN ? 0 : cost, guess.prompt + guess.completion};
}

static struct amount amount_of(const struct expense *expense, size_t reply_bytes) {
    return expense_amount(price_now(expense, expense->model), expense->asked_bytes,
                          reply_bytes ? expense_tokens(reply_bytes) : 0);
}

bool expense_reserve(struct expense *expense, struct str workspace, struct str agent,
                     struct err *e) {
    const struct engine *engine = expense->engine;
    if (!engine->ledger) return true;
    struct amount wanted = amount_of(expense, expense->reply_tokens * BYTES_A_TOKEN);
    ledger_usual(engine->ledger, agent, expense->model, &wanted);
    return ledger_reserve(engine->ledger, engine->budgets, engine->budget_count, workspace,
                          agent, clock_unix_ms(), wanted, &expense->reserved, e);
}

void expense_use(struct expense *expense, size_t bytes) {
    expense->answered = true;
    expense->came_bytes += bytes;
    if (!expense->reserved.ledger ||
        expense->came_bytes - expense->reported_bytes < REPORT_BYTES)
        return;
    expense->reported_bytes = expense->came_bytes;
    ledger_use(&expense->reserved, amount_of(expense, expense->came_bytes));
}

static struct amount spent(const struct expense *expense, const struct event_usage *usage) {
    int64_t tokens = usage->total;
    if (tokens == TOKENS_UNKNOWN && usage->prompt != TOKENS_UNKNOWN &&
        usage->completion != TOKENS_UNKNOWN)
        tokens = usage->prompt + usage->completion;
    if (tokens == TOKENS_UNKNOWN)
        return expense->answered ? amount_of(expense, expense->came_bytes) : (struct amount){0};
    return (struct amount){usage->cost_nano == TOKENS_UNKNOWN ? 0 : usage->cost_nano, tokens};
}

/* Estimate the counts that the provider did not report. */
static void estimate(const struct expense *expense, struct event_usage *usage) {
    struct event_usage all = USAGE_UNKNOWN;
    if (usage->prompt >= 0 && usage->completion >= 0) return;
    all.prompt = usage->prompt >= 0 ? usage->prompt : expense_tokens(expense->asked_bytes);
    all.completion = expense->came_bytes ? expense_tokens(expense->came_bytes) : 0;
    if (usage->completion >= 0) all.completion = usage->completion;
    const struct price *price = price_now(expense, usage->model);
    usage->estimated = true;
    usage->estimate_prompt = all.prompt;
    usage->estimate_completion = all.completion;
    usage->estimate_cost_nano = price ? price_of(price, &all) : TOKENS_UNKNOWN;
}

void expense_settle(struct expense *expense, struct event_usage *usage) {
    if (usage->model.len == 0) usage->model = expense->model;
    const struct price *price = price_now(expense, usage->model);
    if (price && usage->cost_nano == TOKENS_UNKNOWN) usage->cost_nano = price_of(price, usage);
    if (usage->total == TOKENS_UNKNOWN && expense->answered) estimate(expense, usage);
    struct amount used = spent(expense, usage);
    if (expense->reserved.ledger && usage->total >= 0)
        ledger_learn(expense->engine->ledger, expense->reserved.agent, expense->model, used);
    ledger_settle(&expense->reserved, used);
    expense->reserved = (struct reservation){0};
}

void expense_drop(struct expense *expense) {
    if (expense->reserved.ledger) ledger_settle(&expense->reserved, (struct amount){0});
    expense->reserved = (struct reservation){0};
}
