#include "contract/crawbl/options.h"

#include "config/rows.h"

#define ROW_OF struct crawbl_options

/* clang-format off */
static const struct setting rows[] = {
    {.group = "Converse", .key = "converse.workspace", .flag = "workspace-id",
     .env = {"WEIR_WORKSPACE_ID", "CRAWBL_WORKSPACE_ID"}, ID(workspace), .shown = "any",
     .help = "serve this workspace only"},
    {.key = "converse.user", .flag = "user-id", .env = {"WEIR_USER_ID", "CRAWBL_USER_ID"},
     ID(user), .shown = "any", .help = "serve this user only"},
    {.key = "converse.lenient", .flag = "lenient", .env = {"WEIR_LENIENT"},
     BOOL(lenient), .preset = "false",
     .help = "fall back where a request lacks an agent, a session or ids, as upstream does"},
    {.key = "converse.errors_as_text", .flag = "errors-as-text", .env = {"WEIR_ERRORS_AS_TEXT"},
     BOOL(errors_as_text), .preset = "false",
     .help = "also send a failed turn's reason as text, for clients that show nothing else"},
    {.key = "converse.sticky", .flag = "sticky", .env = {"WEIR_STICKY"}, BOOL(sticky),
     .preset = "false",
     .help = "let the agent that spoke last take the next turn, not the Manager"},
    {.key = "converse.on_disconnect", .flag = "converse-on-disconnect",
     .env = {"WEIR_CONVERSE_ON_DISCONNECT"}, LEAVING(on_disconnect),
     .preset = "cancel",
     .help = "a caller of Converse who leaves: cancel the turn, detach it (it goes on), or "
             "detach-for=30s without a reader"},
};
/* clang-format on */

const struct setting_rows crawbl_rows = {rows, ARRAY_LEN(rows), sizeof(struct crawbl_options)};

const struct crawbl_options *crawbl_options(const struct config *config) {
    static const struct crawbl_options none = {.lenient = false};
    const struct crawbl_options *options = config_values(config, &crawbl_rows);
    return options ? options : &none;
}
