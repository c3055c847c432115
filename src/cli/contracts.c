#include "cli/contracts.h"

#include "contract/agentbreeder/contract.h"
#include "contract/crawbl/contract.h"
#include "contract/mcp/contract.h"
#include "contract/nimi/contract.h"
#include "contract/weir/contract.h"

/* In the order in which they listen and appear in the ports file. */
static const struct contract *const rows[] = {
    &weir_contract, &mcp_contract, &agentbreeder_contract, &crawbl_contract, &nimi_contract,
};

const struct contract_table contracts = {rows, ARRAY_LEN(rows)};
