/* Only the provider counts tokens, and only at the end. Until then four bytes of text count as
 * one token, which is close enough for an agent's limits and for a reservation. */
#include "turn/spending.h"

#include "base/clock.h"
#include "base/mem.h"
#include "budget/account.h"
#include "job/expense.h"
#include "turn/turn.h"

#include <stdlib.h>

#define BUDGET_WAIT_MS (60 * 1000) /* at most, for calls that hold what is left of a budget */

/* What the calls of a run hold of budgets. */
struct budgeted {
    struct reservation reserved; /* for the call in flight */
    struct ledger_wait wait;     /* its place in the queue for a budget */
    bool waits;                  /* in that queue: holds a reference until the answer */
    struct timer limit;          /* ends that wait */
};

/* With the history, also where the model does not read it. */
static size_t prompt_bytes(const struct run *run) {
    const struct provider_request *asked = &run->model_round.request;
    size_t bytes = asked->system.len + asked->schema.len;
    if (run->seen_hidden) bytes += run->seen->prompt_bytes;
    for (size_t i = 0; i < asked->message_count; i++) {
        bytes += asked->messages[i].text.len + asked->messages[i].tool.len;
    }
    for (size_t i = 0; i < asked->tool_count; i++) {
        const struct tool_offer *tool = &asked->tools[i];
        bytes += tool->name.len + tool->description.len + tool->parameters.len;
    }
    return bytes;
}

static const struct price *price_now(const struct run *run, struct str model) {
    const struct price_book *prices = run->record.engine->prices;
    if (!prices) return NULL;
    if (model.len == 0) model = run->agent->model;
    return price_find(prices, model, clock_unix_ms());
}

static struct amount used_so_far(const struct run *run) {
    int64_t output =
        run->spending.output_bytes ? expense_tokens(run->spending.output_bytes) : 0;
    return expense_amount(price_now(run, run->model_round.request.model),
                          run->spending.prompt_bytes, output);
}

/* --- limits of an agent ------------------------------------------------------------------- */

static bool is_over(int64_t used, int64_t max) {
    return max && used >= max;
}

/* Whether the turn would be within its limits after using `more`. */
static bool check_limits(struct run *run, struct amount more) {
    const struct agent_limits *limits = &run->agent->limits;
    struct amount used = amount_add(run->spending.spent, more);
    if (is_over(used.tokens, limits->tokens_max)) {
        run_fail(run, ERR_RESOURCE_EXHAUSTED, STR("TOKENS"),
                 STR("the turn used more tokens than its limit allows"));
        return false;
    }
    if (is_over(used.cost_nano, limits->cost_nano_max)) {
        run_fail(run, ERR_RESOURCE_EXHAUSTED, STR("COST"),
                 STR("the turn cost more than its limit allows"));
        return false;
    }
    return true;
}

bool run_limits_allow(const struct run *run, uint64_t prompt_len, uint64_t output_len) {
    const struct agent_limits *limits = &run->agent->limits;
    struct amount more = expense_amount(price_now(run, run->agent->model), (size_t)prompt_len,
                                        expense_tokens((size_t)output_len));
    struct amount used = amount_add(run->spending.spent, more);
    return !is_over(used.tokens, limits->tokens_max) &&
           !is_over(used.cost_nano, limits->cost_nano_max);
}

/* --- before a call and while it is out ---------------------------------------------------- */

/* NULL: nothing was reserved for the call in flight. */
static struct reservation *reserved_of(const struct run *run) {
    struct budgeted *budgeted = run->spending.budgeted;
    return budgeted && budgeted->reserved.ledger ? &budgeted->reserved : NULL;
}

/* The queue has granted it. */
static void hold(struct run *run) {
    run->spending.budgeted->reserved = run->spending.budgeted->wait.reserved;
    run->spending.usage_due = true;
}

static void budget_refuses(struct run *run, const struct err *why) {
    if (!run_give_up_compaction(run)) run_fail(run, why->code, STR("BUDGET"), err_text(why));
}

static void spending_on_answer(const struct err *refused, void *ctx) {
    struct run *run = ctx;
    struct budgeted *budgeted = run->spending.budgeted;
    budgeted->waits = false;
    timer_stop(&budgeted->limit);
    if (run->ending_begun) { /* cancelled while the answer was on its way */
        ledger_settle(&budgeted->wait.reserved, (struct amount){0});
    } else if (refused) {
        budget_refuses(run, refused);
    } else {
        hold(run);
        run_make_call(run);
    }
    run_unref(run);
}

