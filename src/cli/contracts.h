/* contracts: the contracts that this daemon serves. A new contract is a folder under contract/
 * and a row in contracts.c.
 */
#ifndef WEIR_CLI_CONTRACTS_H
#define WEIR_CLI_CONTRACTS_H

#include "contract/contract.h"

extern const struct contract_table contracts;

#endif
