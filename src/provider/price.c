#include "provider/price.h"

#include "base/mem.h"
#include "base/text.h"

#include <limits.h>
#include <stdlib.h>

#define DOLLAR INT64_C(1000000000) /* in nano-dollars */
#define MILLION 1000000

/* Dollars per million tokens, in nano-dollars. */
#define USD(dollars) ((int64_t)((dollars)*1000 + 0.5) * (DOLLAR / 1000))

/* In days since 1970-01-01. No call of this program is older than the first date. */
#define DAY_2026_01_01 20454
#define DAY_2026_10_07 20733

/* List prices per million tokens, from the vendors' pages in November 2026. The setting
 * `prices:` overrides them. Models are left out if their price depends on the length of the
 * prompt or if a part of it could not be confirmed: unknown is better than wrong. A pattern
 * must not match variants with another price (gpt-4o-audio, gpt-5-pro). */
#define PRICE(model, from_day, input, output, cached)                                          \
    { STR_INIT(model), from_day, input, output, cached, TOKENS_UNKNOWN, TOKENS_UNKNOWN }

static const struct price built_in[] = {
    /* clang-format off */
    PRICE("gpt-4o",                   DAY_2026_01_01, USD(2.50),  USD(10.00), USD(1.25)),
    PRICE("gpt-4o-2024-08-06",        DAY_2026_01_01, USD(2.50),  USD(10.00), USD(1.25)),
    PRICE("gpt-4o-2024-11-20",        DAY_2026_01_01, USD(2.50),  USD(10.00), USD(1.25)),
    PRICE("gpt-4o-mini",              DAY_2026_01_01, USD(0.15),  USD(0.60),  USD(0.075)),
    PRICE("gpt-4o-mini-2024-07-18",   DAY_2026_01_01, USD(0.15),  USD(0.60),  USD(0.075)),
    PRICE("gpt-4.1",                  DAY_2026_01_01, USD(2.00),  USD(8.00),  USD(0.50)),
    PRICE("gpt-4.1-2025*",            DAY_2026_01_01, USD(2.00),  USD(8.00),  USD(0.50)),
    PRICE("gpt-4.1-mini*",            DAY_2026_01_01, USD(0.40),  USD(1.60),  USD(0.10)),
    PRICE("gpt-4.1-nano*",            DAY_2026_01_01, USD(0.10),  USD(0.40),  USD(0.025)),
    PRICE("gpt-5",                    DAY_2026_01_01, USD(1.25),  USD(10.00), USD(0.125)),
    PRICE("gpt-5-2025*",              DAY_2026_01_01, USD(1.25),  USD(10.00), USD(0.125)),
    PRICE("gpt-5-mini*",              DAY_2026_01_01, USD(0.25),  USD(2.00),  USD(0.025)),
    PRICE("gpt-5-nano*",              DAY_2026_01_01, USD(0.05),  USD(0.40),  USD(0.005)),
    PRICE("gpt-5.2",                  DAY_2026_01_01, USD(1.75),  USD(14.00), USD(0.175)),
    PRICE("gpt-5.2-2025*",            DAY_2026_01_01, USD(1.75),  USD(14.00), USD(0.175)),
    PRICE("o3",                       DAY_2026_01_01, USD(2.00),  USD(8.00),  USD(0.50)),
    PRICE("o3-2025*",                 DAY_2026_01_01, USD(2.00),  USD(8.00),  USD(0.50)),
    PRICE("o3-mini*",                 DAY_2026_01_01, USD(1.10),  USD(4.40),  USD(0.55)),
    PRICE("o4-mini",                  DAY_2026_01_01, USD(1.10),  USD(4.40),  USD(0.275)),
    PRICE("o4-mini-2025*",            DAY_2026_01_01, USD(1.10),  USD(4.40),  USD(0.275)),
    PRICE("claude-3-5-haiku*",        DAY_2026_01_01, USD(0.80),  USD(4.00),  USD(0.08)),
    PRICE("claude-haiku-4-5*",        DAY_2026_01_01, USD(1.00),  USD(5.00),  USD(0.10)),
    PRICE("claude-3-7-sonnet*",       DAY_2026_01_01, USD(3.00),  USD(15.00), USD(0.30)),
    PRICE("claude-sonnet-4-0",        DAY_2026_01_01, USD(3.00),  USD(15.00), USD(0.30)),
    PRICE("claude-sonnet-4-2025*",    DAY_2026_01_01, USD(3.00),  USD(15.00), USD(0.30)),
    PRICE("claude-sonnet-4-5*",       DAY_2026_01_01, USD(3.00),  USD(15.00), USD(0.30)),
    PRICE("claude-sonnet-4-6*",       DAY_2026_01_01, USD(3.00),  USD(15.00), USD(0.30)),
    PRICE("claude-sonnet-5",          DAY_2026_01_01, USD(2.00),  USD(10.00), USD(0.20)),
    PRICE("claude-sonnet-5-5*",       DAY_2026_01_01, USD(2.00),  USD(10.00), USD(0.20)),
    PRICE("claude-sonnet-5-5*",       DAY_2026_10_07, USD(2.00),  USD(10.00), USD(0.10)),
    PRICE("claude-opus-4-0",          DAY_2026_01_01, USD(15.00), USD(75.00), USD(1.50)),
    PRICE("claude-opus-4-2025*",      DAY_2026_01_01, USD(15.00), USD(75.00), USD(1.50)),
    PRICE("claude-opus-4-1*",         DAY_2026_01_01, USD(15.00), USD(75.00), USD(1.50)),
    PRICE("claude-opus-4-5*",         DAY_2026_01_01, USD(5.00),  USD(25.00), USD(0.50)),
    PRICE("claude-opus-4-6*",         DAY_2026_01_01, USD(5.00),  USD(25.00), USD(0.50)),
    PRICE("claude-opus-4-7*",         DAY_2026_01_01, USD(5.00),  USD(25.00), USD(0.50)),
    PRICE("claude-opus-4-8*",         DAY_2026_01_01, USD(5.00),  USD(25.00), USD(0.50)),
    PRICE("claude-opus-5",            DAY_2026_01_01, USD(5.00),  USD(25.00), USD(0.50)),
    /* clang-format on */
};

