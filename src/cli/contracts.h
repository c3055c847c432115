/* contracts: what this daemon speaks. A new contract is a folder of its own under contract/ and
 * a row here.
 */
#ifndef WEIR_CLI_CONTRACTS_H
#define WEIR_CLI_CONTRACTS_H

#include "contract/contract.h"

extern const struct contract_table contracts;

#endif
