#include "sidecar/accounts.h"

#include "base/map.h"
#include "base/mem.h"

#include <stdlib.h>

#define MODEL_MAX_BYTES 256

struct account {
    unsigned requests;
    bool shared; /* by two requests at once: what was posted belongs to one of them */
    struct text trace_id;
    struct spent spent;
};

struct accounts {
    const struct price_book *prices;
    struct map *open;
};

struct accounts *accounts_new(const struct price_book *prices) {
    struct accounts *accounts = MEM_NEW(struct accounts);
    accounts->prices = prices;
    accounts->open = map_new();
    return accounts;
}

void accounts_free(struct accounts *accounts) {
    if (!accounts) return;
    map_free(accounts->open);
    free(accounts);
}

struct account *accounts_open(struct accounts *accounts, struct str trace_id) {
    struct account *account = map_find(accounts->open, trace_id);
    if (!account) {
        account = MEM_NEW(struct account);
        account->trace_id = text_copy(trace_id);
        spent_init(&account->spent);
        map_put(accounts->open, trace_id, account);
    }
    account->shared |= account->requests > 0;
    account->requests++;
    return account;
}

void accounts_close(struct accounts *accounts, struct account *account) {
    if (!account || --account->requests) return;
    map_remove(accounts->open, text_str(account->trace_id));
    spent_done(&account->spent);
    text_done(&account->trace_id);
    free(account);
}

bool accounts_post(struct accounts *accounts, struct str trace_id,
                   const struct spent_usage *usage) {
    struct account *account = map_find(accounts->open, trace_id);
    if (account) spent_post(&account->spent, usage);
    return account != NULL;
}

static const struct price *price_for(const struct price_book *prices, struct str model,
                                     int64_t unix_ms) {
    char spelled[MODEL_MAX_BYTES];
    const struct price *price = price_find(prices, model, unix_ms);
    if (price || model.len > sizeof(spelled)) return price;
    for (size_t i = 0; i < model.len; i++) spelled[i] = model.at[i] == '.' ? '-' : model.at[i];
    return price_find(prices, str_of(spelled, model.len), unix_ms);
}

int64_t accounts_cost(const struct accounts *accounts, const struct spent_usage *usage,
                      int64_t unix_ms) {
    struct event_usage call = USAGE_UNKNOWN;
    if (!usage->model.len || usage->input == TOKENS_UNKNOWN || usage->output == TOKENS_UNKNOWN)
        return TOKENS_UNKNOWN;
    const struct price *price = price_for(accounts->prices, usage->model, unix_ms);
    call.prompt = usage->input;
    call.completion = usage->output;
    call.cached = 0;
    return price ? price_of(price, &call) : TOKENS_UNKNOWN;
}

struct spent_usage accounts_read(const struct accounts *accounts, const struct account *account,
                                 const struct spent *found, int64_t unix_ms) {
    bool posted = account->spent.posted && !account->shared;
    const struct spent *spent = posted ? &account->spent : found;
    struct spent_usage usage = {text_str(spent->model), spent->input, spent->output,
                                spent->total, spent->cost_nano};
    if (!posted && usage.cost_nano == TOKENS_UNKNOWN)
        usage.cost_nano = accounts_cost(accounts, &usage, unix_ms);
    return usage;
}
