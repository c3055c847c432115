/* contract: Crawbl's agent runtime as a row of the table of contracts. The listener "grpc" is
 * its own.
 *
 * Threads  as contract/contract.h says.
 */
#ifndef WEIR_CONTRACT_CRAWBL_CONTRACT_H
#define WEIR_CONTRACT_CRAWBL_CONTRACT_H

#include "contract/contract.h"
#include "contract/crawbl/converse.h"

struct crawbl_settings {
    struct token_keys *keys; /* NULL: callers need no token */
    bool secured;            /* a key was configured; the demo's key does not count */
    struct converse_settings converse;
    struct workspace_agents_settings workspace_agents;
};

extern const struct contract crawbl_contract;

#endif
