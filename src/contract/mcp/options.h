/* options: the settings of this contract.
 *
 * Memory   texts live as long as the config.
 * Threads  read-only.
 */
#ifndef WEIR_CONTRACT_MCP_OPTIONS_H
#define WEIR_CONTRACT_MCP_OPTIONS_H

#include "contract/guest.h"

struct mcp_server_options {
    struct guest_options guest;
    uint64_t sessions_max, session_idle_ms;
};

extern const struct setting_rows mcp_rows;

const struct mcp_server_options *mcp_server_options(const struct config *config);

#endif
