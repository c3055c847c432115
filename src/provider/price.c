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

struct price_book {
    size_t count, own;   /* the first `own` entries come from the settings */
    struct text *models; /* owned names of those entries */
    struct price prices[];
};

struct price_book *price_book_new(const struct price *own, size_t count) {
    size_t all = count + ARRAY_LEN(built_in);
    struct price_book *book = mem_zero(1, sizeof(*book) + all * sizeof(struct price));
    book->own = count;
    book->count = all;
    book->models = mem_zero(count, sizeof(struct text));
    for (size_t i = 0; i < count; i++) {
        book->prices[i] = own[i];
        book->models[i] = text_copy(own[i].model);
        book->prices[i].model = text_str(book->models[i]);
    }
    memcpy(book->prices + count, built_in, sizeof(built_in));
    return book;
}

void price_book_free(struct price_book *book) {
    if (!book) return;
    for (size_t i = 0; i < book->own; i++) text_done(&book->models[i]);
    free(book->models);
    free(book);
}

/* --- finding ------------------------------------------------------------------------------ */

/* A quick check: most entries already differ in the first letter. */
static bool begin_alike(struct str pattern, struct str model) {
    if (pattern.len == 0 || pattern.at[0] == '*') return true;
    return model.len && model.at[0] == pattern.at[0];
}

static bool matches(struct str pattern, struct str model) {
    if (!begin_alike(pattern, model)) return false;
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

static const struct price *find_among(const struct price *prices, size_t count,
                                      struct str model, int64_t day) {
    const struct price *found = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct price *price = &prices[i];
        if (price->from_day > day || !matches(price->model, model)) continue;
        if (is_better(price, found)) found = price;
    }
    return found;
}

static const struct price *provider_price_find(const struct price_book *book, struct str model,
                                               int64_t day) {
    const struct price *own = find_among(book->prices, book->own, model, day);
    return own ? own
               : find_among(book->prices + book->own, book->count - book->own, model, day);
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

static __int128 or_else(int64_t figure, __int128 other) {
    return figure == TOKENS_UNKNOWN ? other : figure;
}

int64_t price_of(const struct price *price, const struct event_usage *usage) {
    if (!price || usage->prompt < 0 || usage->completion < 0) return TOKENS_UNKNOWN;
    int64_t left = usage->prompt;
    __int128 sum = part(usage->cached, price->cached, &left);
    sum += part(usage->cache_write, or_else(price->cache_write, (__int128)price->input * 5 / 4),
                &left);
    sum += part(usage->cache_write_hour,
                or_else(price->cache_write_hour, (__int128)price->input * 2), &left);
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