static struct ledger_call call_of(const struct run *run) {
    const struct engine *engine = run->record.engine;
    const struct provider_request *asked = &run->model_round.request;
    int64_t longest = asked->options ? asked->options->output_tokens_max : 0;
    const struct price *price = price_now(run, asked->model);
    struct amount most = {0};
    if (longest) most = expense_amount(price, run->spending.prompt_bytes, longest);
    return (struct ledger_call){.workspace = run->request.name.workspace,
                                .agent = run->agent->slug,
                                .model = asked->model,
                                .budgets = engine->budgets,
                                .budget_count = engine->budget_count,
                                .unix_ms = clock_unix_ms(),
                                .prompt = expense_amount(price, run->spending.prompt_bytes, 0),
                                .most = most,
                                .priced = price != NULL};
}

static void wait_for_budget(struct run *run) {
    run_ref(run);
    run->spending.budgeted->waits = true;
    timer_start(&run->spending.budgeted->limit, BUDGET_WAIT_MS);
    if (run->state != RUN_ASKING) run_move(run, RUN_ASKING);
}

/* If an answer is on its way, that counts. */
static void reserved_too_late(void *ctx) {
    struct run *run = ctx;
    struct err why;
    if (!ledger_withdraw(&run->spending.budgeted->wait)) return;
    run->spending.budgeted->waits = false;
    err_set(&why, ERR_RESOURCE_EXHAUSTED,
            "other calls hold what is left of the budget, and did not end in time; try again "
            "later, or raise it in the settings under 'budgets'");
    budget_refuses(run, &why);
    run_unref(run);
}

static struct budgeted *budgeted_new(struct run *run) {
    struct budgeted *budgeted = MEM_NEW(struct budgeted);
    timer_init(&budgeted->limit, run->record.host->loop, reserved_too_late, run);
    return budgeted;
}

bool run_reserve(struct run *run) {
    struct spending *spending = &run->spending;
    struct ledger *ledger = run->record.engine->ledger;
    struct err e;
    spending->prompt_bytes = prompt_bytes(run);
    spending->output_bytes = spending->output_checked = 0;
    spending->thinking_bytes = 0;
    if (spending->budgeted) spending->budgeted->reserved = (struct reservation){0};
    if (!check_limits(run, (struct amount){0})) return false;
    if (!ledger || run->record.engine->budget_count == 0) {
        spending->usage_due = true;
        return true;
    }
    if (!spending->budgeted) spending->budgeted = budgeted_new(run);
    spending->budgeted->wait = (struct ledger_wait){.call = call_of(run),
                                                    .loop = run->record.host->loop,
                                                    .answered = spending_on_answer,
                                                    .ctx = run};
    switch (ledger_ask(ledger, &spending->budgeted->wait, &e)) {
    case LEDGER_GRANTED: hold(run); return true;
    case LEDGER_REFUSED: budget_refuses(run, &e); return false;
    case LEDGER_WAITS: wait_for_budget(run); return false;
    }
    return false;
}

void run_stop_reserving(struct run *run) {
    struct budgeted *budgeted = run->spending.budgeted;
    if (!budgeted) return;
    timer_stop(&budgeted->limit);
    if (!budgeted->waits || !ledger_withdraw(&budgeted->wait)) return;
    budgeted->waits = false;
    run_unref(run);
}

void spending_done(struct run *run) {
    free(run->spending.budgeted);
}

bool run_is_watched(const struct run *run) {
    const struct agent_limits *limits = &run->agent->limits;
    return reserved_of(run) || limits->tokens_max || limits->cost_nano_max;
}

bool run_use_step(struct run *run) {
    if (!run->spending.usage_due || run->spending.usage_noted)
        return true; /* it was counted already */
    run->spending.output_checked = run->spending.output_bytes;
    if (!run_is_watched(run)) return true;
    struct amount used = used_so_far(run);
    if (!check_limits(run, used)) return false;
    struct reservation *reserved = reserved_of(run);
    if (reserved) ledger_use(reserved, used);
    return true;
}

/* --- after it ----------------------------------------------------------------------------- */

