/* contracts: the contracts that this program serves. A new contract is a folder under contract/
 * and a row in contracts.c.
 */
#ifndef WEIR_CLI_CONTRACTS_H
#define WEIR_CLI_CONTRACTS_H

#include "contract/contract.h"

/* Of `weir serve`, of `weir orchestrate`, and of both, whose settings one file may hold. */
extern const struct contract_table contracts, orchestrator_contracts, setting_contracts;

#endif
