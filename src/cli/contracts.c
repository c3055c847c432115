#include "cli/contracts.h"

#include "contract/a2a/contract.h"
#include "contract/admin/contract.h"
#include "contract/agentbreeder/contract.h"
#include "contract/agui/contract.h"
#include "contract/anthropic/contract.h"
#include "contract/console/contract.h"
#include "contract/crawbl/contract.h"
#include "contract/mcp/contract.h"
#include "contract/nimi/contract.h"
#include "contract/openai/contract.h"
#include "contract/otlp/contract.h"
#include "contract/weir/contract.h"
#include "orchestrator/contract.h"

/* In the order in which they listen and appear in the ports file. */
static const struct contract *const rows[] = {
    /* clang-format off */
    &weir_contract,
    &console_contract,
    &mcp_contract,
    &a2a_contract,
    &openai_contract,
    &anthropic_contract,
    &agui_contract,
    &agentbreeder_contract,
    &crawbl_contract,
    &nimi_contract,
    &otlp_contract,
    &admin_contract,
    &orchestrator_contract,
    /* clang-format on */
};

#define SERVED (ARRAY_LEN(rows) - 1)
#define FIRST_OF_ORCHESTRATOR (SERVED - 1) /* it has the operator's listener too */

const struct contract_table contracts = {rows, SERVED};
const struct contract_table orchestrator_contracts = {rows + FIRST_OF_ORCHESTRATOR, 2};
const struct contract_table setting_contracts = {rows, ARRAY_LEN(rows)};
