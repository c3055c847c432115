/* Prices of models, and what may be spent. Amounts are whole numbers of a small unit from the
 * first digit on: a sum of money that went through a double is a sum nobody can check. */
#include "config/build.h"

#include "base/nearest.h"

/* A price is at most so much for a million tokens: what a call costs stays a number. */
#define PRICE_MAX_NANO (INT64_C(1000000) * 1000000000)

static bool too_large(const struct yaml *node, struct err *e) {
    return yaml_err(e, node, "this list is too large");
}

/* --- prices ------------------------------------------------------------------------------- */

struct price_nodes {
    struct str model;
    const struct yaml *from, *input, *output, *cached, *cache_write, *cache_write_hour;
};

static const struct yaml_field price_fields[] = {
    {"model", YAML_NAME, offsetof(struct price_nodes, model), true},
    {"from", YAML_NODE, offsetof(struct price_nodes, from), false},
    {"input", YAML_NODE, offsetof(struct price_nodes, input), true},
    {"output", YAML_NODE, offsetof(struct price_nodes, output), true},
    {"cached", YAML_NODE, offsetof(struct price_nodes, cached), false},
    {"cache_write", YAML_NODE, offsetof(struct price_nodes, cache_write), false},
    {"cache_write_hour", YAML_NODE, offsetof(struct price_nodes, cache_write_hour), false},
};

static unsigned two_digits(const char *at) {
    return (unsigned)(at[0] - '0') * 10 + (unsigned)(at[1] - '0');
}

static bool is_leap(unsigned year) {
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Days from 1970-01-01 to the first of January of this year. */
static int64_t days_before(unsigned year) {
    int64_t past = (int64_t)year - 1;
    return past * 365 + past / 4 - past / 100 + past / 400 - 719162;
}

/* "2026-01-31", from 1970 on, and a day that there is: days since 1970-01-01. */
static bool read_date(struct str text, int64_t *ret) {
    static const unsigned char days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    static const char form[] = "dddd-dd-dd";
    if (text.len != sizeof(form) - 1) return false;
    for (size_t i = 0; i < text.len; i++) {
        bool digit = text.at[i] >= '0' && text.at[i] <= '9';
        if (form[i] == 'd' ? !digit : text.at[i] != form[i]) return false;
    }
    unsigned year = two_digits(text.at) * 100 + two_digits(text.at + 2);
    unsigned month = two_digits(text.at + 5), day = two_digits(text.at + 8);
    if (year < 1970 || month < 1 || month > ARRAY_LEN(days)) return false;
    if (day < 1 || day > days[month - 1]) return false;
    if (month == 2 && day == 29 && !is_leap(year)) return false;
    int64_t count = days_before(year) + day - 1;
    for (unsigned m = 1; m < month; m++) count += days[m - 1] - (m == 2 && !is_leap(year));
    *ret = count;
    return true;
}

/* Dollars for a million tokens. */
static bool read_amount_of(const struct yaml *node, int64_t *ret, struct err *e) {
    if (!config_dollars(node, ret, e)) return false;
    return *ret <= PRICE_MAX_NANO ||
           yaml_err(e, node, "no model costs $" STR_FMT " for a million tokens",
                    STR_ARG(str_head(node->text, 40)));
}

static bool read_price(const struct yaml *node, struct price *ret, struct err *e) {
    struct price_nodes nodes = {0};
    struct str date;
    if (!yaml_fields(node, "a price", price_fields, ARRAY_LEN(price_fields), &nodes, e))
        return false;
    *ret = (struct price){.model = nodes.model,
                          .cached = TOKENS_UNKNOWN,
                          .cache_write = TOKENS_UNKNOWN,
                          .cache_write_hour = TOKENS_UNKNOWN};
    if (str_find_byte(nodes.model, '*') + 1 < nodes.model.len)
        return yaml_err(e, yaml_find(node, STR("model")),
                        "'*' stands at the end: it means all names that begin so");
    if (nodes.from) {
        if (!yaml_value(nodes.from, YAML_TEXT, &date, e)) return false;
        if (!read_date(date, &ret->from_day))
            return yaml_err(e, nodes.from, "'" STR_FMT "' is no date such as 2026-01-31",
                            STR_ARG(str_head(date, 40)));
    }
    return read_amount_of(nodes.input, &ret->input, e) &&
           read_amount_of(nodes.output, &ret->output, e) &&
           (!nodes.cached || read_amount_of(nodes.cached, &ret->cached, e)) &&
           (!nodes.cache_write || read_amount_of(nodes.cache_write, &ret->cache_write, e)) &&
           (!nodes.cache_write_hour ||
            read_amount_of(nodes.cache_write_hour, &ret->cache_write_hour, e));
}

bool config_read_prices(struct config *config, const struct config_input *input,
                        const struct yaml *node, struct err *e) {
    (void)input;
    if (!config_want(node, YAML_LIST, "a list of prices", e)) return false;
    struct price *prices = arena_alloc(config->arena, node->count * sizeof(*prices));
    if (!prices) return too_large(node, e);
    config->prices = prices;
    for (const struct yaml *item = node->first; item; item = item->next) {
        if (read_price(item, &prices[config->price_count], e)) {
            config->price_count++;
        } else if (!config_goes_on(config, e)) {
            return false;
        }
    }
    return true;
}

/* --- budgets ------------------------------------------------------------------------------ */

struct budget_nodes {
    struct str workspace, agent;
    const struct yaml *day, *month;
};

static const struct yaml_field budget_fields[] = {
    {"workspace", YAML_NAME, offsetof(struct budget_nodes, workspace), false},
    {"agent", YAML_NAME, offsetof(struct budget_nodes, agent), false},
    {"day", YAML_NODE, offsetof(struct budget_nodes, day), false},
    {"month", YAML_NODE, offsetof(struct budget_nodes, month), false},
};

static bool refuse_amount(const struct yaml *node, struct err *e) {
    return yaml_err(e, node,
                    "expected dollars, such as $5.00, or tokens, such as 200000 tokens");
}

/* "$5.00" or "200000 tokens": a bare number would be a guess. */
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
           yaml_err(e, node, "a budget of nothing lets nobody in; remove it");
}

