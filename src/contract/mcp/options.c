#include "contract/mcp/options.h"

#include "config/rows.h"

#define ROW_OF struct mcp_server_options

/* clang-format off */
static const struct setting rows[] = {
    {.group = "MCP server", .key = "mcp_server.enabled", .flag = "mcp-server",
     .env = {"WEIR_MCP_SERVER"}, BOOL(guest.enabled), .preset = "true", .fixed = true,
     .help = "serve the agents as tools of the Model Context Protocol, at /mcp on the HTTP "
             "listener"},
    {.key = "mcp_server.workspace", .flag = "mcp-server-workspace",
     .env = {"WEIR_MCP_SERVER_WORKSPACE"}, ID(guest.workspace), .preset = "default",
     .help = "the workspace of MCP clients without a token"},
    {.key = "mcp_server.on_disconnect", .flag = "mcp-server-on-disconnect",
     .env = {"WEIR_MCP_SERVER_ON_DISCONNECT"}, LEAVING(guest.on_disconnect),
     .preset = "detach-for=1m",
     .help = "a call of an MCP client whose stream breaks, and who can come back for the rest: "
             "cancel, detach or detach-for=30s"},
    {.key = "mcp_server.sessions", .flag = "mcp-server-sessions",
     .env = {"WEIR_MCP_SERVER_SESSIONS"}, COUNT(sessions_max), .preset = "1000", .least = 1,
     .most = 100000, .fixed = true,
     .help = "sessions of MCP clients at once; one more ends the longest unused"},
    {.key = "mcp_server.session_idle", .flag = "mcp-server-session-idle",
     .env = {"WEIR_MCP_SERVER_SESSION_IDLE"}, DURATION(session_idle_ms), .preset = "1h",
     .least = 1000, .fixed = true,
     .help = "an MCP client's session that was unused for so long is forgotten"},
};
/* clang-format on */

const struct setting_rows mcp_rows = {
    .rows = rows, .count = ARRAY_LEN(rows), .size = sizeof(struct mcp_server_options)};

const struct mcp_server_options *mcp_server_options(const struct config *config) {
    static const struct mcp_server_options none = {.guest.workspace = STR_INIT("")};
    const struct mcp_server_options *options = config_values(config, &mcp_rows);
    return options ? options : &none;
}
