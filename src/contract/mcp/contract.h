/* contract: the agents as tools of the Model Context Protocol, as a row of the table of
 * contracts. A guest of the listener "http".
 *
 *     POST, GET, DELETE /mcp
 *
 * Threads  as contract/contract.h says.
 */
#ifndef WEIR_CONTRACT_MCP_CONTRACT_H
#define WEIR_CONTRACT_MCP_CONTRACT_H

#include "contract/contract.h"

extern const struct contract mcp_contract;

#endif