/* One entry may limit both the day and the month; each is a budget of its own. */
static bool read_budget(struct config *config, const struct yaml *node, struct budget *budgets,
                        struct err *e) {
    struct budget_nodes nodes = {.workspace = STR_EMPTY, .agent = STR_EMPTY};
    if (!yaml_fields(node, "a budget", budget_fields, ARRAY_LEN(budget_fields), &nodes, e))
        return false;
    const struct yaml *amounts[] = {[BUDGET_DAY] = nodes.day, [BUDGET_MONTH] = nodes.month};
    if (!nodes.day && !nodes.month)
        return yaml_err(e, node, "a budget needs the key 'day' or 'month'");
    for (size_t i = 0; i < ARRAY_LEN(amounts); i++) {
        struct budget *budget = &budgets[config->budget_count];
        if (!amounts[i]) continue;
        *budget = (struct budget){.workspace = nodes.workspace,
                                  .agent = nodes.agent,
                                  .period = (enum budget_period)i};
        if (!read_amount(amounts[i], budget, e)) return false;
        config->budget_count++;
    }
    return true;
}

bool config_read_budgets(struct config *config, const struct config_input *input,
                         const struct yaml *node, struct err *e) {
    (void)input;
    if (!config_want(node, YAML_LIST, "a list of budgets", e)) return false;
    struct budget *budgets = arena_alloc(config->arena, 2 * node->count * sizeof(*budgets));
    if (!budgets) return too_large(node, e);
    config->budgets = budgets;
    for (const struct yaml *item = node->first; item; item = item->next) {
        if (!read_budget(config, item, budgets, e) && !config_goes_on(config, e)) return false;
    }
    return true;
}

static bool is_agent(const struct config *config, struct str slug, struct nearest *nearest) {
    bool found = false;
    nearest_init(nearest, slug);
    for (size_t i = 0; i < config->agent_count; i++) {
        found = found || str_equal(config->agents[i].slug, slug);
        nearest_offer(nearest, config->agents[i].slug);
    }
    return found;
}

/* A script names its agents itself, and so does a blueprint: those are not known here. */
void config_warn_of_budgets(struct config *config) {
    bool blueprints = config->converse.mcp_endpoint.len && config->converse.blueprint;
    if (config->agent_count == 0 || blueprints) return;
    for (size_t i = 0; i < config->budget_count; i++) {
        const struct budget *budget = &config->budgets[i];
        struct nearest nearest;
        char hint[NEAREST_HINT_BYTES];
        if (!budget->agent.len || is_agent(config, budget->agent, &nearest)) continue;
        config_warn(config, "a budget is for the agent '" STR_FMT "', and there is none%s",
                    STR_ARG(str_head(budget->agent, 80)), nearest_hint(&nearest, hint));
    }
}
