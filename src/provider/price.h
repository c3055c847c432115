/* price: what a model call costs.
 *
 * A book holds dated prices. The newest entry for a model that is not later than the call
 * applies, so last month's bill does not change. A model without an entry has an unknown cost;
 * unknown is not zero and is never summed as zero. All amounts are integers in billionths of a
 * dollar (nano-dollars).
 *
 * Memory   a book owns its entries.
 * Threads  read-only once made.
 */
#ifndef WEIR_PROVIDER_PRICE_H
#define WEIR_PROVIDER_PRICE_H

#include "wire/event.h"

/* Nano-dollars per million tokens: $2.50 is 2,500,000,000. */
struct price {
    struct str model; /* as the provider reports it; a trailing '*' matches any ending */
    int64_t from_day; /* the first day it applies, in days since 1970-01-01, UTC */
    int64_t input, output;
    int64_t cached; /* input tokens read from a cache; TOKENS_UNKNOWN: same as input */
    /* Input tokens written to a cache, for minutes and for an hour. TOKENS_UNKNOWN: 1.25 and 2
     * times the input price, as Anthropic charges. Other vendors do not report them. */
    int64_t cache_write, cache_write_hour;
};

struct price_book;

/* `own` (copied) are the entries from the settings. They take precedence over built-in entries
 * for the same model, whatever the dates. */
struct price_book *price_book_new(const struct price *own, size_t count);
void price_book_free(struct price_book *book); /* accepts NULL */

/* The price of `model` at a given time, or NULL. An exact name wins, then the longest matching
 * pattern, then the newest entry. A prefix that only names the vendor ("openai/gpt-4o",
 * "models/gemini-2.5-pro") is ignored. */
const struct price *price_find(const struct price_book *book, struct str model,
                               int64_t unix_ms);

/* The cost of `usage`, rounded up to a whole nano-dollar, or TOKENS_UNKNOWN when there is no
 * price or a needed count is unknown. In event_usage the counts of completion and prompt
 * already include thoughts and tool prompts. */
int64_t price_of(const struct price *price, const struct event_usage *usage);

/* "2.50" dollars as nano-dollars, exactly.
 * errors  ERR_INVALID_ARGUMENT not an amount, negative, or finer than a nano-dollar */
MUST_CHECK bool price_read_dollars(struct str text, int64_t *ret, struct err *e);

/* Append nano-dollars as dollars: "0.0125", "3.00". */
void price_append_dollars(struct buf *out, int64_t nano);

#endif