/* Entries whose names begin with the same letter are a list, because most begin otherwise. */
struct price_entry {
    struct price price;
    const struct price_entry *next;
};

#define INITIALS 256

struct price_group {
    const struct price_entry *by_initial[INITIALS]; /* in the order of their rows */
    const struct price_entry *open;                 /* patterns that begin with '*' */
};

struct price_book {
    size_t own;          /* the first `own` entries come from the settings */
    struct text *models; /* owned names of those entries */
    struct price_group settings, built_in;
    struct price_entry entries[];
};

/* The list that entries for `model` are in. */
static const struct price_entry **price_list(struct price_group *group, struct str model) {
    if (model.len == 0 || model.at[0] == '*') return &group->open;
    return &group->by_initial[(unsigned char)model.at[0]];
}

/* Prepends: add the last row first. */
static void price_add(struct price_group *group, struct price_entry *entry,
                      const struct price *price) {
    const struct price_entry **list = price_list(group, price->model);
    entry->price = *price;
    entry->next = *list;
    *list = entry;
}

struct price_book *price_book_new(const struct price *own, size_t count) {
    size_t all = count + ARRAY_LEN(built_in);
    struct price_book *book = mem_zero(1, sizeof(*book) + all * sizeof(struct price_entry));
    book->own = count;
    book->models = mem_zero(count, sizeof(struct text));
    for (size_t i = count; i-- > 0;) {
        struct price price = own[i];
        book->models[i] = text_copy(own[i].model);
        price.model = text_str(book->models[i]);
        price_add(&book->settings, &book->entries[i], &price);
    }
    for (size_t i = ARRAY_LEN(built_in); i-- > 0;)
        price_add(&book->built_in, &book->entries[count + i], &built_in[i]);
    return book;
}

void price_book_free(struct price_book *book) {
    if (!book) return;
    for (size_t i = 0; i < book->own; i++) text_done(&book->models[i]);
    free(book->models);
    free(book);
}

/* --- finding ------------------------------------------------------------------------------ */

static bool price_matches(struct str pattern, struct str model) {
    if (!str_ends(pattern, STR("*"))) return str_equal(pattern, model);
    return str_starts(model, str_head(pattern, pattern.len - 1));
}

/* A longer pattern is more specific, and an exact name is the most specific. */
static size_t weight(const struct price *price) {
    bool open = str_ends(price->model, STR("*"));
    return 2 * (price->model.len - open) + !open;
}

