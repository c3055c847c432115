/* price: what a model call costs.
 *
 * A book of dated prices: the newest entry for a model that is not younger than the call
 * counts, so that a bill of last month stays what it was. What no entry matches costs an
 * unknown amount, which is not nothing and is never added up as if it were. All money is in
 * integers: billionths of a dollar (nano-dollars).
 *
 * Memory   a book owns its entries.
 * Threads  read-only once made.
 */
#ifndef WEIR_PROVIDER_PRICE_H
#define WEIR_PROVIDER_PRICE_H

#include "wire/event.h"

/* Nano-dollars for a million tokens: $2.50 is 2,500,000,000. */
struct price {
    struct str model; /* as the provider reports it; a '*' at its end stands for any ending */
    int64_t from_day; /* days since 1970-01-01, UTC: the first on which it counts */
    int64_t input, output;
    int64_t cached; /* of the input, what came from a cache; TOKENS_UNKNOWN: as input */
    /* What was put into one, for minutes and for an hour; TOKENS_UNKNOWN: 1.25 and 2 times the
     * input, as Anthropic asks. Nobody else counts it. */
    int64_t cache_write, cache_write_hour;
};

struct price_book;

/* `own` (copied) come first: an entry of the settings beats the built-in ones for the same
 * model, whatever their dates. */
struct price_book *price_book_new(const struct price *own, size_t count);
void price_book_free(struct price_book *book); /* NULL is fine */

/* The price of `model` at a moment, or NULL. Its whole name wins, then the longest pattern that
 * matches, then the youngest entry. A prefix that only says who serves it ("openai/gpt-4o",
 * "models/gemini-2.5-pro") does not count. */
const struct price *price_find(const struct price_book *book, struct str model,
                               int64_t unix_ms);

/* What `usage` costs, rounded up to a whole nano-dollar; TOKENS_UNKNOWN when there is no price
 * or when what is to be paid was not counted. Thoughts and tool prompts are already part of
 * completion and prompt as event_usage has them. */
int64_t price_of(const struct price *price, const struct event_usage *usage);

/* "2.50" dollars as nano-dollars, exactly.
 * errors  ERR_INVALID_ARGUMENT no amount, negative, or finer than a nano-dollar */
MUST_CHECK bool price_read_dollars(struct str text, int64_t *ret, struct err *e);

/* Append nano-dollars as dollars: "0.0125", "3.00". */
void price_append_dollars(struct buf *out, int64_t nano);

#endif
