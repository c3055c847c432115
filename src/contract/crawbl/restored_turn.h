/* restored_turn: find the agents of a Converse turn that waited for a human across a restart.
 *
 * The turn may belong to agents of its workspace's blueprint, so workspace_agents.h is asked
 * for them again.
 *
 * Memory   an ask lives until it is answered or withdrawn.
 * Threads  the loop of workspace_agents.h.
 * Source   contracts/crawbl.md 2.10; checks.md K26.
 */
#ifndef WEIR_CONTRACT_CRAWBL_RESTORED_TURN_H
#define WEIR_CONTRACT_CRAWBL_RESTORED_TURN_H

#include "contract/contract.h"
#include "contract/crawbl/workspace_agents.h"

/* Return the engine, lent until this turn of the loop ends. NULL: `answer` is called later,
 * unless *ret_ask is withdrawn first. */
struct engine *restored_turn_find(struct workspace_agents *workspace_agents,
                                  const struct session_name *name, recover_engine_fn *answer,
                                  void *answer_ctx, struct contract_ask **ret_ask);

#endif