/* Whether `a` is the better of two entries that match: the more specific one, then the newer;
 * of equal ones the first. */
static bool is_better(const struct price *a, const struct price *b) {
    if (!b || weight(a) != weight(b)) return !b || weight(a) > weight(b);
    return a->from_day > b->from_day;
}

/* The better one of `found` (or NULL) and what is in this list. */
static const struct price *find_among(const struct price_entry *list, struct str model,
                                      int64_t day, const struct price *found) {
    for (; list; list = list->next) {
        const struct price *price = &list->price;
        if (price->from_day > day || !price_matches(price->model, model)) continue;
        if (is_better(price, found)) found = price;
    }
    return found;
}

static const struct price *price_group_find(const struct price_group *group, struct str model,
                                            int64_t day) {
    unsigned char initial = model.len ? (unsigned char)model.at[0] : 0;
    const struct price *found = find_among(group->by_initial[initial], model, day, NULL);
    return group->open ? find_among(group->open, model, day, found) : found;
}

static const struct price *provider_price_find(const struct price_book *book, struct str model,
                                               int64_t day) {
    const struct price *own = price_group_find(&book->settings, model, day);
    return own ? own : price_group_find(&book->built_in, model, day);
}

const struct price *price_find(const struct price_book *book, struct str model,
                               int64_t unix_ms) {
    int64_t day = unix_ms / (24 * 60 * 60 * 1000);
    const struct price *found = provider_price_find(book, model, day);
    while (!found && str_find_byte(model, '/') < model.len) {
        model = str_skip(model, str_find_byte(model, '/') + 1);
        found = provider_price_find(book, model, day);
    }
    return found;
}

/* --- money -------------------------------------------------------------------------------- */

/* The cost of tokens that have a price of their own; they are subtracted from *left. */
static __int128 part(int64_t tokens, __int128 figure, int64_t *left) {
    if (tokens <= 0 || figure == TOKENS_UNKNOWN) return 0;
    if (tokens > *left) tokens = *left;
    *left -= tokens;
    return tokens * figure;
}

static __int128 price_or_else(int64_t figure, __int128 other) {
    return figure == TOKENS_UNKNOWN ? other : figure;
}

int64_t price_of(const struct price *price, const struct event_usage *usage) {
    if (!price || usage->prompt < 0 || usage->completion < 0) return TOKENS_UNKNOWN;
    int64_t left = usage->prompt;
    __int128 sum = part(usage->cached, price->cached, &left);
    sum += part(usage->cache_write,
                price_or_else(price->cache_write, (__int128)price->input * 5 / 4), &left);
    sum += part(usage->cache_write_hour,
                price_or_else(price->cache_write_hour, (__int128)price->input * 2), &left);
    sum += (__int128)left * price->input + (__int128)usage->completion * price->output;
    sum = (sum + MILLION - 1) / MILLION;
    return sum > INT64_MAX ? INT64_MAX : (int64_t)sum;
}

bool price_read_dollars(struct str text, int64_t *ret, struct err *e) {
    int64_t nano = 0, unit = DOLLAR;
    bool point = false, digits = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (c == '.' && !point) {
            point = true;
            continue;
        }
        bool fits = nano <= (INT64_MAX - 9 * DOLLAR) / 10;
        if (c < '0' || c > '9' || !fits) goto refuse;
        if (point && unit == 1) {
            if (c == '0') continue;
            goto refuse;
        }
        digits = true;
        nano = point ? nano + (c - '0') * (unit /= 10) : nano * 10 + (c - '0') * DOLLAR;
    }
    if (!digits) goto refuse;
    *ret = nano;
    return true;

refuse:
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "'" STR_FMT
                   "' is not an amount of dollars; write 2.50, with at most nine digits "
                   "after the point",
                   STR_ARG(str_head(text, 40)));
}

void price_append_dollars(struct buf *out, int64_t nano) {
    char digits[16];
    int64_t rest = nano % DOLLAR;
    buf_append_u64(out, (uint64_t)(nano / DOLLAR));
    size_t len = 9;
    for (size_t i = 9; i-- > 0; rest /= 10) digits[i] = (char)('0' + rest % 10);
    while (len > 2 && digits[len - 1] == '0') len--;
    buf_append_byte(out, '.');
    buf_append(out, str_of(digits, len));
}