static int64_t sum(int64_t a, int64_t b) {
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

/* The total that the provider reported, or nothing. */
static int64_t spending_counted(const struct event_usage *usage) {
    if (usage->total >= 0) return usage->total;
    if (usage->prompt < 0 || usage->completion < 0) return TOKENS_UNKNOWN;
    return sum(usage->prompt, usage->completion);
}

/* `usage`, with estimates from the bytes sent and received where the provider reported
 * nothing. */
static struct event_usage completed(const struct run *run, const struct event_usage *usage) {
    struct event_usage all = *usage;
    size_t received = run->spending.output_bytes;
    int64_t thoughts = 0;
    if (all.thoughts >= 0) { /* they were counted, whether or not they were shown */
        received -= run->spending.thinking_bytes;
        thoughts = all.thoughts;
    }
    if (all.prompt < 0) all.prompt = expense_tokens(run->spending.prompt_bytes);
    if (all.completion < 0)
        all.completion = sum(received ? expense_tokens(received) : 0, thoughts);
    return all;
}

/* Estimate what was not counted, as closely as possible. */
static void spending_estimate(const struct run *run, const struct price *price,
                              struct event_usage *usage) {
    if (spending_counted(usage) >= 0) return;
    const struct event_usage all = completed(run, usage);
    usage->estimated = true;
    usage->estimate_prompt = all.prompt;
    usage->estimate_completion = all.completion;
    usage->estimate_cost_nano = price_of(price, &all);
}

/* What the call costs on budgets and the agent's limits. A price known only for the requested
 * model name is better than no price. */
static struct amount amount_used(const struct run *run, const struct price *price,
                                 const struct event_usage *usage) {
    struct str requested = run->model_round.request.model;
    const struct event_usage all = completed(run, usage);
    int64_t tokens = spending_counted(usage), cost_nano = usage->cost_nano;
    if (cost_nano < 0) cost_nano = price_of(price, &all);
    if (cost_nano < 0 && !str_equal(usage->model, requested))
        cost_nano = price_of(price_now(run, requested), &all);
    return (struct amount){cost_nano > 0 ? cost_nano : 0,
                           tokens >= 0 ? tokens : sum(all.prompt, all.completion)};
}

enum call_end { CALL_ENDED_WELL, CALL_WAS_CUT, CALL_CAME_TO_NOTHING };

/* Each model call gets one usage event, whether or not the provider counted. It has what is
 * known and, separately, what is estimated. */
static void append_usage(struct run *run, const struct event_usage *usage, enum call_end end) {
    if (!run->spending.usage_due) return;
    struct event event = {.kind = EVENT_USAGE, .usage = *usage};
    event.usage.call_sequence = run->model_round.model_calls - 1;
    /* If the provider names no model, take the requested one. */
    if (event.usage.model.len == 0) event.usage.model = run->model_round.request.model;
    const struct price *price = price_now(run, event.usage.model);
    /* An agent on another server may report its own cost. Our price takes precedence. */
    int64_t cost_nano = price_of(price, usage);
    if (cost_nano >= 0) event.usage.cost_nano = cost_nano;
    struct amount used = {0};
    if (end != CALL_CAME_TO_NOTHING) {
        spending_estimate(run, price, &event.usage);
        used = amount_used(run, price, &event.usage);
    }
    run->spending.usage_due = false;
    run->spending.spent = amount_add(run->spending.spent, used);
    struct reservation *reserved = reserved_of(run);
    if (reserved && end == CALL_ENDED_WELL && !event.usage.estimated)
        ledger_learn(run->record.engine->ledger, reserved->agent,
                     run->model_round.request.model, used);
    if (reserved) ledger_settle(reserved, used);
    turn_sums_add(&run->spending.sums, &event.usage);
    measure_usage(run, &event.usage);
    run_append(run, &event);
}

void run_note_usage(struct run *run, const struct event_usage *usage) {
    struct spending *spending = &run->spending;
    struct str model;
    if (!spending->usage_due || spending->usage_noted) return;
    if (!run_keep(run, usage->model, &model)) return;
    if (!spending->usage) spending->usage = ARENA_NEW(run->arena, struct event_usage);
    if (!spending->usage) {
        run_fail_memory(run);
        return;
    }
    *spending->usage = *usage;
    spending->usage->model = model;
    spending->usage_noted = true;
}

/* Use the provider's counts if there are any; append_usage() estimates the rest. */
static void end_usage(struct run *run, struct str model, enum call_end end) {
    struct event_usage usage = USAGE_UNKNOWN;
    usage.model = model;
    if (run->spending.usage_noted) usage = *run->spending.usage;
    if (run->spending.usage_noted && end == CALL_CAME_TO_NOTHING) end = CALL_WAS_CUT;
    run->spending.usage_noted = false;
    append_usage(run, &usage, end);
}

bool run_end_usage(struct run *run, struct str model) {
    if (!run_keep(run, model.len ? model : run->model_round.request.model,
                  &run->model_round.model))
        return false;
    end_usage(run, run->model_round.model, CALL_ENDED_WELL);
    return !run->ending_begun;
}

void run_settle_cut(struct run *run) {
    end_usage(run, run->model_round.request.model, CALL_WAS_CUT);
}

void run_settle_failed(struct run *run) {
    end_usage(run, run->model_round.request.model,
              run->spending.output_bytes ? CALL_WAS_CUT : CALL_CAME_TO_NOTHING);
}

void run_count_usage(struct run *run, const struct event_usage *usage) {
    int64_t tokens = spending_counted(usage), cost_nano = usage->cost_nano;
    if (tokens < 0) tokens = sum(usage->estimate_prompt, usage->estimate_completion);
    if (cost_nano < 0) cost_nano = usage->estimate_cost_nano;
    run->spending.spent =
        amount_add(run->spending.spent, (struct amount){cost_nano > 0 ? cost_nano : 0, tokens});
    turn_sums_add(&run->spending.sums, usage);
}
