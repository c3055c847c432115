/* revival: whose agents a turn of Converse has that waits for a human over a restart.
 *
 * It may have been given to agents of its workspace's blueprint: the house is asked for them
 * again.
 *
 * Memory   an ask lives until it is answered or left.
 * Threads  the house's loop.
 * Source   contracts/crawbl.md 2.10; checks.md K26.
 */
#ifndef WEIR_CONTRACT_CRAWBL_REVIVAL_H
#define WEIR_CONTRACT_CRAWBL_REVIVAL_H

#include "contract/contract.h"
#include "contract/crawbl/house.h"

/* The engine, lent until the loop's turn is over; or NULL, and `answer` comes later, unless
 * *ret_ask is left before. */
struct engine *revival_find(struct house *house, const struct session_name *name,
                            recover_engine_fn *answer, void *answer_ctx,
                            struct contract_ask **ret_ask);

#endif
