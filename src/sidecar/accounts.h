/* accounts: what the requests in flight have spent, by their trace ids.
 *
 * A request opens an account when it is passed on and closes it when its answer is complete.
 * Usage that is posted to the cost helper meanwhile, with the same trace id, is added to it.
 * A caller chooses the trace id, so two requests in flight may have the same. Then it is unknown
 * whose the posts are: they count for none of them, and no caller learns what another one has
 * spent. What the answer of a request says of its own usage is that request's, and not kept
 * here.
 *
 * Memory   owns the accounts.
 * Threads  one loop's.
 * Source   contracts/agentbreeder.md 4.6.
 */
#ifndef WEIR_SIDECAR_ACCOUNTS_H
#define WEIR_SIDECAR_ACCOUNTS_H

#include "provider/price.h"
#include "sidecar/spent.h"

struct accounts;
struct account;

/* `prices` is borrowed. */
struct accounts *accounts_new(const struct price_book *prices);
void accounts_free(struct accounts *accounts); /* all are closed; accepts NULL */

struct account *accounts_open(struct accounts *accounts, struct str trace_id);
void accounts_close(struct accounts *accounts, struct account *account); /* accepts NULL */

/* False: no request in flight has this trace id. */
bool accounts_post(struct accounts *accounts, struct str trace_id,
                   const struct spent_usage *usage);

/* What is known by now: what was posted for this request alone, else what its answer said
 * (`found`). The cost is what was posted, else that of the price table. Texts live as long as
 * both. */
struct spent_usage accounts_read(const struct accounts *accounts, const struct account *account,
                                 const struct spent *found, int64_t unix_ms);

/* The cost of one call by the price table, or TOKENS_UNKNOWN. Upstream spells versions with a
 * dot or with a hyphen (claude-sonnet-4.6); both are found. */
int64_t accounts_cost(const struct accounts *accounts, const struct spent_usage *usage,
                      int64_t unix_ms);

#endif
