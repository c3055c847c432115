/* contract: the Runtime Contract as a row of the table of contracts. The listener "http" is
 * its own.
 *
 * Threads  as contract/contract.h says.
 */
#ifndef WEIR_CONTRACT_AGENTBREEDER_CONTRACT_H
#define WEIR_CONTRACT_AGENTBREEDER_CONTRACT_H

#include "contract/agentbreeder/runtime.h"
#include "contract/contract.h"

struct agentbreeder_settings {
    struct runtime_settings runtime; /* first: the instance reads it */
    struct page_rules pages;         /* of the listener */
};

extern const struct contract agentbreeder_contract;

#endif
