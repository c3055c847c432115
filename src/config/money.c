/* Prices of models, and budgets. Amounts are parsed directly into integers of a small unit,
 * because a sum of doubles cannot be verified. */
#include "config/rows.h"

#include "base/nearest.h"
#include "wire/moment.h"

#include <stdio.h>

/* The highest price per million tokens; with it the cost of a call cannot overflow. */
#define PRICE_MAX_NANO (INT64_C(1000000) * 1000000000)

/* --- prices ------------------------------------------------------------------------------- */

/* Parse a date such as "2026-01-31", not before 1970, into days since 1970-01-01. */
static bool read_date(struct str text, int64_t *ret) {
    char moment[32];
    int64_t unix_s;
    struct err e;
    if (text.len != strlen("2026-01-31")) return false;
    snprintf(moment, sizeof(moment), STR_FMT "T00:00:00Z", STR_ARG(text));
    if (!moment_read(str_from(moment), &unix_s, &e) || unix_s < 0) return false;
    *ret = unix_s / MOMENT_DAY_S;
    return true;
}

static bool check_model(const struct reading *reading, const struct yaml *node, struct err *e) {
    const struct price *price = reading->entry;
    return str_find_byte(price->model, '*') + 1 >= price->model.len ||
           yaml_err(e, node, "'*' stands at the end: it means all names that begin so");
}

static bool read_from(const struct reading *reading, const struct yaml *node, struct err *e) {
    struct price *price = reading->entry;
    struct str date;
    if (!yaml_value(node, YAML_TEXT, &date, e)) return false;
    return read_date(date, &price->from_day) ||
           yaml_err(e, node, "'" STR_FMT "' is not a date such as 2026-01-31",
                    STR_ARG(str_head(date, 40)));
}

#define ROW_OF struct price

#define PRICE(member)                                                                          \
    DOLLARS(member), .most = PRICE_MAX_NANO, .beyond = "no model costs $%s for a million tokens"

static const struct setting price_rows[] = {
    {.key = "model",
     NAME(model),
     .required = true,
     .read = check_model,
     .help = "its name; `*` at the end stands for any ending"},
    {.key = "from", .read = read_from, .help = "the day it begins, such as 2026-01-31"},
    {.key = "input",
     PRICE(input),
     .required = true,
     .help = "for a million tokens, as the others"},
    {.key = "output", PRICE(output), .required = true, .help = "likewise"},
    {.key = "cached", PRICE(cached), .help = "input from a cache; left out: as input"},
    {.key = "cache_write", PRICE(cache_write), .help = "input that is kept for minutes"},
    {.key = "cache_write_hour",
     PRICE(cache_write_hour),
     .help = "input that is kept for an hour"},
};

static const struct price no_price = {.cached = TOKENS_UNKNOWN,
                                      .cache_write = TOKENS_UNKNOWN,
                                      .cache_write_hour = TOKENS_UNKNOWN};

const struct config_list config_price_list = {
    .key = "prices",
    .what = "a list of prices",
    .schema = {.what = "a price", ROWS(price_rows), .blank = &no_price},
    KEPT_IN(prices, price_count)};

/* --- budgets ------------------------------------------------------------------------------ */

/* One entry may limit both the day and the month; each becomes a budget. */
struct budget_entry {
    struct str workspace, agent;
    struct budget of[2]; /* by enum budget_period */
};

static bool refuse_amount(const struct yaml *node, struct err *e) {
    return yaml_err(e, node,
                    "expected dollars, such as $5.00, or tokens, such as 200000 tokens");
}

/* "$5.00" or "200000 tokens". A number without a unit is refused. */
static bool read_amount(const struct yaml *node, struct budget *ret, struct err *e) {
    struct str rest;
    if (node->kind != YAML_SCALAR) return refuse_amount(node, e);
    struct str count = str_split(node->text, ' ', &rest);
    if (str_starts(node->text, STR("$"))) {
        if (!config_dollars(node, &ret->cost_nano_max, e)) return false;
    } else {
        uint64_t tokens;
        if (!str_equal(str_trim(rest), STR("tokens")) || !str_to_u64(count, &tokens) ||
            tokens > INT64_MAX)
            return refuse_amount(node, e);
        ret->tokens_max = (int64_t)tokens;
    }
    return ret->cost_nano_max || ret->tokens_max ||
           yaml_err(e, node, "a budget of 0 allows no call; remove it");
}

static bool read_day(const struct reading *reading, const struct yaml *node, struct err *e) {
    struct budget_entry *budget = reading->entry;
    return read_amount(node, &budget->of[BUDGET_DAY], e);
}

static bool read_month(const struct reading *reading, const struct yaml *node, struct err *e) {
    struct budget_entry *budget = reading->entry;
    return read_amount(node, &budget->of[BUDGET_MONTH], e);
}

#undef ROW_OF
#define ROW_OF struct budget_entry

static const struct setting budget_rows[] = {
    {.key = "workspace", NAME(workspace), .help = "left out: each workspace has its own"},
    {.key = "agent", NAME(agent), .help = "left out: all agents"},
    {.key = "day",
     .read = read_day,
     .help = "dollars such as $5.00, or tokens such as 200000 tokens"},
    {.key = "month", .read = read_month, .help = "likewise"},
};

static bool keep_budget(const struct reading *reading, const struct yaml *node, struct err *e) {
    struct config *config = reading->config;
    struct budget *budgets = (struct budget *)config->budgets; /* not shared yet */
    const struct budget_entry *said = reading->entry;
    size_t before = config->budget_count;
    for (size_t i = 0; i < ARRAY_LEN(said->of); i++) {
        if (!said->of[i].cost_nano_max && !said->of[i].tokens_max) continue;
        struct budget *budget = &budgets[config->budget_count++];
        *budget = said->of[i];
        budget->workspace = said->workspace;
        budget->agent = said->agent;
        budget->period = (enum budget_period)i;
    }
    return config->budget_count > before ||
           yaml_err(e, node, "a budget needs the key 'day' or 'month'");
}

const struct config_list config_budget_list = {
    .key = "budgets",
    .what = "a list of budgets",
    .schema = {.what = "a budget", ROWS(budget_rows)},
    KEPT_IN(budgets, budget_count), /* room for both budgets of each entry */
    .keep = keep_budget};

static bool is_agent(const struct config *config, struct str slug, struct nearest *nearest) {
    bool found = false;
    nearest_init(nearest, slug);
    for (size_t i = 0; i < config->agent_count; i++) {
        found = found || str_equal(config->agents[i].slug, slug);
        nearest_offer(nearest, config->agents[i].slug);
    }
    return found;
}

/* The agents of a script or a blueprint are not known here. */
void config_warn_of_budgets(struct config *config) {
    if (config->agent_count == 0 || config->remote.agents) return;
    for (size_t i = 0; i < config->budget_count; i++) {
        const struct budget *budget = &config->budgets[i];
        struct nearest nearest;
        if (!budget->agent.len || is_agent(config, budget->agent, &nearest)) continue;
        config_warn(config, "a budget is for the agent '" STR_FMT "', and there is none%s",
                    STR_ARG(str_head(budget->agent, 80)), nearest_hint(&nearest));
    }
}
